"""Legal states alone or all states: the engine's answers are the same, whatever is known and whoever computes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import naive
import numpy as np
import pytest
import tables
from chains import left_right, random_rows
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_models import FAMILIES, emission, with_holes
from tables import Case, TableLikelihood, random_case

from subchain import EM, HMM
from subchain.data import Evidence, Sequences, evidence
from subchain.data.legal_states import LegalStates
from subchain.emissions.base import Likelihood
from subchain.emissions.categorical import CategoricalTable
from subchain.engines import CpuEngine, Part, Surrogate
from subchain.engines.cpu import listed as legal
from subchain.engines.cpu.messages import Messages
from subchain.errors import ImpossibleSequenceError

#: Families that rule out no state themselves.
OPEN = [family for family in FAMILIES if family != "block_sparse"]


ENGINE = CpuEngine(1)
MARGINALS = [
    (tables.smooth, 2, float),
    (tables.filter, 2, float),
    (tables.best_states, 1, int),
    (tables.log_increments, 1, float),
]


@contextlib.contextmanager
def over(which: str, block: int = legal.BLOCK, most: int = legal.MOST_ENTRIES) -> Iterator[None]:
    """Passes over legal states however many there are, or over all states however few are legal."""
    share = {"legal states": 1.0, "all states": -1.0}[which]
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(evidence, "MAX_FRACTION", share))
        stack.enter_context(mock.patch.object(legal, "BLOCK", block))
        stack.enter_context(mock.patch.object(legal, "MOST_ENTRIES", most))
        yield


def answers(
    surrogate: Surrogate, data: Sequences, known: dict[str, Any], weights: Any = None, engine: CpuEngine = ENGINE
) -> dict[str, NDArray[Any]]:
    """All that passes over lists are made for."""
    found = Evidence.build(data, surrogate.n_states, **known)
    part = Part(data, found, weights)
    statistics = engine.statistics(surrogate, part)
    scores, impossible = engine.scores(surrogate, part)
    assert not impossible
    out: dict[str, NDArray[Any]] = {**statistics.arrays(), "scores": scores}
    for write, n_axes, dtype in MARGINALS:
        table = np.empty((data.n_observations, surrogate.n_states)[:n_axes], dtype)
        out[f"{write.__name__} totals"] = write(engine, surrogate, part, table)
        out[write.__name__] = table
    given = np.arange(data.n_observations) % surrogate.n_states
    out["beliefs of states"] = np.empty(data.n_observations)
    tables.of_states(engine, surrogate, part, given, out["beliefs of states"])
    np.testing.assert_allclose(out["beliefs of states"], out["smooth"][np.arange(len(given)), given], atol=1e-14)
    path, out["best paths"] = engine.viterbi(surrogate, part)
    np.testing.assert_allclose(
        path_scores(tables.messages(surrogate, part), path), out["best paths"], rtol=1e-11, atol=1e-11
    )
    return out


def path_scores(messages: Messages, path: NDArray[Any]) -> list[float]:
    """Log joint probability of the path and the observations of each sequence."""
    data, surrogate = messages.data, messages.surrogate
    _, logs = messages.log_likelihood(np.arange(data.n_observations))
    return [
        naive.path_log_probability(states, table, surrogate.initial, surrogate.transition.dense())
        for states, table in zip(data.split(path), data.split(logs), strict=True)
    ]


def assert_the_same(ours: dict[str, NDArray[Any]], theirs: dict[str, NDArray[Any]]) -> None:
    for name, array in ours.items():
        size = np.abs(theirs[name]).max(initial=0.0)
        np.testing.assert_allclose(array, theirs[name], rtol=1e-12, atol=1e-12 * size, err_msg=name)


def random_knowledge(kind: str, rng: np.random.Generator, n: int, n_states: int) -> dict[str, Any]:
    legal_states = rng.random((n, n_states)) < 0.4
    legal_states[np.arange(n), rng.integers(n_states, size=n)] = True
    if kind == "legal states":
        return {"allowed": [legal_states]}
    if kind == "known states":
        return {"states": np.where(rng.random(n) < 0.6, rng.integers(n_states, size=n), -1)}
    return {"evidence": np.where(legal_states, rng.normal(scale=3.0, size=(n, n_states)), -np.inf)}


def observations(likelihood: Any, n: int, seed: int) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    return with_holes(likelihood.sample(rng.integers(3, size=n), rng), seed)


# ---- the same answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", OPEN)
@pytest.mark.parametrize("kind", ["legal states", "known states", "soft evidence"])
def test_every_family_gives_the_same_answers(family: str, kind: str) -> None:
    rng, likelihood = np.random.default_rng(1), emission(family)
    surrogate = Surrogate(random_rows(rng, 3), random_rows(rng, 3, 3), likelihood)
    data = Sequences(observations(likelihood, 60, 2), [0, 17, 17, 18, 60])
    known = random_knowledge(kind, rng, 60, 3)
    known = {name: data.split(given[0]) if isinstance(given, list) else given for name, given in known.items()}
    with over("all states"):
        expected = answers(surrogate, data, known)
    with over("legal states"):
        assert_the_same(answers(surrogate, data, known), expected)


@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=30).filter(sum),
    n_states=st.integers(1, 30),
    kind=st.sampled_from(["known states", "soft evidence"]),
    block=st.sampled_from([4, 50, 1 << 15]),
    weighted=st.booleans(),
    seed=st.integers(0, 99),
)
def test_sequences_of_all_shapes_give_the_same_answers(
    lengths: list[int], n_states: int, kind: str, block: int, weighted: bool, seed: int
) -> None:
    case, rng = random_case(lengths, n_states, seed=seed), np.random.default_rng(seed)
    known = random_knowledge(kind, rng, len(case.logs), n_states)
    weights = rng.exponential(size=len(lengths)) if weighted else None
    with over("all states"):
        expected = answers(case.surrogate, case.data, known, weights)
    with over("legal states", block):
        assert_the_same(answers(case.surrogate, case.data, known, weights), expected)


def test_a_dictionary_gives_the_same_answers_at_missing_and_unknown_symbols() -> None:
    rng, likelihood = np.random.default_rng(3), emission("categorical")
    surrogate = Surrogate(random_rows(rng, 3), random_rows(rng, 3, 3), likelihood)
    data = Sequences(observations(likelihood, 500, 0), np.arange(0, 501, 20))
    known = {"allowed": {0: [1], 1: [0, 2]}, "n_symbols": 4}
    with over("all states"):
        expected = answers(surrogate, data, known)
    with over("legal states"):
        assert_the_same(answers(surrogate, data, known), expected)


@pytest.mark.parametrize("block", [64, 1000, 1 << 17])
def test_long_chains_are_cut_where_a_state_is_known(block: int) -> None:
    case, rng = random_case([5000, 3, 0, 7001], 12), np.random.default_rng(0)
    states = np.where(rng.random(12_004) < 0.2, rng.integers(12, size=12_004), -1)
    with over("all states"):
        expected = answers(case.surrogate, case.data, {"states": states})
    with over("legal states", block):
        found = Evidence.build(case.data, 12, states=states)
        runs = legal.LegalMessages.where_it_pays(tables.messages(case.surrogate, Part(case.data, found)))
        assert runs is not None
        assert (len(runs.pieces.starts) > 3) == (block < 1 << 17)
        assert_the_same(answers(case.surrogate, case.data, {"states": states}), expected)


def test_a_chain_that_cannot_be_cut_is_run_over_all_states() -> None:
    case = random_case([3000, 20], 9)
    soft = np.full((3020, 9), -np.inf)
    soft[:, :2] = np.random.default_rng(0).normal(size=(3020, 2))
    with over("all states"):
        expected = answers(case.surrogate, case.data, {"evidence": soft})
    with over("legal states", block=100, most=2000):
        found = Evidence.build(case.data, 9, evidence=soft)
        assert legal.LegalMessages.where_it_pays(tables.messages(case.surrogate, Part(case.data, found))) is None
        assert_the_same(answers(case.surrogate, case.data, {"evidence": soft}), expected)


def test_sequences_without_positions_give_empty_statistics() -> None:
    case = random_case([0, 0], 4)
    found = Evidence.build(case.data, 4, states=np.empty(0, dtype=np.int64))
    with over("legal states"):
        statistics = ENGINE.statistics(case.surrogate, Part(case.data, found))
    assert statistics.pairs.sum() == statistics.initial.sum() == statistics.log_normalizer == 0.0


# ---- what a double cannot hold ---------------------------------------------------------------------------------------


def hard_cases() -> dict[str, Case]:
    rng = np.random.default_rng(4)
    comes_back = random_case([30, 12, 25], 4, np.eye(4))
    comes_back.logs[30:36, 0] -= 200.0
    comes_back.logs[36:42, 1] -= 210.0
    steep = random_case([40, 40], 4, spread=690.0)
    tiny = random_case([40, 40], 4)
    tiny.logs -= 690.0
    steps = random_case([200, 30], 4, left_right(4, 0.999), 5.0)
    steps.initial = np.array([1.0, 0.0, 0.0, 0.0])
    zeros = random_case([60, 60], 4, random_rows(rng, 4, 4, zeros=0.3))
    return {"comes back": comes_back, "steep": steep, "tiny": tiny, "left to right": steps, "zeros": zeros}


@pytest.mark.parametrize("name", hard_cases())
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_hard_sequences_give_the_same_answers(name: str, scale: float) -> None:
    case, rng = hard_cases()[name], np.random.default_rng(1)
    soft = rng.normal(scale=scale, size=case.logs.shape)
    soft[rng.random(soft.shape) < 0.1] = -np.inf
    soft[:, 0] = np.maximum(soft[:, 0], -5.0)
    soft[30:42, :2] = np.maximum(soft[30:42, :2], -scale)
    with over("all states"):
        expected = answers(case.surrogate, case.data, {"evidence": soft})
    with over("legal states"):
        assert_the_same(answers(case.surrogate, case.data, {"evidence": soft}), expected)


def test_legal_states_that_are_far_less_likely_than_others_keep_their_digits() -> None:
    """The best symbol of a state that is not legal says nothing."""
    table = CategoricalTable(np.array([[1.0, 1e-200, 3e-200], [1e-10, 0.5, 0.5]]))
    surrogate = Surrogate(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), table)
    data = Sequences(np.array([0, 0, 0]))
    found = Evidence.build(data, 3, allowed=[np.array([[False, True, True]] * 3)])
    with over("legal states"):
        scores, _ = ENGINE.scores(surrogate, Part(data, found))
    assert scores[0] == pytest.approx(3 * np.log(4e-200 / 3), rel=1e-14)


# ---- impossible sequences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 4, 9])
def test_impossible_sequences_are_named_with_their_positions(at: int) -> None:
    case, states = random_case([10, 10, 3], 5), np.arange(23) % 5
    case.logs[10 + at, states[10 + at]] = -np.inf
    found = Evidence.build(case.data, 5, states=states)
    part, table = Part(case.data, found), np.empty(case.logs.shape)
    with over("legal states", block=3):
        totals, impossible = ENGINE.scores(case.surrogate, Part(case.data, found))
        assert impossible == {1: at}
        assert np.isfinite(totals).tolist() == [True, False, True]
        for ask in (
            lambda: ENGINE.statistics(case.surrogate, Part(case.data, found)),
            lambda: tables.smooth(ENGINE, case.surrogate, part, table),
            lambda: ENGINE.viterbi(case.surrogate, part),
        ):
            with pytest.raises(ImpossibleSequenceError, match=f"sequence 1 .* position {at}"):
                ask()


def test_a_forbidden_move_between_known_states_is_named() -> None:
    case = random_case([6, 4], 5, np.eye(5))
    found = Evidence.build(case.data, 5, states=[2, 2, 2, 3, 3, 3, 1, 1, 1, 1])
    with over("legal states"):
        assert ENGINE.scores(case.surrogate, Part(case.data, found))[1] == {0: 3}
        with pytest.raises(ImpossibleSequenceError, match="sequence 0 .* position 3"):
            ENGINE.viterbi(case.surrogate, Part(case.data, found))


# ---- who computes, and how often -------------------------------------------------------------------------------------


def test_one_core_and_two_give_the_same_bits() -> None:
    rng, likelihood = np.random.default_rng(0), emission("categorical")
    lengths = [11, 0, 300, 5000] + [20] * 200
    data = Sequences(observations(likelihood, sum(lengths), 0), np.cumsum([0, *lengths]))
    surrogate = Surrogate(random_rows(rng, 3), random_rows(rng, 3, 3), likelihood)
    known = {"states": np.where(rng.random(sum(lengths)) < 0.5, rng.integers(3, size=sum(lengths)), -1)}
    with over("legal states", block=500):
        one, two = (answers(surrogate, data, known, engine=CpuEngine(n)) for n in (1, 2))
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)


def test_where_few_states_are_legal_nothing_is_computed_for_the_others() -> None:
    case = random_case([20, 30], 12)
    found = Evidence.build(case.data, 12, states=np.arange(50) % 12)
    with mock.patch.object(TableLikelihood, "scaled", side_effect=AssertionError):
        statistics = ENGINE.statistics(case.surrogate, Part(case.data, found))
    assert statistics.pairs.sum() == pytest.approx(48.0)


def test_lists_are_made_once_a_fit() -> None:
    x = np.random.default_rng(0).integers(6, size=200)
    with mock.patch.object(LegalStates, "of", wraps=LegalStates.of) as made:
        HMM(6, "categorical", inference=EM(max_iter=4, tolerance=0.0), random_state=0).fit(x, states=x)
    assert made.call_count == 1


# ---- the families' side of it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", OPEN)
def test_families_say_the_same_of_lists_and_of_tables(family: str) -> None:
    likelihood: Likelihood = emission(family)
    values, rng = observations(likelihood, 40, 1), np.random.default_rng(0)
    possible = rng.random((40, 3)) < 0.5
    possible[np.arange(40), rng.integers(3, size=40)] = True
    data = Sequences(values)
    found = Evidence.build(data, 3, allowed=[possible])
    assert found is not None
    lists = LegalStates.of(found, data)
    logs = likelihood.log_likelihood(values).T[possible]
    np.testing.assert_allclose(likelihood.log_likelihood_listed(values, lists), logs, rtol=1e-14)
    scaled = np.empty(lists.n_entries)
    shift = likelihood.scaled_listed(values, lists, scaled)
    np.testing.assert_allclose(np.log(scaled) + np.repeat(shift, possible.sum(axis=1)), logs, rtol=1e-12, atol=1e-12)
    marginals = rng.random(possible.shape) * possible
    ours, theirs = likelihood.zeros(), likelihood.zeros()
    likelihood.accumulate_listed(values, lists, marginals[possible], ours)
    likelihood.accumulate(values, np.ascontiguousarray(marginals.T), theirs)
    for name, array in ours.arrays().items():
        np.testing.assert_allclose(array, theirs.arrays()[name], rtol=1e-12, atol=1e-12, err_msg=name)
