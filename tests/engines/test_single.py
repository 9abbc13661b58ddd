"""Single precision: within 1e-5 of double precision whatever the data, the same for any number of threads."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import EM, HMM, VI, Categorical, Cpu, DiagonalGaussian, Gaussian, Poisson, Product
from subchain.core.components import clone
from subchain.data.sequences import Sequences
from subchain.emissions.categorical import CategoricalParameters
from subchain.engines import CpuEngine, Part, Surrogate, resolve_engine
from subchain.engines.cpu import fused, single
from subchain.errors import InputError
from subchain.transitions import Dirichlet

RNG = np.random.default_rng(5)
N = 6000
STATES = np.repeat(RNG.integers(0, 3, N // 10), 10)
MEANS = np.array([[0.0, 1.0, -1.0], [3.0, -2.0, 0.0], [-3.0, 0.0, 2.0]])
REAL = MEANS[STATES] + RNG.normal(size=(N, 3))
SYMBOLS = (STATES * 3 + RNG.integers(0, 5, N)).astype(np.int32)  # as codes of a vocabulary are
FAMILIES: dict[str, tuple[Any, Any]] = {
    "symbols": (Categorical(), SYMBOLS),
    "Gaussian": (Gaussian(), REAL),
    "diagonal Gaussian": (DiagonalGaussian(), REAL),
    "a product": (
        Product(a=Gaussian(columns=[0, 2]), b=Categorical(columns=[3])),
        np.column_stack((REAL, SYMBOLS.astype(np.float64))),
    ),
    "large counts": (Poisson(), RNG.poisson(1000.0 * np.exp(0.1 * MEANS[STATES] + 1.0))),
}
SHAPES = {
    "one chain": np.array([0, N]),
    "many": np.arange(0, N + 1, 20),
    "ragged": np.concatenate(([0, 0], np.sort(RNG.choice(N - 1, 150, replace=False)) + 1, [N])),
}
BAR = 1e-5

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


@pytest.fixture(autouse=True)
def _small_data_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "LARGE", 0)


def with_gaps(values: Any) -> Any:
    out, where = values.copy(), np.random.default_rng(1).random(values.shape) < 0.002
    out[where] = np.nan if values.dtype.kind == "f" else -1
    out[100:103] = np.nan if values.dtype.kind == "f" else -1
    return out


def surrogate_of(family: Any, data: Sequences) -> Surrogate:
    inference = EM(max_iter=2, tolerance=0, search=False)
    model = HMM(3, family, inference=inference, init="kmeans", random_state=0, n_jobs=1).fit(data)
    return Surrogate(model.initial_, model.transition_, model.emission_)


def agree(surrogate: Surrogate, part: Part) -> Cpu:
    """Assert that statistics and scores are within the bar; return the engine in single precision."""
    engine = Cpu(1, "single")
    ours, theirs = engine.statistics(surrogate, part), Cpu(1).statistics(surrogate, part)
    others = Cpu(3, "single").statistics(surrogate, part)
    for key, array in theirs.arrays().items():
        table = np.reshape(array, (len(array), -1) if array.ndim else (1, 1))
        largest = np.abs(table).max(axis=1, keepdims=True, initial=0.0)
        faint = 1e-6 if (table >= 0.0).all() else 1e-2
        limit = BAR * np.maximum(largest, faint * largest.max(initial=0.0)) + 1e-300
        found = ours.arrays()[key].reshape(table.shape)
        assert (np.abs(found - table) <= limit).all(), key
        np.testing.assert_array_equal(ours.arrays()[key], others.arrays()[key], err_msg=f"{key}, three threads")
    scores, exact = engine.scores(surrogate, part)[0], Cpu(1).scores(surrogate, part)[0]
    assert (np.abs(scores - exact) <= BAR * np.maximum(np.abs(exact), part.data.lengths)).all()
    return engine


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FAMILIES)
def test_statistics_and_scores_are_those_of_double_precision(name: str, shape: str, gaps: bool) -> None:
    family, values = FAMILIES[name]
    data = Sequences(with_gaps(values) if gaps else values, SHAPES[shape])
    surrogate, weights = surrogate_of(family, data), np.random.default_rng(2).random(data.n_sequences)
    for part in (Part(data), Part(data, weights=weights)):
        engine = agree(surrogate, part)
        assert engine.checks.n_in_double == 0
        assert engine.checks.n_checked > 0
        assert engine.checks.deviation < BAR


@pytest.mark.parametrize("shape", SHAPES)
def test_marginals_and_best_states_are_those_of_double_precision(shape: str) -> None:
    data = Sequences(REAL, SHAPES[shape])
    model = HMM(3, Gaussian(), inference=EM(max_iter=2, search=False), random_state=0, engine=Cpu(1)).fit(data)
    exact, best = model.predict_proba(data), model.predict(data)
    model.set_params(engine=Cpu(precision="single"), n_jobs=2)
    for found, of_double in zip(as_list(model.predict_proba(data)), as_list(exact), strict=True):
        np.testing.assert_allclose(found, of_double, rtol=0, atol=BAR)
    differ = np.concatenate(as_list(model.predict(data))) != np.concatenate(as_list(best))
    assert differ.mean() < 1e-3


def test_no_tile_of_usual_data_is_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    done, run, data = [], fused.FusedPass.run, Sequences(REAL)
    surrogate = surrogate_of(Gaussian(), data)

    def watched(self: Any, groups: Any) -> None:
        run(self, groups)
        done.append((self.fused.ways.transition.dtype, self.done.all()))

    monkeypatch.setattr(fused.FusedPass, "run", watched)
    Cpu(1, "single").statistics(surrogate, Part(data))
    assert done == [(np.float32, True)]


def test_paths_are_drawn_in_double_precision() -> None:
    data = Sequences(SYMBOLS, SHAPES["many"])
    surrogate, seed = surrogate_of(Categorical(), data), np.random.SeedSequence(1)
    ours, theirs = (engine.sample_paths(surrogate, Part(data), 2, seed) for engine in (Cpu(1, "single"), Cpu(1)))
    np.testing.assert_array_equal(ours, theirs)


# ---- what singles cannot do ------------------------------------------------------------------------------------------


def chain_of_symbols(transition: Any, weights: Any) -> Surrogate:
    initial = np.full(len(transition), 1.0 / len(transition))
    return Surrogate(initial, np.asarray(transition), CategoricalParameters(np.asarray(weights)))


def test_a_chain_that_hardly_mixes_is_run_in_double_precision() -> None:
    """The evidence of ten thousand positions is weak, and all of it counts: rounding errors add up."""
    stay = 1.0 - 1e-7
    surrogate = chain_of_symbols([[stay, 1e-7], [1e-7, stay]], [[0.5001, 0.5], [0.4999, 0.5]])
    symbols = np.random.default_rng(0).integers(0, 2, 100_000)
    engine = agree(surrogate, Part(Sequences(symbols)))
    assert engine.checks.n_in_double > 0
    assert engine.checks.deviation > single.OF_SAMPLES


def test_transitions_that_are_all_but_impossible_are_kept() -> None:
    """A later observation leaves no other explanation than a transition that is zero in single precision."""
    weights = np.array([[1.0 - 1e-12, 1e-12], [1e-12, 1.0 - 1e-12]])
    symbols = np.tile(np.repeat([0, 1], 500), 20)
    for rare in (1e-60, 1e-20, 1e-14, 1e-6):
        agree(chain_of_symbols([[1.0 - rare, rare], [rare, 1.0 - rare]], weights), Part(Sequences(symbols)))


@pytest.mark.parametrize("seed", range(12))
def test_observations_that_transitions_all_but_exclude(seed: int) -> None:
    """Backward messages, divided by normalisers, come near the largest singles."""
    rng, n_states = np.random.default_rng(seed), 5
    transition = np.maximum(rng.dirichlet(np.full(n_states, 0.05), n_states), 1.5e-15)
    transition /= transition.sum(axis=1, keepdims=True)
    means, factors = 4.0 * rng.normal(size=(n_states, 3)), rng.normal(size=(n_states, 3, 3))
    covariances = factors @ factors.transpose(0, 2, 1) + 0.1 * np.eye(3)
    model = HMM.from_parameters(np.full(n_states, 0.2), transition, Gaussian.from_parameters(means, covariances))
    states = np.repeat(rng.integers(0, n_states, 300), 5)
    x = means[states] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[states], rng.normal(size=(1500, 3)))
    agree(Surrogate(model.initial_, model.transition_, model.emission_), Part(Sequences(x)))


def test_symbols_that_are_all_but_impossible_are_counted() -> None:
    rng = np.random.default_rng(0)
    weights = rng.random((30, 3)) * 10.0 ** rng.integers(-60, 20, size=(30, 1))
    transition = rng.dirichlet(np.ones(3), 3)
    agree(chain_of_symbols(transition, weights), Part(Sequences(rng.integers(0, 30, 20_000))))


@pytest.mark.parametrize(
    ("spread", "offset"), [(1e-6, 0.0), (1.0, 1e7), (1e3, 1e9), (1e-9, 1.0)], ids=["peaked", "far", "wide", "tiny"]
)
@pytest.mark.parametrize("shape", ["one chain", "many"])
def test_peaked_and_distant_observations(spread: float, offset: float, shape: str) -> None:
    """Means are a few spreads apart and far from zero; some observations are far from all of them."""
    x = offset + spread * REAL
    x[::400] += 40.0 * spread
    data = Sequences(x, SHAPES[shape])
    agree(surrogate_of(Gaussian(), data), Part(data))


def test_states_many_spreads_apart() -> None:
    x = 1e4 * MEANS[STATES] + RNG.normal(size=(N, 3))
    agree(surrogate_of(Gaussian(), Sequences(x)), Part(Sequences(x)))


def test_borders_that_cannot_be_estimated_are_known_from_a_sweep() -> None:
    """States 0 and 1 look alike, and never change: what came first decides to the end."""
    transition = [[0.998, 1e-14, 0.002], [1e-14, 0.998, 0.002], [0.001, 0.001, 0.998]]
    weights = [[0.6, 0.6, 0.1], [0.4, 0.4, 0.9]]
    symbols = (np.random.default_rng(3).random(20_000) < 0.5).astype(np.int64)
    agree(chain_of_symbols(transition, weights), Part(Sequences(symbols)))


def test_a_deviation_makes_the_pass_one_of_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences(REAL)
    surrogate = surrogate_of(Gaussian(), data)
    monkeypatch.setattr(single, "OF_SAMPLES", 0.0)
    engine = Cpu(1, "single")
    ours, theirs = engine.statistics(surrogate, Part(data)), Cpu(1).statistics(surrogate, Part(data))
    assert engine.checks.n_in_double == 1
    for key, array in theirs.arrays().items():
        np.testing.assert_array_equal(ours.arrays()[key], array)


def test_small_data_and_masked_transitions_stay_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences(REAL)
    surrogate = surrogate_of(Gaussian(), data)
    monkeypatch.setattr(fused, "LARGE", 1 << 19)
    ours, theirs = Cpu(1, "single").statistics(surrogate, Part(data)), Cpu(1).statistics(surrogate, Part(data))
    for key, array in theirs.arrays().items():
        np.testing.assert_array_equal(ours.arrays()[key], array)


# ---- fits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", [EM, VI])
def test_a_fit_climbs_as_in_double_precision(inference: Any) -> None:
    def fitted(engine: Cpu) -> HMM:
        model = HMM(3, Categorical(), Dirichlet(1.0), inference=inference(max_iter=40, search=False), random_state=1)
        return model.set_params(engine=engine).fit((SYMBOLS, np.diff(SHAPES["many"])))

    ours, theirs = fitted(Cpu(1, "single")), fitted(Cpu(1))
    assert ours.trace_.objective[-1] == pytest.approx(theirs.trace_.objective[-1], rel=1e-6)
    np.testing.assert_allclose(ours.transition_, theirs.transition_, atol=1e-3)
    assert ours.engine.checks.n_checked >= len(ours.trace_)


def test_a_run_that_is_resumed_ends_as_one_that_was_not(tmp_path: Path) -> None:
    def model(n_iterations: int) -> HMM:
        inference = EM(max_iter=n_iterations, tolerance=0, search=False)
        return HMM(3, Gaussian(), inference=inference, random_state=0, engine=Cpu(precision="single"))

    whole = model(6).fit(REAL)
    model(3).fit(REAL, checkpoint=tmp_path / "run")
    resumed = model(6).fit(REAL, checkpoint=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(resumed.transition_, whole.transition_)
    assert resumed.trace_.objective == whole.trace_.objective


# ---- settings --------------------------------------------------------------------------------------------------------


def test_an_unknown_precision_is_an_error() -> None:
    with pytest.raises(InputError, match="unknown precision 'singel'; known are 'double', 'single'. Did you mean"):
        Cpu(precision="singel")
    with pytest.raises(InputError, match="unknown precision"):
        HMM(2, engine=Cpu().set_params(precision="half")).fit(np.array([0, 1, 0, 1]))


def test_an_engine_takes_the_number_of_jobs_of_its_model_unless_it_has_its_own() -> None:
    engine = Cpu(precision="single")
    assert repr(resolve_engine(engine, 2)) == "Cpu(n_jobs=2, precision='single')"
    assert resolve_engine(engine, 2).checks is engine.checks
    assert resolve_engine(engine, None) is engine
    assert resolve_engine(Cpu(1), 2).workers.n_jobs == 1
    assert CpuEngine is Cpu


def test_copies_have_the_same_settings() -> None:
    model = HMM(2, engine=Cpu(1, "single"))
    assert clone(model).engine is model.engine
    assert repr(pickle.loads(pickle.dumps(model)).engine) == "Cpu(n_jobs=1, precision='single')"
    assert model.get_params()["engine__precision"] == "single"


def test_model_files_keep_the_engine(tmp_path: Path) -> None:
    model = HMM(2, Gaussian(), inference=EM(max_iter=2), random_state=0, engine=Cpu(precision="single")).fit(REAL[:300])
    model.save(tmp_path / "model")
    loaded = HMM.load(tmp_path / "model")
    assert repr(loaded.engine) == "Cpu(precision='single')"
    assert loaded.score(REAL[:300]) == model.score(REAL[:300])


def as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]
