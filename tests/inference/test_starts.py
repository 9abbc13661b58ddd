"""Starts: kinds of them, and how they agree with what is known of the states."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import EM, HMM, Categorical, Dirichlet, Gaussian, Product, left_right
from subchain.data import Evidence, as_sequences
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference.start import starts
from subchain.inference.start.starts import start_statistics
from subchain.structures.chain.model import HMMPoint

MOVES = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
NUMBERS = Gaussian.from_parameters(means=[[0.0], [4.0], [8.0]], covariances=[np.eye(1)] * 3)
SYMBOLS = Categorical.from_parameters(0.1 + 0.7 * np.eye(3))


def drawn(emission: Any) -> Any:
    return HMM.from_parameters([1 / 3] * 3, MOVES, emission).sample(2000, random_state=0)


def hints(states: Any, weight: float) -> Any:
    """Log weights that speak for the true states."""
    told = np.full((len(states), 3), np.log(0.5 - 0.5 * weight))
    told[np.arange(len(states)), states] = np.log(weight)
    return told


@pytest.mark.parametrize("weight", [0.4, 0.6, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_hints_give_clusters_their_numbers(weight: float, seed: int) -> None:
    chain = drawn(NUMBERS)
    model = HMM(3, "gaussian", random_state=seed).fit(chain.observations, evidence=hints(chain.states, weight))
    assert (model.predict(chain.observations) == chain.states).mean() > 0.98


def test_states_that_are_excluded_give_clusters_their_numbers() -> None:
    chain = drawn(NUMBERS)
    allowed = np.ones((2000, 3), dtype=bool)
    allowed[chain.states == 0, 2] = allowed[chain.states == 2, 0] = False
    model = HMM(3, "gaussian", random_state=0).fit(chain.observations, allowed=allowed)
    assert (model.predict(chain.observations) == chain.states).mean() > 0.98


def test_exponential_starts_lean_towards_hints() -> None:
    chain = drawn(SYMBOLS)
    data, emission = as_sequences(chain.observations), Categorical(1.0)
    reference = HMMPoint(Dirichlet().prior(3, flat=False).mean(), emission.prior(data, 3, flat=False).mean())
    evidence = Evidence.build(data, 3, evidence=hints(chain.states, 0.8))
    rng = np.random.default_rng(0)
    with_hints = start_statistics(data, emission, reference, "exponential", rng, evidence)
    assert (with_hints.emission.counts.argmax(axis=1) == [0, 1, 2]).all()


FIXED = np.array([[1.0, 0.0, 0.0], [np.nan] * 3, [np.nan] * 3])


@pytest.mark.parametrize("settings", [{"mask": left_right}, {"initial": [1, 0, 0]}, {"fixed": FIXED}])
@pytest.mark.parametrize("algorithm", ["em", "cvi"])
def test_states_are_not_drawn_one_by_one_where_paths_may_be_impossible(settings: Any, algorithm: str) -> None:
    model = HMM(3, "categorical", Dirichlet(**settings), algorithm, init="states", random_state=0, n_jobs=1)
    with pytest.raises(InputError, match="init='states' draws every state by itself.*init='posteriors'"):
        model.fit([[0, 1, 2, 0], [1, 1, 0], [2]])


# ---- chains that never return ----------------------------------------------------------------------------------------


def stages(n_sequences: int = 30) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences that go through five stages, of which the first, the third and the last look nearly alike."""
    rng = np.random.default_rng(0)
    means = np.array([0.0, 1.5, 0.0, -1.5, 0.7])
    paths = [np.repeat(np.arange(5), rng.integers(15, 45, 5)) for _ in range(n_sequences)]
    return [rng.normal(means[path], 0.5)[:, None] for path in paths], paths


@pytest.mark.parametrize("algorithm", ["em", "vi", "svi", "cvi", "gibbs"])
def test_left_right_models_find_the_stages_by_default(algorithm: str) -> None:
    x, paths = stages()
    model = HMM(5, "gaussian", Dirichlet(mask=lambda n: left_right(n, 1)), algorithm, random_state=0).fit(x)
    assert np.mean(np.concatenate(model.predict(x)) == np.concatenate(paths)) > 0.99
    if algorithm != "gibbs":
        assert model.runs_[0].start == "parts"


def test_states_of_a_left_right_model_may_have_any_numbers() -> None:
    x, paths = stages()
    order = np.array([3, 0, 4, 1, 2])  # the stage of each state
    mask = left_right(5, 1)[np.ix_(order, order)]
    model = HMM(5, "gaussian", Dirichlet(mask=mask), "em", random_state=0).fit(x)
    assert np.mean(order[np.concatenate(model.predict(x))] == np.concatenate(paths)) > 0.99


def test_equal_parts_need_a_chain_that_never_returns() -> None:
    with pytest.raises(InputError, match="init='parts' is for chains that never return to a state"):
        HMM(2, "gaussian", init="parts").fit(np.arange(20.0))


def test_known_states_agree_with_equal_parts() -> None:
    x, paths = stages(10)
    known = [np.where(np.arange(len(path)) % 10 == 0, path, -1) for path in paths]
    model = HMM(5, "gaussian", Dirichlet(mask=left_right), "em", random_state=0).fit(x, states=known)
    assert np.mean(np.concatenate(model.predict(x)) == np.concatenate(paths)) > 0.99


# ---- starts from a sample --------------------------------------------------------------------------------------------

RARE = np.zeros(2000, dtype=np.int64)
RARE[[700, 1500]] = 1


def rare_data(name: str) -> tuple[Any, Any]:
    """A family, and data of which a symbol, a flag or a count occurs twice."""
    chain = drawn(NUMBERS)
    numbers = chain.observations[:, 0]
    match name:
        case "symbols":
            return "categorical", np.where(RARE == 1, 3, chain.states)
        case "flags":
            return "bernoulli", np.column_stack([chain.states == 0, chain.states == 1, RARE]).astype(np.int64)
        case "one flag":
            return "bernoulli", RARE
        case "counts":
            return "poisson", np.column_stack([chain.states, RARE])
        case _:
            return Product(a=Gaussian(columns=[0]), b=Categorical(columns=[1])), np.column_stack([numbers, RARE])


@pytest.mark.parametrize("init", ["auto", "context", "kmeans", "known", "parts", "random"])
@pytest.mark.parametrize("name", ["symbols", "flags", "one flag", "counts", "numbers and symbols"])
def test_what_a_sample_lacks_is_not_impossible(name: str, init: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "SAMPLE", 64)
    monkeypatch.setattr(starts, "STRETCH", 16)
    emission, x = rare_data(name)
    chains, states = np.split(x, 100), np.full(2000, -1)
    states[:60] = np.arange(60) // 7 % 3 if init != "parts" else 0
    settings = {"mask": left_right} if init in ("auto", "parts") else {}
    model = HMM(3, emission, Dirichlet(**settings), EM(max_iter=3, tolerance=0), init=init, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(chains, states=np.split(states, 100) if init == "known" else None)
    assert np.diff(model.trace_.objective).min() > -1e-6


# ---- kinds of starts -------------------------------------------------------------------------------------------------


def test_restarts_begin_with_different_kinds_of_starts() -> None:
    chain = drawn(NUMBERS)
    model = HMM(3, "gaussian", inference="em", n_init=4, random_state=0)
    starts = [run.start for run in model.fit(chain.observations).runs_]
    assert starts[0] in ("kmeans", "context")
    assert starts[1:] == ["context", "random", "kmeans"]
    assert model.trace_.start == starts[int(np.argmax([run.objective for run in model.runs_]))]


def test_a_kind_of_start_that_is_asked_for_is_that_of_all_restarts() -> None:
    chain = drawn(NUMBERS)
    model = HMM(3, "gaussian", n_init=3, init="random", random_state=0).fit(chain.observations)
    assert [run.start for run in model.runs_] == ["random"] * 3


def test_the_kind_of_start_is_kept_in_files(tmp_path: Path) -> None:
    model = HMM(3, "gaussian", n_init=2, random_state=0).fit(drawn(NUMBERS).observations)
    model.save(tmp_path / "model")
    assert HMM.load(tmp_path / "model").runs_ == model.runs_


def test_symbols_that_a_sample_lacks_are_possible_after_a_start_by_context() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(20, size=70_000)
    x[::70] = 20 + np.arange(1000)  # each of these occurs once; a start looks at 65,536 observations
    model = HMM(3, "categorical", inference=EM(max_iter=2), init="context", random_state=0, n_jobs=1)
    with pytest.warns(ConvergenceWarning):
        assert np.isfinite(model.fit(x).score(x))


# ---- some states are known -------------------------------------------------------------------------------------------


def activities(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """An accelerometer, 50 rows a second: lying; and standing, walking and running, with steps on the second axis."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.integers(4, size=60), rng.integers(200, 1500, 60))
    means = np.array([[0.0, 0.0, 1.0], [0.1, 0.95, 0.2], [0.1, 0.95, 0.2], [0.1, 0.95, 0.2]])
    spread = np.array([[0.01, 0.01, 0.01], [0.02, 0.02, 0.02], [0.15, 0.25, 0.12], [0.5, 0.8, 0.4]])
    x = rng.normal(means[states], spread[states])
    frequency, height = np.array([0.0, 0.0, 1.8, 2.8])[states], np.array([0.0, 0.0, 0.25, 0.9])[states]
    x[:, 1] += height * np.sin(2 * np.pi * frequency * np.arange(len(states)) / 50)
    return x, states


@pytest.mark.parametrize(("algorithm", "seed"), [("vi", 0), ("vi", 4), ("vi", 6), ("em", 0), ("svi", 0)])
def test_labels_of_a_tenth_of_a_recording_lead_to_the_activities_that_were_meant(algorithm: str, seed: int) -> None:
    x, states = activities(seed)
    labels = np.where(np.arange(len(states)) // 500 % 10 == 3, states, -1)
    model = HMM(4, "gaussian", inference=algorithm, random_state=0).fit(x, states=labels)
    assert np.mean(model.predict(x) == states) > 0.99
    assert model.runs_[0].start == "known"


def test_a_start_by_known_states_needs_some() -> None:
    with pytest.raises(InputError, match="init='known' needs positions whose states are known; give them with states="):
        HMM(2, "gaussian", init="known").fit(np.arange(20.0))
