"""What is asked of models that were loaded from old files, and which interrupted fits are resumed from old checkpoints.

Shared by `golden/make_files.py`, which wrote the files, and by the tests that read them. Public interface only.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from fit_cases import CASES, Case
from fit_data import draw

from subchain import HMM

#: Cases whose models are kept as files.
FILES = [case for case in CASES if case.file]
#: Fits that were ended early with a checkpoint, and the settings that ended them.
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "vi hdp sticks": {"max_iter": 3},
    "cvi hdp": {"max_iter": 3},
    "scvi guards": {"max_updates": 10},
    "gibbs states gaussian": {"time_limit": 1e-9},  # over after the first sweep
    "beam": {"time_limit": 1e-9},
}
#: One with restarts that was killed after a checkpoint: the first run is over, the second under way.
INTERRUPTED = "em restarts"


def stem(case: Case) -> str:
    """The name of a case's files."""
    return case.name.replace(" ", "-")


def answers(case: Case, model: HMM) -> dict[str, Any]:
    """What a model says: of new data, of its training data, and of itself."""
    new = draw(case.family, "new", 1)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            "score": model.score(new),
            "score_sequences": model.score_sequences(new),
            "score_steps": model.score_steps(new)[0],
            "marginals": model.predict_proba(new)[0][:3],
            "filtered": model.filter(new)[0][:3],
            "predict": np.concatenate(model.predict(new)),
            "viterbi": np.concatenate(model.predict(new, decoding="viterbi")),
            "training score": model.score(case.data, **case.knowledge),
            "training marginals": _first(model.predict_proba(case.data, **case.knowledge))[:3],
            "training states": _first(model.predict(case.data, **case.knowledge)),
            "occupancy": model.state_occupancy_,
            "n_parameters": model.n_parameters_,
            "objective": model.trace_.objective,
            "sampled transition": model.sample_parameters(1, random_state=0)[0].chain.transition,
        }
        if model.samples_ is not None:
            found["log_joint"] = model.samples_["log_joint"]
        if model.samples_ is not None and "states" in model.samples_:
            found["last path"] = model.samples_["states"][-1, -1]
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def names(model: HMM) -> dict[str, Any]:
    """Names and texts that a file keeps."""
    vocabularies = [None if known is None else known.to_list() for known in model.vocabularies_]
    return {"state names": list(model.state_names_), "status": model.status_, "vocabularies": vocabularies}


def score_after_another_batch(case: Case, model: HMM) -> float:
    """Let the model learn from new data, which needs its prior and statistics; the model changes."""
    new = draw(case.family, "new", 1)[0]
    return model.partial_fit(new).score(new)


def _first(parts: Any) -> np.ndarray:
    return parts[0] if isinstance(parts, list) else parts
