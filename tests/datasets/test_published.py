from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subchain.datasets import diagonally_dominant, four_state, regular_grammar, reversed_cycles
from subchain.errors import InputError


@pytest.mark.parametrize("seed", range(5))
def test_diagonally_dominant_visits_all_eight_states(seed: int):
    chain = diagonally_dominant(random_state=seed)
    assert chain.observations.values.shape == (10_000, 2)
    assert_array_equal(np.unique(chain.states), np.arange(8))


def test_diagonally_dominant_moves_round_the_ring():
    chain = diagonally_dominant(random_state=0)
    assert_allclose(chain.transition.diagonal(), 0.999)
    moves = chain.states[1:] - chain.states[:-1]
    assert set(np.unique(moves % 8)) == {0, 1}
    residuals = chain.observations.values - chain.means[chain.states]
    assert_allclose(np.cov(residuals.T), np.eye(2), atol=0.05)


def test_diagonally_dominant_says_when_the_chain_is_too_short():
    with pytest.raises(InputError, match="n=20 positions visits all 8 states; use n of 2,000 or more"):
        diagonally_dominant(20, random_state=0)


def test_reversed_cycles_run_in_opposite_directions():
    chain = reversed_cycles(50_000, random_state=0)
    assert chain.states[0] == 0
    counts = np.zeros((8, 8))
    np.add.at(counts, (chain.states[:-1], chain.states[1:]), 1)
    assert_allclose(counts / counts.sum(axis=1, keepdims=True), chain.transition, atol=0.02)
    assert_array_equal(counts > 0, chain.transition > 0)


@pytest.mark.parametrize("covariance", [20.0, 300.0])
def test_reversed_cycles_spread_as_asked(covariance: float):
    chain = reversed_cycles(20_000, covariance=covariance, random_state=0)
    residuals = chain.observations.values - chain.means[chain.states]
    assert_allclose(np.cov(residuals.T) / covariance, np.eye(2), atol=0.05)
    assert_allclose(chain.variances, covariance)


def test_reversed_cycles_need_a_positive_covariance():
    with pytest.raises(InputError, match="covariance must be positive; given 0"):
        reversed_cycles(10, covariance=0)


@pytest.mark.parametrize(("kind", "stay"), [("positive", 0.99), ("negative", 0.01)])
def test_four_states_stay_or_move_round_the_ring(kind: str, stay: float):
    chain = four_state(kind, random_state=0)
    assert_array_equal(chain.observations.lengths, np.full(100, 100))
    expected = [[stay, 1 - stay, 0, 0], [0, stay, 1 - stay, 0], [0, 0, stay, 1 - stay], [1 - stay, 0, 0, stay]]
    assert_allclose(chain.transition, expected)
    pairs = chain.states.reshape(100, 100)
    assert_allclose(np.mean(pairs[:, 1:] == pairs[:, :-1]), stay, atol=0.01)


def test_neighbours_among_the_four_states_share_one_symbol():
    legal = four_state(random_state=0).probabilities > 0
    shared = legal.astype(int) @ legal.T.astype(int)
    assert_array_equal(shared, [[3, 1, 0, 1], [1, 3, 1, 0], [0, 1, 3, 1], [1, 0, 1, 3]])


def test_four_state_shows_legal_symbols_only():
    chain = four_state("negative", random_state=1)
    assert np.all(chain.probabilities[chain.states, chain.observations.values] > 0)
    assert chain.observations.values.max() == 7


def test_an_unknown_four_state_kind_is_named():
    with pytest.raises(InputError, match="'positiv'.*Did you mean 'positive'"):
        four_state("positiv")


def test_grammar_strings_are_cycles_or_random():
    chain = regular_grammar(n_sequences=300, random_state=0)
    kinds = {"abc": 0, "acb": 0, "ab": 0}
    for string in chain.observations:
        steps = set(np.diff(string) % 3)
        kind = {frozenset({1}): "abc", frozenset({2}): "acb"}.get(frozenset(steps), "ab")
        assert kind != "ab" or string.max() == 1
        kinds[kind] += 1
    assert min(kinds.values()) > 60


def test_grammar_has_seven_states():
    chain = regular_grammar(random_state=0)
    assert_array_equal(np.unique(chain.states), np.arange(7))
    assert_allclose(chain.transition.sum(axis=1), 1.0)
    assert_array_equal(chain.observations.lengths, np.full(100, 100))
