"""Every verb of an engine: the plain reference against the processor's engine; engines that are objects."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
import tables
from chains import left_right, sticky
from hypothesis import given
from hypothesis import strategies as st
from naive_engine import NaiveEngine
from tables import Case, random_case

from subchain import EM, HMM, SVI, select_states
from subchain.core.components import clone
from subchain.data import Evidence
from subchain.engines import ENGINES, CpuEngine, Part, resolve_engine
from subchain.engines.base import VERBS, BufferGrowth
from subchain.engines.subchains import Grid
from subchain.errors import ImpossibleSequenceError, InputError
from subchain.propagation.occurrence.methods import METHODS
from subchain.transitions import banded, cyclic
from subchain.transitions import left_right as forward_only

NAIVE, CPU = NaiveEngine(), CpuEngine(1)
WEIGHTS = np.array([1.0, 2.5, 0.5, 3.0])


def hard_case() -> Case:
    case = random_case([20, 0, 2, 30], 3, np.eye(3))
    case.logs[20:22] = [[-800.0, -801.0, 0.0], [0.0, 0.0, -np.inf]]
    return case


def known_case() -> Case:
    case, rng = random_case([9, 14, 0, 2], 7), np.random.default_rng(1)
    case.evidence = Evidence.build(case.data, 7, states=np.where(rng.random(25) < 0.8, rng.integers(7, size=25), -1))
    return case


def banded_case(mask: Any, spread: float = 1.0, seed: int = 0) -> Case:
    moves = np.random.default_rng(seed).random(mask.shape) * mask
    case = random_case([13, 7, 0, 30], len(mask), moves / moves.sum(axis=1, keepdims=True), spread)
    case.is_banded = True
    return case


CASES = {
    "ragged": random_case([11, 0, 1, 30], 4),
    "one state": random_case([3, 1, 0, 5], 1),
    "sticky": random_case([40, 8, 0, 1], 3, sticky(3, 0.99), 0.3),
    "left to right": random_case([17, 6, 0, 3], 4, left_right(4, 0.8)),
    "rows that lose weight": random_case([12, 20, 3, 0], 3, 0.6 * sticky(3, 0.5)),
    "few legal states": known_case(),
    "in log space": hard_case(),
    "a band": banded_case(banded(9, 1)),
    "a band from left to right": banded_case(forward_only(9, 2)),
    "a band on a circle": banded_case(cyclic(9, 2)),
    "a band in log space": banded_case(forward_only(8, 1), 300.0),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def agree(ours: Any, theirs: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def normalized(table: Any) -> Any:
    return table / table.sum(axis=0)


def batch_of(case: Case, length: int | None = 4, weighted: bool = True) -> Any:
    grid = Grid(case.data.offsets, length)
    return grid.batch(np.arange(grid.size), WEIGHTS if weighted else None)


def messages_for(case: Case, size: int) -> Any:
    """Weights of first states that the evidence and the rest of a chain may have left, and messages from the right."""
    rng, n_states = np.random.default_rng(7), case.surrogate.n_states
    return rng.random((n_states, size)), rng.random((n_states, size)) + 0.1


# ---- every verb ------------------------------------------------------------------------------------------------------


def test_statistics_and_scores(case: Case):
    part = Part(case.data, case.evidence, WEIGHTS)
    theirs, ours = (engine.statistics(case.surrogate, part) for engine in (NAIVE, CPU))
    for name, array in ours.arrays().items():
        agree(array, theirs.arrays()[name])
    agree(ours.log_normalizer, theirs.log_normalizer)
    assert ours.n_observations == theirs.n_observations
    agree(CPU.scores(case.surrogate, part)[0], NAIVE.scores(case.surrogate, part)[0])


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(sum),
    n_states=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_statistics_of_random_cases(lengths: list[int], n_states: int, seed: int):
    case = random_case(lengths, n_states, seed=seed)
    theirs, ours = (engine.statistics(case.surrogate, case.part) for engine in (NAIVE, CPU))
    for name, array in ours.arrays().items():
        agree(array, theirs.arrays()[name])


def test_marginals_given_all_and_given_the_past(case: Case):
    for write, shape in (
        (tables.smooth, case.logs.shape),
        (tables.filter, case.logs.shape),
        (tables.log_increments, case.logs.shape[:1]),
    ):
        ours, theirs = np.empty(shape), np.empty(shape)
        totals = [write(engine, case.surrogate, case.part, out) for engine, out in ((CPU, ours), (NAIVE, theirs))]
        agree(ours, theirs)
        agree(*totals)
    ours, theirs = np.empty(len(case.logs), dtype=int), np.empty(len(case.logs), dtype=int)
    tables.best_states(CPU, case.surrogate, case.part, ours)
    tables.best_states(NAIVE, case.surrogate, case.part, theirs)
    np.testing.assert_array_equal(ours, theirs)


def test_hidden_positions_say_nothing(case: Case):
    hidden = np.random.default_rng(3).random(len(case.logs)) < 0.4
    part = Part(case.data, case.evidence, hidden=hidden)
    ours, theirs = np.empty(case.logs.shape), np.empty(case.logs.shape)
    tables.smooth(CPU, case.surrogate, part, ours)
    tables.smooth(NAIVE, case.surrogate, part, theirs)
    agree(ours, theirs)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_blocks_in_order(case: Case, size: int):
    blocks = list(CPU.smooth_in_order(case.surrogate, case.part, size))
    expected = np.concatenate([table for _, table in NAIVE.smooth_in_order(case.surrogate, case.part, 5)])
    assert [first for first, _ in blocks] == np.cumsum([0, *(len(table) for _, table in blocks)])[:-1].tolist()
    assert max(len(table) for _, table in blocks) <= size
    agree(np.concatenate([table for _, table in blocks]), expected)


@pytest.mark.parametrize("verb", ["predict", "leave_out"])
def test_states_given_other_observations(case: Case, verb: str):
    found = []
    for engine in (CPU, NAIVE):
        table = np.full(case.logs.shape, np.nan)
        getattr(engine, verb)(case.surrogate, case.part, lambda block, table=table: block.write(table)).checked()
        found.append(table)
    agree(*found)


def test_scores_of_observations_that_are_left_out(case: Case):
    agree(*(engine.score_left_out(case.surrogate, case.part) for engine in (CPU, NAIVE)))


def test_best_paths(case: Case):
    (ours, scores), (theirs, expected) = (engine.viterbi(case.surrogate, case.part) for engine in (CPU, NAIVE))
    np.testing.assert_array_equal(ours, theirs)
    agree(scores, expected)


def test_drawn_paths(case: Case):
    seed = np.random.SeedSequence(4)
    np.testing.assert_array_equal(*(engine.sample_paths(case.surrogate, case.part, 3, seed) for engine in (CPU, NAIVE)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["ragged", "one state", "sticky", "left to right", "rows that lose weight", "a band"])
def test_occurrence_of_transitions(name: str, method: str):
    part, surrogate = Part(CASES[name].data, weights=WEIGHTS), CASES[name].surrogate
    ours, theirs = (engine.occurrence(surrogate, part, method, 20, 5) for engine in (CPU, NAIVE))
    agree(ours.first, theirs.first)
    # pairs leave out what adds less than a two-hundredth
    agree(ours.moves, theirs.moves, 0.0052 if method == "pairs" else 1e-10)


@pytest.mark.parametrize("length", [1, 4, None])
def test_minibatches_between_given_messages(case: Case, length: int | None):
    batch, marginals = batch_of(case, length), np.zeros((2, *case.logs.shape))
    start, stop = messages_for(case, batch.size)
    runs = []
    for engine, table in zip((CPU, NAIVE), marginals, strict=True):

        def keep(positions: Any, found: Any, table: Any = table) -> None:
            table[positions] = found.T

        runs.append(engine.minibatch(case.surrogate, case.part, batch, start, stop, keep))
    ours, theirs = runs
    for name, array in ours.statistics.arrays().items():
        agree(array, theirs.statistics.arrays()[name])
    agree(ours.log_totals, theirs.log_totals)
    agree(*marginals)
    for one, other in zip(ours.ends, theirs.ends, strict=True):
        agree(normalized(one), normalized(other))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["ragged", "one state", "left to right", "a band"])
def test_the_surplus_of_minibatches(name: str, method: str):
    case = CASES[name]
    batch = batch_of(case)
    start, stop = messages_for(case, batch.size)
    ours, theirs = (
        engine.minibatch(case.surrogate, case.part, batch, start, stop, surplus=method).surplus
        for engine in (CPU, NAIVE)
    )
    agree(ours, theirs, 1e-10 if method != "pairs" else 0.05)


@pytest.mark.parametrize(
    "name", ["ragged", "sticky", "left to right", "rows that lose weight", "few legal states", "a band"]
)
def test_messages_over_buffers(name: str):
    case = CASES[name]
    batch, data = batch_of(case, 3, weighted=False), case.data
    before = np.minimum(batch.starts - data.offsets[batch.sequences], 5)
    after = np.minimum(data.offsets[batch.sequences + 1] - batch.starts - batch.lengths, np.arange(batch.size) % 4)
    outside = np.full(case.surrogate.n_states, 1.0 / case.surrogate.n_states)
    ours, theirs = (
        engine.approach(case.surrogate, case.part, batch, outside, before, after) for engine in (CPU, NAIVE)
    )
    for one, other in zip(ours, theirs, strict=True):
        agree(one, other)


@pytest.mark.parametrize("name", ["ragged", "sticky", "left to right", "a band on a circle"])
@pytest.mark.parametrize("growth", [BufferGrowth(1e-2, 1, 50), BufferGrowth(1e-6, 3, 7)])
def test_buffers_that_grow(name: str, growth: BufferGrowth):
    case = CASES[name]
    batch = batch_of(case, 2, weighted=False)
    outside = np.full(case.surrogate.n_states, 1.0 / case.surrogate.n_states)
    ours, theirs = (engine.grow(case.surrogate, case.part, batch, outside, growth) for engine in (CPU, NAIVE))
    np.testing.assert_array_equal(ours.reach, theirs.reach)
    agree(ours.start, theirs.start)
    agree(ours.stop, theirs.stop)


def test_distances_of_opposite_starts(case: Case):
    starts = np.array([0, 3, 1, 2])
    agree(*(engine.distances(case.surrogate, case.part, starts, 5) for engine in (CPU, NAIVE)))


@pytest.mark.parametrize("engine", [CPU, NAIVE], ids=["cpu", "naive"])
def test_impossible_sequences_are_found(engine: Any):
    case = random_case([10, 7], 2)
    case.logs[13] = -np.inf
    batch = batch_of(case, None, weighted=False)
    start, stop = messages_for(case, batch.size)
    assert engine.scores(case.surrogate, case.part).impossible == {1: 3}
    assert engine.smooth(case.surrogate, case.part, lambda block: None).impossible == {1: 3}
    for ask in (
        lambda: engine.statistics(case.surrogate, case.part),
        lambda: engine.viterbi(case.surrogate, case.part),
        lambda: engine.sample_paths(case.surrogate, case.part, 1, np.random.SeedSequence(0)),
        lambda: engine.occurrence(case.surrogate, case.part),
        lambda: engine.score_left_out(case.surrogate, case.part),
        lambda: list(engine.smooth_in_order(case.surrogate, case.part, 3)),
        lambda: engine.minibatch(case.surrogate, case.part, batch, start, stop),
    ):
        with pytest.raises(ImpossibleSequenceError, match="sequence 1 .* position 3"):
            ask()


# ---- engines that are objects ----------------------------------------------------------------------------------------


def test_both_have_all_verbs():
    for engine in (NAIVE, CPU):
        assert resolve_engine(engine) is engine


def test_an_engine_that_lacks_verbs_is_told_which():
    class Half(NaiveEngine):
        viterbi = None
        minibatch = None

    with pytest.raises(InputError, match=r"subchain\.engines\.Engine, but .* lacks viterbi, minibatch"):
        HMM(2, "categorical", engine=Half()).fit([0, 1, 0, 0])
    with pytest.raises(InputError, match="is a class; write"):
        HMM(2, "categorical", engine=NaiveEngine).fit([0, 1, 0, 0])
    with pytest.raises(InputError, match="unknown engine 'gpu'; known are 'auto', 'cpu'"):
        HMM(2, "categorical", engine="gpu").fit([0, 1, 0, 0])
    with pytest.raises(InputError, match="unknown precision 'half'; known are 'double'"):
        CpuEngine(precision="half")


def test_names_are_kept_in_one_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ENGINES, "naive", lambda n_jobs: NAIVE)
    x = np.random.default_rng(0).integers(3, size=40)
    ours, theirs = (HMM(2, "categorical", engine=name, random_state=0).fit(x) for name in ("cpu", "naive"))
    agree(ours.transition_, theirs.transition_, 1e-8)


class Counting:
    """Does its work by another engine, and keeps the names of its verbs in the order in which they are called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.lock = threading.Lock()  # cannot be copied, like a handle of a device

    def __getattr__(self, name: str) -> Any:
        if name not in VERBS:
            raise AttributeError(name)

        def ask(*arguments: Any, **more: Any) -> Any:
            self.calls.append(name)
            return getattr(CPU, name)(*arguments, **more)

        return ask


def test_an_engine_that_counts_its_calls():
    engine, x = Counting(), np.random.default_rng(0).integers(3, size=300)
    HMM(2, "categorical", inference=EM(max_iter=3, tolerance=0.0), engine=engine, random_state=0).fit(x)
    assert engine.calls.count("statistics") >= 3
    algorithm = SVI(length=20, batch=2, max_updates=5, report_every=1)
    model = HMM(2, "categorical", inference=algorithm, engine=engine, random_state=0).fit(x)
    assert engine.calls.count("minibatch") >= 5
    model.predict(x, decoding="viterbi")
    assert engine.calls.count("viterbi") == 1


def test_a_fit_asks_for_nothing_before_the_engine_is_told_that_it_runs():
    engine, x = Counting(), np.random.default_rng(0).normal(size=3000)
    HMM(2, "gaussian", inference=SVI(max_updates=2), engine=engine, random_state=0).fit(x)
    assert engine.calls[0] == "running"
    assert "distances" in engine.calls  # the length was measured


def test_copies_of_a_model_share_its_engine():
    model = HMM(2, "categorical", engine=Counting())
    assert clone(model).engine is model.engine
    select_states(np.random.default_rng(0).integers(3, size=200), [1, 2], model=model, n_init=1, random_state=0)
    assert "statistics" in model.engine.calls


def test_an_engine_can_be_copied_and_goes_into_files_if_it_is_of_the_package(tmp_path):
    engine = CpuEngine(3)
    for other in (copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))):
        assert (other.workers.n_jobs, other.precision) == (3, "double")
    model = HMM(2, "categorical", engine=engine, random_state=0).fit([0, 1, 1, 0, 0, 1])
    model.save(tmp_path / "model")
    assert repr(HMM.load(tmp_path / "model").engine) == "Cpu(n_jobs=3)"
    model.set_params(engine=NAIVE).save(tmp_path / "other")
    assert HMM.load(tmp_path / "other").engine == "auto"
