"""Files that are attacked: models and checkpoints of every estimator, how each is written, read and used."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fit_cases import BY_NAME, Case
from fit_data import draw

from subchain import CVI, EM, HMM, SCVI, VI, BlockSparse, Dirichlet, Gibbs, left_right
from subchain.alignment import WordAligner
from subchain.errors import InputError
from subchain.grammar import DMV, LatentPCFG, parse_bracketed

SOURCE = ["a b c", "b a", "c c a b", "", "d", "a d b"]
TARGET = ["x y", "y z x", "x x z y", "y", "", "z w x"]
SENTENCES = ["DT NN VB", "NN VB", "", "DT NN VB DT NN", "NN VB NN", "VB"]
TREES = [
    parse_bracketed("(S (NP (DT a) (NN dog)) (VP (VB sees) (NP (NP (DT a) (NN cat)) (PP (IN on) (NP it)))))"),
    parse_bracketed("(S (NP it) (VP (VB sees) (NP (DT the) (JJ old) (NN cat))))"),
    parse_bracketed("(S (VP (VB sees)))"),
] * 2

#: Cases of `fit_cases` whose models are attacked.
MODELS = (
    "em categorical", "em gaussian", "vi diagonal", "em poisson", "vi bernoulli", "em product", "vi hdp",
    "vi hdp sticks", "cvi hdp", "cvi dictionary", "scvi guards", "gibbs kept paths", "gibbs states gaussian", "beam",
)  # fmt: skip
#: Cases whose checkpoints are attacked, and the settings that end them early.
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "em gaussian": {"max_iter": 3},
    "em product": {"max_iter": 3},
    "vi hdp sticks": {"max_iter": 3},
    "vi states": {"max_iter": 3},
    "cvi hdp": {"max_iter": 3},
    "cvi states gaussian": {"max_iter": 3},
    "cvi sequences few legal": {"max_iter": 3},
    "scvi guards": {"max_updates": 7},
    "svi average": {"max_updates": 10},
    "gibbs states": {"n_samples": 2},
    "gibbs states gaussian": {"n_samples": 2},
    "gibbs sequences sampled": {"n_samples": 2},
    "beam": {"n_samples": 2},
}
BANDED = Case(
    "vi banded", "categorical", "chain", VI(max_iter=2), Dirichlet(mask=left_right(64, max_step=3)), n_states=64
)
BLOCKS = Case("em block-sparse", "categorical", "many", EM(max_iter=3), emission=BlockSparse(groups=[0, 1, 0, 1, 2, 2]))


@dataclasses.dataclass(frozen=True)
class Attacked:
    """A kind of file: its name, what its header calls it, and what writes it, reads it and uses what was read.

    `use` returns what is wrong with the answers, None if nothing is.
    """

    name: str
    kind: str
    write: Callable[[Path], Any]
    use: Callable[[Path], str | None]


# ---- hidden Markov models --------------------------------------------------------------------------------------------


def _model(case: Case) -> Attacked:
    def use(path: Path) -> str | None:
        model = HMM.load(path)
        new = draw(case.family, "new", 1)[0]
        fault = _fault(model, new) or _fault(model, case.data, **case.knowledge)
        if fault is not None:
            return fault
        model.predict(new, decoding="viterbi")
        model.sample(20, random_state=0)
        model.sample_parameters(1, random_state=0)
        model.state_occupancy_, model.n_parameters_, repr(model)
        if model.samples_ is not None:
            model.samples_.summary()
        return _fault(model.partial_fit(new), new)

    return Attacked(case.name, "model", lambda path: case.fit().save(path), use)


def _checkpoint(case: Case, settings: dict[str, Any]) -> Attacked:
    def write(path: Path) -> None:
        model = copy.deepcopy(case.model())
        model.set_params(**{f"inference__{key}": value for key, value in settings.items()})
        model.fit(case.data, checkpoint=path, resume=False, **case.arguments)

    def use(path: Path) -> str | None:
        model = case.model().fit(case.data, checkpoint=path, resume=True, **case.arguments)
        return _fault(model, case.data, **case.knowledge)

    return Attacked(f"checkpoint of {case.name}", "checkpoint", write, use)


def _fault(model: HMM, x: Any, **knowledge: Any) -> str | None:
    """Return what is wrong with the answers of a model, None if nothing is."""
    if model.point_.not_finite() is not None:
        return f"{model.point_.not_finite()} is not finite"
    score = model.score(x, **knowledge)
    if not score < np.inf:  # data may be impossible, and `predict_proba` then says where
        return f"the score is {score}"
    marginals = model.predict_proba(x, **knowledge)
    for part in marginals if isinstance(marginals, list) else [marginals]:
        if not ((part >= -1e-9) & (part <= 1.0 + 1e-6)).all() or (np.abs(part.sum(axis=-1) - 1.0) > 1e-5).any():
            return "posterior marginals are no probabilities"
    return None


# ---- word aligners ---------------------------------------------------------------------------------------------------


def _aligner(inference: Any, **settings: Any) -> WordAligner:
    return WordAligner(inference=inference, random_state=0, n_jobs=1, progress=False, **settings)


def _aligner_model(name: str, inference: Any, **settings: Any) -> Attacked:
    def use(path: Path) -> str | None:
        aligner = WordAligner.load(path)
        aligner.lexicon_, repr(aligner)
        _aligner(CVI(max_iter=1), end_jumps=aligner.end_jumps, max_jump=aligner.max_jump).fit(
            SOURCE, TARGET, prior=aligner
        )
        return _alignment_fault(aligner)

    return Attacked(
        f"aligner {name}",
        "word aligner",
        lambda path: _aligner(inference, **settings).fit(SOURCE, TARGET).save(path),
        use,
    )


def _aligner_checkpoint(name: str, less: Any, more: Any) -> Attacked:
    """The checkpoint of the only stage of an aligner."""

    def fit(path: Path, inference: Any, resume: bool) -> WordAligner:
        return _aligner(inference, stages=("hmm",)).fit(SOURCE, TARGET, checkpoint=path, resume=resume)

    def write(path: Path) -> None:
        fit(path, less, False)
        path.with_name(f"{path.name}.1").replace(path)

    def use(path: Path) -> str | None:
        path.replace(path.with_name(f"{path.name}.1"))
        return _alignment_fault(fit(path, more, True))

    return Attacked(f"checkpoint of aligner {name}", "checkpoint", write, use)


def _alignment_fault(aligner: WordAligner) -> str | None:
    aligner.align(["a b", "unseen a"], ["x y", "y unseen"])
    if not aligner.score(SOURCE, TARGET) < np.inf:
        return "the score is not a number"
    for table in aligner.posterior(SOURCE, TARGET):
        if not ((table >= -1e-9) & (table <= 1.0 + 1e-5)).all():
            return "posteriors of links are no probabilities"
    return None


# ---- grammars --------------------------------------------------------------------------------------------------------


def _grammar(inference: Any) -> DMV:
    return DMV(inference, random_state=0, n_jobs=1, progress=False)


def _grammar_model(name: str, inference: Any) -> Attacked:
    def use(path: Path) -> str | None:
        grammar = DMV.load(path)
        grammar.sample(2, random_state=0)
        grammar.rules_, repr(grammar)
        return _grammar_fault(grammar)

    return Attacked(
        f"grammar {name}", "dependency grammar", lambda path: _grammar(inference).fit(SENTENCES).save(path), use
    )


def _grammar_checkpoint(name: str, less: Any, more: Any) -> Attacked:
    return Attacked(
        f"checkpoint of grammar {name}",
        "checkpoint",
        lambda path: _grammar(less).fit(SENTENCES, checkpoint=path, resume=False),
        lambda path: _grammar_fault(_grammar(more).fit(SENTENCES, checkpoint=path, resume=True)),
    )


def _grammar_fault(grammar: DMV) -> str | None:
    if not grammar.score(SENTENCES) < np.inf:
        return "the score is not a number"
    grammar.parse(SENTENCES)
    for table in grammar.posterior(SENTENCES):
        if not ((table >= -1e-9) & (table <= 1.0 + 1e-6)).all():
            return "posteriors of heads are no probabilities"
    return None


def _latent(inference: Any, **settings: Any) -> LatentPCFG:
    return LatentPCFG(2, inference, random_state=0, n_jobs=1, progress=False, **settings)


def _latent_model(name: str, inference: Any, **settings: Any) -> Attacked:
    def use(path: Path) -> str | None:
        grammar = LatentPCFG.load(path)
        with contextlib.suppress(InputError):
            grammar.sample(2, random_state=0)
        grammar.rules_, repr(grammar)
        return _latent_fault(grammar)

    return Attacked(
        f"latent grammar {name}", "grammar with latent annotations",
        lambda path: _latent(inference, **settings).fit(TREES).save(path), use,
    )  # fmt: skip


def _latent_checkpoint(name: str, less: Any, more: Any) -> Attacked:
    return Attacked(
        f"checkpoint of latent grammar {name}",
        "checkpoint",
        lambda path: _latent(less).fit(TREES, checkpoint=path, resume=False),
        lambda path: _latent_fault(_latent(more).fit(TREES, checkpoint=path, resume=True)),
    )


def _latent_fault(grammar: LatentPCFG) -> str | None:
    words = [tree.leaves() for tree in TREES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what a changed grammar cannot derive
        if not grammar.score(words) < np.inf:
            return "the score is not a number"
        for method in ("max-rule", "viterbi"):
            grammar.parse(words, method)
        for spans in grammar.posterior(words):
            if any(not -1e-9 <= span.probability <= 2.0 + 1e-6 for span in spans):
                return "posteriors of spans are no expected numbers"
    return None


# ---- neural models, where PyTorch is installed -----------------------------------------------------------------------


def _neural() -> list[Attacked]:
    if importlib.util.find_spec("torch") is None:
        return []
    from subchain.neural import NeuralHMM, Training

    text = [np.array([0, 2, 1, 4]), np.array([3, 1, 4]), np.array([2, 0, 4])] * 4

    def model(epochs: int) -> NeuralHMM:
        training = Training(epochs=epochs, streams=2, length=4, averaging=0.9, precision="double")
        return NeuralHMM(6, np.array([0, 0, 1, 1, 2]), embedding=8, training=training, random_state=0, device="cpu")

    def fault(found: NeuralHMM) -> str | None:
        return None if found.perplexity(text) >= 1.0 else "the perplexity is below one"

    def use(path: Path) -> str | None:
        found = NeuralHMM.load(path, device="cpu")
        found.sample(5, random_state=0)
        found.predict(text)
        return fault(found)

    return [
        Attacked("neural model", "neural model", lambda path: model(2).fit(text).save(path), use),
        Attacked(
            "checkpoint of neural model",
            "neural checkpoint",
            lambda path: model(3).fit(text, checkpoint=path, resume=False),
            lambda path: fault(model(3).fit(text, checkpoint=path, resume=True)),
        ),
    ]


@functools.cache
def every_file() -> dict[str, Attacked]:
    """Return all files that are attacked by their names."""
    found = [
        *(_model(case) for case in (*(BY_NAME[name] for name in MODELS), BANDED, BLOCKS)),
        *(_checkpoint(BY_NAME[name], settings) for name, settings in CHECKPOINTS.items()),
        _aligner_model("cvi", "cvi"),
        _aligner_model("em without ends", EM(max_iter=2), end_jumps=False),
        _aligner_model("diagonal", "vi", stages=("diagonal",)),
        _aligner_checkpoint("cvi", CVI(max_iter=2), CVI(max_iter=4)),
        _aligner_checkpoint("scvi", SCVI(batch=2, max_updates=4), SCVI(batch=2, max_updates=8)),
        _aligner_checkpoint("gibbs", Gibbs(n_samples=2, burn_in=1), Gibbs(n_samples=4, burn_in=1)),
        _grammar_model("em", EM(max_iter=3)),
        _grammar_model("vi", VI(max_iter=3)),
        _latent_model("em", EM(max_iter=3)),
        _latent_model("split", EM(max_iter=2), training="split_merge"),
        _latent_checkpoint("cvi", CVI(max_iter=3), CVI(max_iter=6)),
        _latent_checkpoint("vi", VI(max_iter=3), VI(max_iter=6)),
        _grammar_checkpoint("cvi", CVI(max_iter=3), CVI(max_iter=6)),
        _grammar_checkpoint("vi", VI(max_iter=3), VI(max_iter=6)),
        *_neural(),
    ]
    return {attacked.name: attacked for attacked in found}
