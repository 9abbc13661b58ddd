"""Random fits, each checked against plain references and against itself.

`python -m fuzz.fits 1000 --seed 0 --jobs 2` (with `src` and `tests` on the path) runs a thousand of them.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import naive
import numpy as np
from naive_engine import NaiveEngine, RoundedEngine
from numpy.typing import NDArray

from fuzz.cases import Case, allow_small_shards, draw_case
from fuzz.children import PASSED, REFUSED, VIOLATION, Verdict, command
from subchain import HDP, HMM
from subchain.core.components import clone
from subchain.engines.cpu import fused
from subchain.errors import ConvergenceWarning, ImpossibleSequenceError, InputError, SubchainError
from subchain.inference.batch.passes import Batch
from subchain.inference.stochastic.settings import Stochastic
from subchain.structures.chain.growing_buffer import GrowBuffer

USUALLY_LARGE = fused.LARGE
#: Relative difference between two engines that needs no explanation.
ROOM = 1e-6
#: A larger one is explained if plain engines that round otherwise (so many) differ by at least a tenth as much.
N_ROUNDED, AMPLIFIED = 3, 10.0


class Violation(AssertionError):
    """A property that does not hold."""


def require(holds: Any, what: str) -> None:
    if not np.all(holds):
        raise Violation(what)


def run(seed: int) -> Verdict:
    """Draw the problem with this number, fit it, and check what comes out."""
    case = draw_case(seed)
    allow_small_shards()
    fused.LARGE = 0 if seed % 2 else USUALLY_LARGE  # compiled passes are for large data; here for every second fit
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = fit(case)
        except ImpossibleSequenceError as error:
            if not case.may_be_impossible:
                return Verdict(seed, VIOLATION, f"refused as impossible: {error}")
            return Verdict(seed, REFUSED, "impossible")
        except InputError as error:
            return Verdict(seed, REFUSED, _reason(error))
        except SubchainError as error:
            return Verdict(seed, VIOLATION, f"{type(error).__name__}: {error}")
        for check in CHECKS:
            try:
                check(case, model)
            except (Violation, SubchainError) as error:
                return Verdict(seed, VIOLATION, f"{check.__name__}: {type(error).__name__}: {error}")
    return Verdict(seed, PASSED)


def _reason(error: InputError) -> str:
    """The message without its numbers, so that like ones are counted together."""
    return "".join("#" if letter.isdigit() else letter for letter in str(error))[:160]


def fit(case: Case, **changes: Any) -> HMM:
    return case.model(**changes).fit(case.data.sequences(), sample_weight=case.weights, **case.fit)


# ---- properties ------------------------------------------------------------------------------------------------------


def parameters_are_in_range(case: Case, model: HMM) -> None:
    require(model.point_.not_finite() is None, f"point is not finite: {model.point_.not_finite()}")
    require(model.statistics_.not_finite() is None, f"statistics are not finite: {model.statistics_.not_finite()}")
    for name, rows in (("initial", model.initial_[None]), ("transition", model.transition_)):
        require((rows >= 0.0) & (rows <= 1.0 + 1e-12), f"{name} outside [0, 1]")
        require(np.abs(rows.sum(axis=1) - 1.0) < 1e-9, f"{name} does not sum to one")
    if case.mask is not None:
        require(model.transition_[~case.mask] == 0.0, "forbidden transitions have a probability")
    initial = getattr(case.settings["transition"], "initial", None)
    if isinstance(initial, np.ndarray):
        require(np.abs(np.sort(model.initial_) - np.sort(initial)) < 1e-12, "the given initial distribution changed")


def objective_rises(case: Case, model: HMM) -> None:
    inference, prior = case.settings["inference"], case.settings["transition"]
    objective = np.array(model.trace_.objective)
    require(~np.isinf(objective), "the objective is infinite")
    if isinstance(inference, Batch) and getattr(prior, "exact", True) and len(objective) > 1:
        scale = np.abs(objective).max() + len(case.data.values)
        require(np.diff(objective) >= -1e-6 * scale, f"the objective falls: {np.diff(objective).min()}")


def tasks_agree_with_plain_loops(case: Case, model: HMM) -> None:
    if model.n_states_ != case.log_weights.shape[1]:
        return
    case = case.without_weight_zero()  # a model may exclude what it was not to learn from
    x = case.data.listed() if case.family not in ("product",) else case.data.sequences()
    prepared = (
        model.emission.prepare(case.data.sequences()) if hasattr(model.emission, "prepare") else case.data.sequences()
    )
    logs = model.emission_.log_likelihood(prepared.values).T + case.log_weights
    rounding = _rounding(case, prepared.values)
    scores = model.score_sequences(x, **case.fit)
    parts = [logs[begin:end] for begin, end in itertools.pairwise(case.data.bounds)]
    impossible = [
        len(part) > 0 and naive.impossible_at(part, model.initial_, model.transition_) is not None for part in parts
    ]
    require(np.isneginf(scores) == impossible, f"scores {scores}, but impossible are {impossible}")
    if any(impossible):  # algorithms that see parts of a chain do not notice it
        return
    marginals = model.predict_proba(x, **case.fit)
    paths = model.predict(x, decoding="viterbi", **case.fit)
    require(len(scores) == len(case.data.lengths), "a score for each sequence")
    many = isinstance(marginals, list)
    for i, (begin, end) in enumerate(zip(case.data.bounds, case.data.bounds[1:], strict=False)):
        if begin == end:
            require(scores[i] == 0.0, "an empty sequence has a score")
            continue
        expected = naive.marginals(logs[begin:end], model.initial_, model.transition_)
        room = 1e-9 * (np.abs(logs[begin:end][np.isfinite(logs[begin:end])]).sum() + 1.0) + rounding[begin:end].sum()
        require(abs(scores[i] - expected.log_likelihood) <= room, f"score {scores[i]} is not {expected.log_likelihood}")
        mine = marginals[i] if many else marginals
        require(np.abs(mine.sum(axis=1) - 1.0) < 1e-9, "marginals do not sum to one")
        if not hasattr(model, "training_marginals_") or model.training_marginals_ is None:
            require(np.abs(mine - expected.smoothed) < 1e-6 + room, "marginals differ from the reference")
        path = np.asarray(paths[i] if many else paths)
        best = naive.best_path(logs[begin:end], model.initial_, model.transition_)[1]
        got = naive.path_log_probability(path, logs[begin:end], model.initial_, model.transition_)
        require(got >= best - room, f"a path of {got}, the best has {best}")


def _rounding(case: Case, values: Any) -> NDArray[np.float64]:
    """What rounding may take from each log likelihood where large terms of it cancel: x log λ − log x!."""
    if case.family != "poisson":
        return np.zeros(len(values))
    counts = np.maximum(np.nan_to_num(np.asarray(values, dtype=np.float64)), 0.0).reshape(len(values), -1)
    return 4.0 * np.finfo(np.float64).eps * (counts * np.log1p(counts)).sum(axis=1)


def same_bits(one: HMM, other: HMM, what: str) -> None:
    for name in ("point_", "statistics_", "prior_"):
        first, second = getattr(one, name).arrays(), getattr(other, name).arrays()
        require(first.keys() == second.keys(), f"{what}: other arrays in {name}")
        for key in first:
            require(np.array_equal(first[key], second[key]), f"{what}: {name}{key} differs")


def files_keep_the_bits(case: Case, model: HMM) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        same_bits(model, HMM.load(path), "loaded")


def a_second_fit_has_thesame_bits(case: Case, model: HMM) -> None:
    if case.seed % 2 == 0:
        same_bits(model, fit(case), "fitted again")


def threads_change_no_bit(case: Case, model: HMM) -> None:
    if case.seed % 4 == 1:
        same_bits(model, fit(case, n_jobs=2), "two threads")


def the_naive_engine_agrees(case: Case, model: HMM) -> None:
    """Only where rounding decides nothing: neither between equal restarts, nor when a search begins and which of two
    equal proposals it takes, nor how far buffers grow.

    Nor where a hierarchy asks how surely transitions occur: the fast engine neglects up to 0.5 % of that.
    """
    inference = case.settings["inference"]
    if case.may_be_impossible and isinstance(inference, Stochastic):
        return  # parts of a chain may be possible where the chain is not
    has_thresholds = isinstance(getattr(inference, "boundary", None), GrowBuffer) or getattr(inference, "adapt", False)
    if case.seed % 4 != 3 or has_thresholds or isinstance(case.settings["transition"], HDP):
        return
    settings: dict[str, Any] = {"n_init": 1}
    if "search" in inference.get_params(deep=False):
        settings["inference"] = clone(inference).set_params(search=False)
    fast, plain = fit(case, **settings), fit(case, **settings, engine=NaiveEngine())
    differences = _differences(fast, plain)
    if all(found <= ROOM for found in differences.values()):
        return
    others = [_differences(fit(case, **settings, engine=RoundedEngine(seed)), plain) for seed in range(N_ROUNDED)]
    for key, found in differences.items():
        by_rounding = max(other[key] for other in others)
        require(
            found <= ROOM + AMPLIFIED * by_rounding,
            f"naive engine: {key} differs by {found:.1e} of its size, by rounding only by {by_rounding:.1e}",
        )


def _differences(one: HMM, other: HMM) -> dict[str, float]:
    """Return the largest difference in each array of parameters and in the objectives, by the largest entry."""
    first, second = (model.point_.arrays() | {"objective": np.array(model.trace_.objective)} for model in (one, other))
    known = slice(0, min(len(first["objective"]), len(second["objective"])))  # by rounding a run may end a step later
    first["objective"], second["objective"] = first["objective"][known], second["objective"][known]
    return {
        key: float(np.nanmax(np.abs(first[key] - second[key]), initial=0.0))
        / max(float(np.nanmax(np.abs(second[key]), initial=0.0)), np.finfo(np.float64).tiny)
        for key in first
    }


def weight_zero_is_left_out(case: Case, model: HMM) -> None:
    if case.weights is None or (case.weights > 0.0).all():
        return
    same_bits(model, fit(case.without_weight_zero()), "without sequences of weight zero")


def draws_are_data(case: Case, model: HMM) -> None:
    sample = model.sample(5, random_state=case.seed)
    values = np.asarray(sample.observations)
    require(np.isfinite(values.astype(np.float64)), "a draw is not finite")


CHECKS = (
    parameters_are_in_range,
    objective_rises,
    tasks_agree_with_plain_loops,
    files_keep_the_bits,
    a_second_fit_has_thesame_bits,
    threads_change_no_bit,
    the_naive_engine_agrees,
    weight_zero_is_left_out,
    draws_are_data,
)


if __name__ == "__main__":
    sys.exit(command(__doc__.partition("\n")[0], {"fits": run}, lambda seed: str(draw_case(seed))))
