"""Passes in one compiled call: the same numbers as tile by tile, and used wherever they can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM, Bernoulli, Categorical, DiagonalGaussian, Gaussian, Poisson, Product
from subchain.data import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.categorical import CategoricalParameters
from subchain.engines import CpuEngine, Part, Surrogate
from subchain.engines.cpu import decode, fused, minibatches
from subchain.engines.results import WriteMarginals
from subchain.engines.subchains import Grid
from subchain.errors import InputError
from subchain.inference import EM

RNG = np.random.default_rng(5)
N = 6000
STATES = np.repeat(RNG.integers(0, 3, N // 10), 10)
MEANS = np.array([[0.0, 1.0, -1.0], [3.0, -2.0, 0.0], [-3.0, 0.0, 2.0]])
REAL = MEANS[STATES] + RNG.normal(size=(N, 3))
FAMILIES: dict[str, tuple[Any, Any]] = {
    "symbols": (Categorical(), (STATES * 3 + RNG.integers(0, 5, N)).astype(np.int32)),
    "Gaussian": (Gaussian(), REAL),
    "Gaussian, one column": (Gaussian(), REAL[:, 0].copy()),
    "Gaussian, single precision": (Gaussian(), REAL.astype(np.float32)),
    "diagonal Gaussian": (DiagonalGaussian(), REAL),
    "counts": (Poisson(), RNG.poisson(np.exp(0.5 * MEANS[STATES] + 1.0))),
    "large counts": (Poisson(), RNG.poisson(1000.0 * np.exp(0.5 * MEANS[STATES] + 1.0))),
    "flags": (Bernoulli(), (RNG.random((N, 5)) < 0.2 + 0.3 * STATES[:, None]).astype(np.int8)),
    "numbers, counts and symbols": (
        Product(a=Gaussian(columns=[0, 2]), b=Poisson(columns=[1]), c=Categorical(columns=[3])),
        np.column_stack(
            [
                REAL[:, 0],
                RNG.poisson(np.exp(0.5 * MEANS[STATES, 1] + 1.0)),
                REAL[:, 1],
                (STATES + RNG.integers(0, 3, N)),
            ]
        ),
    ),
    "a product of one": (Product(a=Poisson(columns=[1])), RNG.poisson(np.exp(0.5 * MEANS[STATES] + 1.0))),
}
#: Those whose observations are read by the same functions as others', which sums and scores are compared for.
READ_ALIKE = ("Gaussian, single precision", "a product of one")
OTHERS = [name for name in FAMILIES if name not in READ_ALIKE]
SHAPES = {
    "one chain": np.array([0, N]),
    "many": np.arange(0, N + 1, 20),
    "ragged": np.concatenate(([0, 0], np.sort(RNG.choice(N - 1, 150, replace=False)) + 1, [N])),
}


@pytest.fixture(autouse=True)
def _small_data_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "LARGE", 0)


def with_gaps(values: Any) -> Any:
    """A copy with missing entries, among them whole rows."""
    out, where = values.copy(), np.random.default_rng(1).random(values.shape) < 0.02
    out[where] = np.nan if values.dtype.kind == "f" else -1
    out[100:103] = np.nan if values.dtype.kind == "f" else -1
    return out


def fitted(family: Any, data: Sequences) -> HMM:
    return HMM(3, family, inference=EM(max_iter=2, tolerance=0, search=False), init="kmeans", random_state=0).fit(data)


def surrogate_of(model: HMM) -> Surrogate:
    return Surrogate(model.initial_, model.transition_, model.emission_)


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused.Fused, "where_it_can", classmethod(lambda cls, *pass_: None))


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FAMILIES)
def test_statistics_and_scores_are_those_of_tiles(
    name: str, shape: str, gaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, values = FAMILIES[name]
    data = Sequences(with_gaps(values) if gaps else values, SHAPES[shape])
    model = fitted(family, data)
    surrogate, weights = surrogate_of(model), np.random.default_rng(2).random(data.n_sequences)
    for part in (Part(data), Part(data, weights=weights)):
        ours = [CpuEngine(jobs).statistics(surrogate, part) for jobs in (1, 3)]
        scores = CpuEngine(1).scores(surrogate, part)[0]
        with monkeypatch.context() as patch:
            one_by_one(patch)
            theirs, expected = CpuEngine(1).statistics(surrogate, part), CpuEngine(1).scores(surrogate, part)[0]
        for key, array in ours[0].arrays().items():
            np.testing.assert_allclose(array, theirs.arrays()[key], rtol=1e-9, atol=1e-9, err_msg=key)
            np.testing.assert_array_equal(array, ours[1].arrays()[key], err_msg=f"{key}, three threads")
        np.testing.assert_allclose(scores, expected, rtol=1e-11)


MASKS = {
    "left-right": np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]]),
    "a circle": np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.1, 0.0, 0.9]]),
    "in step": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "two chains": np.array([[0.8, 0.2, 0.0], [0.3, 0.7, 0.0], [0.0, 0.0, 1.0]]),
}


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["symbols", "Gaussian"])
def test_chains_with_forbidden_transitions(name: str, mask: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, values = FAMILIES[name]
    model, data = fitted(family, Sequences(values, SHAPES[shape])), Sequences(values, SHAPES[shape])
    surrogate, part, rng = Surrogate(np.array([0.6, 0.4, 0.0]), MASKS[mask], model.emission_), Part(data), RNG
    grid = Grid(data.offsets, 40)
    batch = grid.batch(np.arange(0, grid.size, 2), None)
    start, stop = rng.random((2, 3, batch.size))

    def run(jobs: int) -> list[Any]:
        engine = CpuEngine(jobs)
        return [
            *engine.statistics(surrogate, part).arrays().values(), engine.scores(surrogate, part)[0],
            *engine.minibatch(surrogate, part, batch, start, stop).statistics.arrays().values(),
        ]  # fmt: skip

    ours, others, ran = run(1), run(3), []
    run_fused = fused.Fused.run
    monkeypatch.setattr(fused.Fused, "run", lambda self, *rest, **more: ran.append(1) or run_fused(self, *rest, **more))
    run(1)
    assert ran
    one_by_one(monkeypatch)
    monkeypatch.setattr(minibatches, "compiled_family", lambda messages: None)
    for mine, other, theirs in zip(ours, others, run(1), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8)
        np.testing.assert_array_equal(mine, other)


def told(kind: str) -> dict[str, Any]:
    """Evidence of one kind, or of all kinds at once, which agrees with the true states."""
    rng = np.random.default_rng(4)
    states = np.where(rng.random(N) < 0.2, STATES, -1)
    legal = rng.random((N, 3)) < 0.8
    legal[np.arange(N), STATES] = True
    of_symbols = rng.random((11, 3)) < 0.6
    of_symbols[np.arange(11), np.arange(11) // 4] = True
    of_symbols[FAMILIES["symbols"][1], STATES] = True
    weights = rng.normal(size=(N, 3))
    match kind:
        case "states":
            return {"states": states.astype(np.int8)}
        case "weights":
            return {"evidence": weights.astype(np.float32)}
        case "legal":
            return {"allowed": legal}
        case "symbols":
            return {"allowed": of_symbols}
        case _:
            return {"allowed": legal, "states": states, "evidence": weights}


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("shape", ["one chain", "ragged"])
@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("symbols", "symbols"), *((n, k) for n in ("symbols", "Gaussian") for k in ("states", "weights", "legal", "all"))],
)
def test_evidence_counts_as_in_tiles(
    name: str, kind: str, permuted: bool, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, values = FAMILIES[name]
    data = Sequences(with_gaps(values), SHAPES[shape])
    model = fitted(family, data)
    surrogate = Surrogate(np.full(3, 1 / 3), model.transition_, model.emission_)
    evidence = Evidence.build(data, 3, **told(kind), n_symbols=11)
    part = Part(data, evidence.take(np.array([2, 0, 1])) if permuted else evidence)

    def run(jobs: int) -> list[Any]:
        engine, rows = CpuEngine(jobs), np.empty((N, 3))
        engine.smooth(surrogate, part, WriteMarginals(rows))
        paths = engine.viterbi(surrogate, part)
        return [*engine.statistics(surrogate, part).arrays().values(), engine.scores(surrogate, part)[0], rows, *paths]

    ours, others = run(1), run(3)
    one_by_one(monkeypatch)
    monkeypatch.setattr(decode, "compiled_family", lambda *messages, **settings: None)
    for mine, other, theirs in zip(ours, others, run(1), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(mine, other)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", FAMILIES)
def test_no_tile_of_complete_data_is_left_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, values = FAMILIES[name]
    done, run = [], fused.FusedPass.run

    def watched(self: Any, groups: Any) -> None:
        run(self, groups)
        done.extend(self.done.tolist())

    monkeypatch.setattr(fused.FusedPass, "run", watched)
    fitted(family, Sequences(values, SHAPES["one chain"]))
    assert done
    assert all(done)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
def test_a_tile_that_underflows_is_left_to_the_general_way(monkeypatch: pytest.MonkeyPatch) -> None:
    x = REAL.copy()
    x[3000:3004] += 80.0  # each state all but excludes these
    data = Sequences(x, SHAPES["many"])
    model = fitted(Gaussian(), Sequences(REAL, SHAPES["many"]))
    surrogate = surrogate_of(model)
    ours = CpuEngine(1).scores(surrogate, Part(data))[0]
    one_by_one(monkeypatch)
    np.testing.assert_allclose(ours, CpuEngine(1).scores(surrogate, Part(data))[0], rtol=1e-11)
    assert np.isfinite(ours).all()


class Flattened(CategoricalParameters):
    """Parameters of a user's own that inherit compiled verbs, and weigh symbols in another way."""

    def scaled(self, values: Any, out: Any) -> Any:
        shift = super().scaled(values, out)
        np.sqrt(out, out=out)
        return 0.5 * shift


def test_a_method_that_a_user_replaces_is_the_one_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[0.7, 0.2], [0.2, 0.2], [0.1, 0.6]])
    chain = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]])
    part = Part(Sequences(np.random.default_rng(0).integers(0, 3, 500)))
    found = CpuEngine(1).scores(Surrogate(*chain, Flattened(table)), part)[0]
    assert found != CpuEngine(1).scores(Surrogate(*chain, CategoricalParameters(table)), part)[0]
    one_by_one(monkeypatch)
    np.testing.assert_array_equal(found, CpuEngine(1).scores(Surrogate(*chain, Flattened(table)), part)[0])


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["mapped", "read only", "strided", "by columns"])
def test_observations_may_lie_anywhere(kind: str, tmp_path: Path) -> None:
    values = REAL.copy()
    if kind == "mapped":
        np.save(tmp_path / "x.npy", values)
        values = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "read only":
        values.flags.writeable = False
    elif kind == "by columns":
        values = np.asfortranarray(values)
    else:
        values = np.repeat(values, 2, axis=0)[::2]
    surrogate = surrogate_of(fitted(Gaussian(), Sequences(REAL, SHAPES["many"])))
    ours = CpuEngine(2).statistics(surrogate, Part(Sequences(values, SHAPES["many"])))
    theirs = CpuEngine(2).statistics(surrogate, Part(Sequences(REAL, SHAPES["many"])))
    for key, array in ours.arrays().items():
        np.testing.assert_allclose(array, theirs.arrays()[key], rtol=1e-10, atol=1e-10)


def test_a_code_beyond_the_symbols_is_an_error() -> None:
    surrogate = Surrogate(np.ones(1), np.ones((1, 1)), CategoricalParameters(np.full((2, 1), 0.5)))
    with pytest.raises(InputError, match="beyond the symbols"):
        CpuEngine(2).statistics(surrogate, Part(Sequences(np.array([0, 1, 2]))))


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("family", ["poisson", "bernoulli", "categorical"])
def test_types_that_kernels_do_not_know_are_read_all_the_same(family: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, 300)
    codes = x.astype(np.float16)
    if family == "categorical":
        codes[7] = np.nan  # whole numbers with a gap are codes
    model = HMM(2, family, inference=EM(max_iter=3, tolerance=0), random_state=0).fit(codes)
    other = HMM(2, family, inference=EM(max_iter=3, tolerance=0), random_state=0).fit(codes.astype(np.float64))
    assert model.score(codes) == pytest.approx(other.score(codes), rel=1e-12)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_marginals_and_best_states_are_those_of_tiles(shape: str, gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences(with_gaps(REAL) if gaps else REAL, SHAPES[shape])
    model = fitted(Gaussian(), data)
    ours = [model.set_params(n_jobs=jobs).predict_proba(data) for jobs in (1, 3)]
    best, filtered = model.predict(data), model.filter(data)
    one_by_one(monkeypatch)
    for mine, theirs in zip(as_list(filtered), as_list(model.filter(data)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
    for mine, other, theirs in zip(as_list(ours[0]), as_list(ours[1]), as_list(model.predict_proba(data)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(mine, other)
    for states, theirs in zip(as_list(best), as_list(model.predict(data)), strict=True):
        np.testing.assert_array_equal(states, theirs)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OTHERS)
def test_best_paths_are_those_of_tiles(name: str, shape: str, gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    family, values = FAMILIES[name]
    data = Sequences(with_gaps(values) if gaps else values, SHAPES[shape])
    surrogate, part = surrogate_of(fitted(family, data)), Part(data)
    ours, others = (CpuEngine(jobs).viterbi(surrogate, part) for jobs in (1, 3))
    monkeypatch.setattr(decode, "compiled_family", lambda *messages, **settings: None)
    states, log_probability = CpuEngine(1).viterbi(surrogate, part)
    np.testing.assert_array_equal(ours[0], states)
    np.testing.assert_array_equal(ours[0], others[0])
    np.testing.assert_allclose(ours[1], log_probability, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OTHERS)
def test_minibatches_are_those_of_tiles(name: str, shape: str, weighed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    family, values = FAMILIES[name]
    data = Sequences(with_gaps(values) if weighed else values, SHAPES[shape])
    surrogate, part, rng = surrogate_of(fitted(family, data)), Part(data), np.random.default_rng(3)
    grid = Grid(data.offsets, 40)
    chosen = np.sort(rng.choice(grid.size, grid.size // 2, replace=False))
    batch = grid.batch(chosen, rng.random(data.n_sequences) if weighed else None)
    start, stop = rng.random((2, 3, batch.size))
    ours, others = (CpuEngine(jobs).minibatch(surrogate, part, batch, start, stop) for jobs in (1, 3))
    monkeypatch.setattr(minibatches, "compiled_family", lambda messages: None)
    theirs = CpuEngine(1).minibatch(surrogate, part, batch, start, stop)
    for key, array in ours.statistics.arrays().items():
        np.testing.assert_allclose(array, theirs.statistics.arrays()[key], rtol=1e-9, atol=1e-9, err_msg=key)
        np.testing.assert_array_equal(array, others.statistics.arrays()[key], err_msg=f"{key}, three threads")
    np.testing.assert_allclose(ours.log_totals, theirs.log_totals, rtol=1e-9)
    for one, other in zip(ours.ends, theirs.ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)


def as_list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
def test_marginals_may_be_written_in_another_byte_order() -> None:
    data = Sequences(REAL[:200])
    model, out = fitted(Gaussian(), data), np.empty((200, 3), dtype=np.dtype(np.float64).newbyteorder())
    model.predict_proba(data, out=out)
    np.testing.assert_array_equal(out, model.predict_proba(data))


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_drawn_paths_are_those_of_tiles(shape: str, gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sequences(with_gaps(REAL) if gaps else REAL, SHAPES[shape])
    surrogate, seed = surrogate_of(fitted(Gaussian(), data)), np.random.SeedSequence(3)
    ours, others = (CpuEngine(jobs).sample_paths(surrogate, Part(data), 3, seed) for jobs in (1, 3))
    one_by_one(monkeypatch)
    np.testing.assert_array_equal(ours, others)
    np.testing.assert_array_equal(ours, CpuEngine(1).sample_paths(surrogate, Part(data), 3, seed))
