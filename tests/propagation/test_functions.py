"""The public functions, against all paths listed and against the slow recursions."""

import functools
import itertools
from collections.abc import Callable

import naive
import numpy as np
import pytest
from chains import Chain, left_right, random_rows, small_chains, sticky
from hypothesis import given
from hypothesis import strategies as st

from subchain.errors import ImpossibleSequenceError, InputError
from subchain.propagation import filter, forward_backward, sample_paths, viterbi

FUNCTIONS = [forward_backward, filter, viterbi, functools.partial(sample_paths, n=1)]


def random_chain(n_positions: int, n_states: int, seed: int = 0) -> Chain:
    rng = np.random.default_rng(seed)
    logs = np.log(rng.random((n_positions, n_states)))
    return Chain(logs, random_rows(rng, n_states), random_rows(rng, n_states, n_states))


# ---- one sequence ----------------------------------------------------------------------------------------------------


@given(small_chains())
def test_beliefs_are_sums_over_all_paths(chain: Chain):
    if naive.impossible_at(*chain) is not None:
        with pytest.raises(ImpossibleSequenceError):
            forward_backward(*chain)
        return
    truth, found = naive.enumerate_marginals(*chain), forward_backward(*chain)
    np.testing.assert_allclose(found.log_likelihood, [truth.log_likelihood], rtol=1e-12)
    np.testing.assert_allclose(found.marginals, truth.smoothed, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.pairs, truth.pairs, rtol=1e-9, atol=1e-12)


@given(small_chains())
def test_filtered_beliefs_know_the_past_alone(chain: Chain):
    if naive.impossible_at(*chain) is not None:
        with pytest.raises(ImpossibleSequenceError):
            filter(*chain)
        return
    truth, found = naive.enumerate_marginals(*chain), filter(*chain)
    np.testing.assert_allclose(found.marginals, truth.filtered, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.log_increments, truth.increments, rtol=1e-9, atol=1e-10)


@given(small_chains())
def test_no_path_is_better_than_the_best_path(chain: Chain):
    if naive.impossible_at(*chain) is not None:
        with pytest.raises(ImpossibleSequenceError):
            viterbi(*chain)
        return
    found = viterbi(*chain)
    best = naive.enumerate_best_path(*chain)[1]
    assert found.log_probability[0] == pytest.approx(best, rel=1e-12)
    assert naive.path_log_probability(found.states, *chain) == pytest.approx(best, rel=1e-12)


@given(small_chains())
def test_sampled_paths_are_possible_and_as_frequent_as_probable(chain: Chain):
    if naive.impossible_at(*chain) is not None:
        with pytest.raises(ImpossibleSequenceError):
            sample_paths(*chain, n=1, random_state=0)
        return
    paths, joint = naive.all_paths(*chain)
    probability = np.exp(joint - naive.log_sum(joint))
    drawn = sample_paths(*chain, n=4000, random_state=1)
    n_positions, n_states = chain.log_likelihood.shape
    number = drawn @ n_states ** np.arange(n_positions - 1, -1, -1)
    share = np.bincount(number, minlength=len(paths)) / len(drawn)
    assert (share[probability == 0.0] == 0.0).all()
    assert np.abs(share - probability).max() < 6.0 * np.sqrt(0.25 / len(drawn))


@pytest.mark.parametrize("n_states", [1, 3, 5, 12, 50])
def test_long_chains_equal_the_slow_recursions(n_states: int):
    chain = random_chain(311, n_states)
    truth, found, filtered = naive.marginals(*chain), forward_backward(*chain), filter(*chain)
    np.testing.assert_allclose(found.log_likelihood, [truth.log_likelihood], rtol=1e-13)
    np.testing.assert_allclose(found.marginals, truth.smoothed, rtol=1e-11)
    np.testing.assert_allclose(found.pairs, truth.pairs, rtol=1e-11)
    np.testing.assert_allclose(filtered.marginals, truth.filtered, rtol=1e-11)
    np.testing.assert_allclose(filtered.log_increments, truth.increments, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(viterbi(*chain).states, naive.best_path(*chain)[0])


def test_missing_observations_are_summed_out():
    chain = random_chain(9, 3)
    chain.log_likelihood[4] = 0.0
    either = [chain.log_likelihood.copy() for _ in range(2)]
    either[0][4], either[1][4] = np.log([0.2, 0.5, 0.9]), np.log([0.8, 0.5, 0.1])
    total = np.logaddexp(*(forward_backward(logs, *chain[1:]).log_likelihood[0] for logs in either))
    assert forward_backward(*chain).log_likelihood[0] == pytest.approx(total, rel=1e-13)


# ---- what a double cannot hold ---------------------------------------------------------------------------------------


def assert_equals_slow_recursions(chain: Chain) -> None:
    truth, found, filtered = naive.marginals(*chain), forward_backward(*chain), filter(*chain)
    np.testing.assert_allclose(found.log_likelihood, [truth.log_likelihood], rtol=1e-12)
    np.testing.assert_allclose(found.marginals, truth.smoothed, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.pairs, truth.pairs, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(filtered.marginals, truth.filtered, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(filtered.log_increments, truth.increments, rtol=1e-8, atol=1e-10)
    assert (sample_paths(*chain, n=20, random_state=0) == truth.smoothed.argmax(axis=1)).mean() > 0.9


def test_likelihoods_of_1e_300_at_every_position():
    chain = random_chain(200, 4)
    assert_equals_slow_recursions(chain._replace(log_likelihood=300.0 * chain.log_likelihood))


def test_a_state_that_comes_back_from_1e_400():
    logs = np.zeros((12, 2))
    logs[:6, 0], logs[6:, 1] = -200.0, -190.0
    assert_equals_slow_recursions(Chain(logs, np.array([0.5, 0.5]), np.eye(2)))


def test_an_early_state_that_explains_the_end_best():
    logs = np.full((60, 3), -40.0)
    logs[:10, 0] = logs[10:25, 1] = logs[25:, 0] = 0.0
    assert_equals_slow_recursions(Chain(logs, np.array([1.0, 0.0, 0.0]), left_right(3, 0.5)))


def test_states_that_cannot_be_reached_do_not_disturb():
    logs = np.zeros((400, 2))
    logs[:, 0] = -100.0
    found = forward_backward(logs, [1.0, 0.0], np.eye(2))
    np.testing.assert_array_equal(found.marginals, np.tile([1.0, 0.0], (400, 1)))
    np.testing.assert_array_equal(found.pairs, [[399.0, 0.0], [0.0, 0.0]])
    assert found.log_likelihood[0] == pytest.approx(-40_000.0, rel=1e-13)


def test_a_first_state_that_is_almost_excluded():
    logs = np.array([[-690.0, 0.0], [0.0, 0.0], [0.0, -800.0]])
    assert_equals_slow_recursions(Chain(logs, np.array([1.0, 1e-300]), np.array([[0.5, 0.5], [1e-30, 1.0]])))


# ---- several sequences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_states", [3, 60])
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_sequences_do_not_know_of_each_other(n_states: int, lengths: list[int]):
    logs, initial, transition = random_chain(sum(lengths), n_states)
    edges = np.cumsum([0, *lengths])
    parts = [logs[start:stop] for start, stop in itertools.pairwise(edges)]
    together = forward_backward(logs, initial, transition, lengths)
    apart = [forward_backward(part, initial, transition) for part in parts]
    np.testing.assert_allclose(together.marginals, np.concatenate([one.marginals for one in apart]), rtol=1e-12)
    np.testing.assert_allclose(together.pairs, np.sum([one.pairs for one in apart], axis=0), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(together.log_likelihood, [one.log_likelihood[0] for one in apart], rtol=1e-12)
    decoded = viterbi(logs, initial, transition, lengths)
    alone = [viterbi(part, initial, transition) for part in parts]
    np.testing.assert_array_equal(decoded.states, np.concatenate([one.states for one in alone]))
    np.testing.assert_array_equal(decoded.log_probability, [one.log_probability[0] for one in alone])


def test_an_empty_sequence_has_probability_one():
    logs, initial, transition = random_chain(5, 2)
    assert forward_backward(logs, initial, transition, [0, 5, 0]).log_likelihood[[0, 2]].tolist() == [0.0, 0.0]
    assert viterbi(logs, initial, transition, [0, 5, 0]).log_probability[[0, 2]].tolist() == [0.0, 0.0]
    nothing = forward_backward(np.empty((0, 2)), initial, transition, [])
    assert nothing.marginals.shape == (0, 2)
    assert nothing.pairs.sum() == 0.0


def test_hard_and_easy_sequences_mix():
    logs, initial, _ = random_chain(30, 2)
    logs[10:20] = [[-800.0, 0.0]] * 5 + [[0.0, -800.0]] * 5
    together = forward_backward(logs, initial, np.eye(2), [10, 10, 10])
    apart = [naive.marginals(logs[start : start + 10], initial, np.eye(2)) for start in (0, 10, 20)]
    np.testing.assert_allclose(together.log_likelihood, [one.log_likelihood for one in apart], rtol=1e-12)
    np.testing.assert_allclose(together.pairs, sum(one.pairs for one in apart), rtol=1e-9)


# ---- sampling --------------------------------------------------------------------------------------------------------


def test_the_first_paths_are_the_same_for_any_number_of_paths():
    chain = random_chain(50, 3)
    few, many = (sample_paths(*chain, n=n, random_state=5) for n in (3, 8))
    np.testing.assert_array_equal(few, many[:3])
    assert (many[:-1] != many[1:]).any(axis=1).all()


def test_a_generator_gives_new_paths_every_time():
    chain, rng = random_chain(50, 3), np.random.default_rng(0)
    assert (sample_paths(*chain, n=1, random_state=rng) != sample_paths(*chain, n=1, random_state=rng)).any()


def test_sampled_marginals_approach_the_marginals():
    chain = Chain(random_chain(120, 4).log_likelihood, np.full(4, 0.25), sticky(4, 0.9))
    paths = sample_paths(*chain, n=3000, random_state=0)
    share = (paths[:, :, None] == np.arange(4)).mean(axis=0)
    assert np.abs(share - forward_backward(*chain).marginals).max() < 0.05
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (paths[:, :-1], paths[:, 1:]), 1.0 / len(paths))
    np.testing.assert_allclose(pairs, forward_backward(*chain).pairs, rtol=0.1, atol=0.3)


# ---- what cannot be used ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_impossible_sequence_is_named_with_its_position(function: Callable[..., object]):
    logs, initial, transition = random_chain(12, 2)
    logs[9] = -np.inf
    with pytest.raises(ImpossibleSequenceError, match="sequence 1 .* position 4"):
        function(logs, initial, transition, lengths=[5, 7])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_likelihood": np.zeros(4)}, "log_likelihood must have the shape"),
        ({"log_likelihood": np.zeros((4, 3))}, "log_likelihood must have the shape"),
        ({"log_likelihood": [["a", "b"]]}, "log_likelihood must be an array of numbers"),
        ({"log_likelihood": np.array([[0.0, 0.0], [0.0, np.nan]])}, "state 1 at sequence 0, position 1 is nan"),
        ({"log_likelihood": np.array([[0.0, np.inf]])}, "state 1 at sequence 0, position 0 is inf"),
        ({"initial": np.ones((1, 2))}, "initial must have the shape|sum to at most one"),
        ({"initial": [0.6, 0.6]}, "initial: probabilities must not be negative and must sum to at most one"),
        ({"transition": np.full((3, 3), 0.1)}, "transition must have the shape"),
        ({"transition": [[0.5, 0.5], [-0.1, 1.0]]}, "transition, row 1: probabilities must not be negative"),
        ({"transition": [[0.5, 0.5], [0.9, 0.9]]}, "transition, row 1: .* with sum 1.8"),
        ({"transition": [[0.5, np.nan], [0.5, 0.5]]}, "transition, row 0"),
    ],
)
def test_unusable_input_is_explained(function: Callable[..., object], change: dict[str, object], message: str):
    given = {"log_likelihood": np.zeros((4, 2)), "initial": [0.5, 0.5], "transition": np.full((2, 2), 0.5)}
    with pytest.raises(InputError, match=message):
        function(*(given | change).values())


@pytest.mark.parametrize(
    ("lengths", "message"),
    [([2, 3], "sum to 5, but log_likelihood has 4"), ([5, -1], "sequence 1 has length -1"), ([2.0, 2.0], "whole")],
)
def test_lengths_must_cover_the_table(lengths: list[float], message: str):
    with pytest.raises(InputError, match=message):
        forward_backward(np.zeros((4, 2)), [0.5, 0.5], np.full((2, 2), 0.5), lengths)


def test_the_place_of_a_nan_is_counted_within_its_sequence():
    logs = np.zeros((7, 2))
    logs[5, 0] = np.nan
    with pytest.raises(InputError, match="sequence 2, position 1 is nan"):
        forward_backward(logs, [0.5, 0.5], np.full((2, 2), 0.5), [4, 0, 3])


def test_a_negative_number_of_paths_is_refused():
    with pytest.raises(InputError, match="n, the number of paths"):
        sample_paths(np.zeros((4, 2)), [0.5, 0.5], np.full((2, 2), 0.5), n=-1)
