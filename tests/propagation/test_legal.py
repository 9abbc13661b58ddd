"""Passes over legal states alone: the same numbers as over all states, of which the others are impossible."""

from __future__ import annotations

from typing import Any, NamedTuple

import naive
import numpy as np
import pytest
from chains import Chain, random_rows
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from subchain.propagation import viterbi
from subchain.propagation.listed import passes as legal
from subchain.propagation.listed import paths as legal_paths
from subchain.propagation.listed.passes import Lists

Array = NDArray[Any]
TOLERANCE = {"rtol": 1e-12, "atol": 1e-13}


def lists_of(possible: NDArray[np.bool_], edges: list[int], before: list[int]) -> Lists:
    """Lists of a table (n, K), cut into pieces at the given edges."""
    offsets = np.concatenate(([0], np.cumsum(possible.sum(axis=1)))).astype(np.int64)
    bounds = np.array([*edges, len(possible)], dtype=np.int64)
    states = np.nonzero(possible)[1].astype(np.int32)
    return Lists(offsets, states, bounds[:-1], bounds[1:], np.array(before, dtype=np.int64))


def cut_after_single_states(possible: NDArray[np.bool_]) -> Lists:
    """All pieces that one sequence can be cut into."""
    edges = [0, *(t for t in range(1, len(possible)) if possible[t - 1].sum() == 1)]
    return lists_of(possible, edges, [-1, *(int(possible[t - 1].argmax()) for t in edges[1:])])


class Pass(NamedTuple):
    """All that is known of one sequence, in tables."""

    log_total: float
    filtered: Array
    smoothed: Array
    pairs: Array
    initial: Array
    is_lost: bool


def run(chain: Chain, possible: NDArray[np.bool_], lists: Lists) -> Pass:
    """Forward, backward and sums over lists, with each position's likelihoods divided by the largest."""
    logs, initial, transition = chain
    shift = np.where(possible, logs, -np.inf).max(axis=1)
    shift[shift == -np.inf] = 0.0
    likelihood = np.exp(logs - shift[:, None])[possible]
    transposed = np.ascontiguousarray(transition.T)
    alpha, marginals, scale = np.empty_like(likelihood), np.empty_like(likelihood), np.empty(len(logs))
    totals, is_lost = np.empty(len(lists.starts)), np.empty(len(lists.starts), dtype=np.bool_)
    legal.forward(likelihood, transition, transposed, initial, lists, alpha, scale)
    legal.log_totals(scale, shift, lists, totals)
    legal.lost(likelihood, transition, initial, lists, alpha, is_lost)
    legal.backward(likelihood, transition, transposed, lists, alpha, scale, marginals)
    pairs, first = np.zeros_like(transition), np.zeros_like(initial)
    legal.pair_sums(alpha, likelihood, lists, pairs)
    legal.first_states(marginals, lists, first)
    filtered, smoothed = np.full(logs.shape, np.nan), np.full(logs.shape, np.nan)
    legal.spread(alpha, lists, filtered)
    legal.spread(marginals, lists, smoothed)
    return Pass(float(totals.sum()), filtered, smoothed, pairs * transition, first, bool(is_lost.any()))


def random_chain(seed: int, n: int, n_states: int, share: float) -> tuple[Chain, NDArray[np.bool_]]:
    """Likelihoods, and which states are legal; rows of the transition matrix lose some weight."""
    rng = np.random.default_rng(seed)
    possible = rng.random((n, n_states)) < share * rng.choice([0.2, 1.0, 5.0], n)[:, None]
    possible[np.arange(n), rng.integers(n_states, size=n)] = True
    logs = 3.0 * np.log(rng.random((n, n_states)))
    return Chain(logs, random_rows(rng, n_states), 0.9 * random_rows(rng, n_states, n_states)), possible


def assert_equals_the_judge(chain: Chain, possible: NDArray[np.bool_], lists: Lists) -> None:
    found = run(chain, possible, lists)
    truth = naive.marginals(np.where(possible, chain.log_likelihood, -np.inf), chain.initial, chain.transition)
    assert found.log_total == pytest.approx(truth.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(found.filtered, truth.filtered, **TOLERANCE)
    np.testing.assert_allclose(found.smoothed, truth.smoothed, **TOLERANCE)
    np.testing.assert_allclose(found.pairs, truth.pairs, **TOLERANCE)
    np.testing.assert_allclose(found.initial, truth.smoothed[0], **TOLERANCE)
    assert not found.is_lost


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), n_states=st.integers(1, 40), share=st.floats(0.0, 1.0))
def test_lists_of_all_lengths_equal_the_judge(seed: int, n: int, n_states: int, share: float) -> None:
    chain, possible = random_chain(seed, n, n_states, share)
    assert_equals_the_judge(chain, possible, lists_of(possible, [0], [-1]))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 30), n_states=st.integers(1, 20))
def test_a_cut_after_a_single_legal_state_changes_nothing(seed: int, n: int, n_states: int) -> None:
    chain, possible = random_chain(seed, n, n_states, 0.1)
    assert_equals_the_judge(chain, possible, cut_after_single_states(possible))


def test_pieces_can_weigh_more_or_less() -> None:
    possible = np.array([[True, True], [True, False], [True, True]])
    lists = lists_of(possible, [0, 2], [-1, 0])
    entries = np.ones(5)
    legal.weigh(entries, lists, np.array([2.0, 0.5]))
    assert entries.tolist() == [2.0, 2.0, 2.0, 0.5, 0.5]


def test_the_best_state_is_the_lowest_among_equals() -> None:
    lists = lists_of(np.array([[False, True, True], [True, False, True], [True, False, False]]), [0], [-1])
    states = np.empty(3, dtype=np.uint8)
    legal.best_states(np.array([0.5, 0.5, 0.2, 0.8, 1.0]), lists, states)
    assert states.tolist() == [1, 2, 0]


def test_entries_of_given_states_are_zero_where_these_are_not_legal() -> None:
    lists = lists_of(np.array([[False, True, True], [True, False, True], [True, False, False]]), [0], [-1])
    found = np.empty(3)
    legal.entries_of(np.array([0.5, 0.25, 0.2, 0.8, 1.0]), lists, np.array([2, 0, 1], dtype=np.uint8), found)
    assert found.tolist() == [0.25, 0.2, 0.0]


# ---- what cannot be believed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transition", "likelihood"),
    [
        pytest.param(np.eye(2), [[1.0, 0.0], [0.0, 1.0]], id="impossible"),
        pytest.param([[1.0, 1e-150], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], id="nearly so"),
    ],
)
def test_a_vanishing_normaliser_is_reported(transition: Any, likelihood: Any) -> None:
    chain = Chain(naive.logs(np.array(likelihood)), np.array([0.5, 0.5]), np.array(transition))
    everything = np.ones((2, 2), dtype=np.bool_)
    assert np.isnan(run(chain, everything, lists_of(everything, [0], [-1])).log_total)


def test_a_state_that_may_come_back_is_reported() -> None:
    logs = np.repeat([[0.0, -200.0], [-200.0, 0.0]], [4, 5], axis=0)
    chain, everything = Chain(logs, np.array([0.5, 0.5]), np.eye(2)), np.ones((9, 2), dtype=np.bool_)
    assert run(chain, everything, lists_of(everything, [0], [-1])).is_lost


def test_states_that_no_move_leads_to_are_not_lost() -> None:
    chain = Chain(np.zeros((50, 3)), np.array([1.0, 0.0, 0.0]), np.eye(3))
    possible = np.ones((50, 3), dtype=np.bool_)
    assert not run(chain, possible, lists_of(possible, [0], [-1])).is_lost


def test_weights_leave_possible_states_possible() -> None:
    likelihood, shift = np.array([1.0, 1e-200, 0.0, 0.5]), np.array([1.0, 2.0])
    legal.weigh_states(likelihood, np.array([-900.0, -1.0, 3.0, -5.0]), np.array([0, 3, 4]), shift)
    assert (likelihood > 0.0).tolist() == [True, True, False, True]
    assert shift.tolist() == [4.0, -3.0]
    assert likelihood[3] == 0.5


# ---- best paths ------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), n_states=st.integers(1, 12), share=st.floats(0.0, 1.0))
def test_best_paths_are_the_best(seed: int, n: int, n_states: int, share: float) -> None:
    chain, possible = random_chain(seed, n, n_states, share)
    lists = cut_after_single_states(possible)
    logs = np.where(possible, chain.log_likelihood, -np.inf)
    delta, totals = chain.log_likelihood[possible], np.empty(len(lists.starts))
    path, dead = np.empty(n, dtype=np.int16), np.empty(len(lists.starts), dtype=np.int64)
    log_transition = naive.logs(chain.transition)
    legal_paths.sweep(delta, log_transition, naive.logs(chain.initial), lists, totals, dead)
    legal_paths.trace(delta, log_transition, lists, path)
    assert (dead == -1).all()
    best = viterbi(logs, chain.initial, chain.transition).log_probability[0]
    found = naive.path_log_probability(path.astype(np.int64), logs, chain.initial, chain.transition)
    assert totals.sum() == pytest.approx(best, rel=1e-12)
    assert found == pytest.approx(best, rel=1e-12)


def test_where_all_paths_end_is_told() -> None:
    possible = np.array([[True, False], [True, True], [False, True], [True, True]])
    lists = lists_of(possible, [0], [-1])
    totals, dead = np.empty(1), np.empty(1, dtype=np.int64)
    legal_paths.sweep(np.zeros(6), naive.logs(np.eye(2)), np.zeros(2), lists, totals, dead)
    assert (totals[0], dead[0]) == (-np.inf, 2)
