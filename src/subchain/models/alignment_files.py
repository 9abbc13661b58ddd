"""Files of word aligners: the posterior, the words, the settings and the history of the fit; no pickle."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from subchain.core.files import reading
from subchain.core.parts import KINDS
from subchain.errors import FileFormatError
from subchain.inference.run.trace import Trace, status_of
from subchain.models.alignment_settings import READ_WITH, check_settings
from subchain.models.alignment_stages import STAGES, stage_jumps
from subchain.models.posterior_files import load_posterior, save_posterior, texts_of
from subchain.models.settings import describe
from subchain.structures.alignment.model import AlignmentPosterior

if TYPE_CHECKING:
    from subchain.models.aligner import WordAligner

    Model = TypeVar("Model", bound=WordAligner)

KIND, VERSION = "word aligner", 2
#: Settings of files that were written before these were offered.
EARLIER: dict[str, Any] = {"end_jumps": False, "prefix": None, "rare": None}


def save_aligner(aligner: WordAligner, path: str | os.PathLike[str]) -> None:
    """Write a fitted aligner."""
    facts = {
        "read_with": {name: describe(value, 0) for name, value in aligner._read_with.items()},
        "weights": aligner.kind_,
        "stage": aligner.stage_,
        "source_words": list(aligner.source_words_),
        "target_words": list(aligner.target_words_),
        "status": aligner.status_,
        "traces": [trace.to_json() for trace in aligner.traces_],
    }
    save_posterior(aligner, aligner.posterior_, path, KIND, VERSION, facts)


def load_aligner(kind: type[Model], path: str | os.PathLike[str]) -> Model:
    """Return the aligner of a file, as an object of class `kind`."""
    aligner, posterior, header = load_posterior(kind, path, KIND, VERSION, AlignmentPosterior, EARLIER)
    with reading(path):
        aligner.posterior_ = posterior
        stage = header["stage"] if "stage" in header else "hmm" if header["is_chain"] is True else "ibm1"
        if header["weights"] not in KINDS or stage not in STAGES:
            raise FileFormatError("the file does not say how text is aligned")
        aligner.kind_, aligner.stage_ = header["weights"], stage
        aligner._check()
        aligner._read_with = _read_with(aligner, header.get("read_with"))
        if stage_jumps(stage, aligner._read_with).counts.shape != posterior.jumps.counts.shape:
            raise FileFormatError("the jumps of the file are not those of its settings")
        sides = (texts_of(header[f"{side}_words"], f"{side} words") for side in ("source", "target"))
        aligner.source_words_, aligner.target_words_ = sides
        table = posterior.translation
        if (len(aligner.source_words_), len(aligner.target_words_)) != (len(table.null_source), len(table.null_target)):
            raise FileFormatError("the words are not those of the translation table")
        aligner.status_ = status_of(header["status"])
        aligner.traces_ = [Trace.from_json(trace) for trace in header["traces"]]
        aligner.trace_ = aligner.traces_[-1]
        return aligner


def _read_with(aligner: WordAligner, plain: Any) -> dict[str, Any]:
    """Return the settings that the posterior is read with: those of the fit, or of the aligner in an earlier file."""
    settings = aligner.get_params(deep=False)
    if plain is None:
        return {name: settings[name] for name in READ_WITH}
    found = {name: plain[name] if name in plain else EARLIER[name] for name in READ_WITH}
    check_settings(settings | found)
    return found
