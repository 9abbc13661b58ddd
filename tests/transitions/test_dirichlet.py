import itertools

import numpy as np
import pytest
from sklearn.base import clone

from subchain.errors import InputError
from subchain.transitions import Dirichlet, banded, cyclic, left_right, resolve_transition, stationary_distribution
from subchain.transitions.base import ChainSums


def counts(rng, n_states=4):
    return rng.gamma(1.0, 10.0, n_states), rng.gamma(1.0, 10.0, (n_states, n_states))


def test_every_point_has_rows_that_sum_to_one(rng):
    posterior = Dirichlet(0.5, stickiness=2.0).prior(4, flat=False).update(ChainSums(*counts(rng)))
    for chain in (posterior.mean(), posterior.mode(), posterior.predictive(), posterior.sample(rng)):
        assert np.allclose(chain.transition.sum(axis=1), 1.0)
        assert np.isclose(chain.initial.sum(), 1.0)
    weights = posterior.expected_log()
    assert (weights.transition.sum(axis=1) < 1.0).all()
    assert weights.initial.sum() < 1.0


def test_the_flat_prior_gives_the_relative_frequencies(rng):
    initial, pairs = counts(rng)
    chain = Dirichlet().prior(4, flat=True).update(ChainSums(initial, pairs)).mode()
    assert np.allclose(chain.transition, pairs / pairs.sum(axis=1, keepdims=True))
    assert np.allclose(chain.initial, initial / initial.sum())


@pytest.mark.parametrize("mask", [left_right(4), banded(4), cyclic(4, 2), left_right])
def test_forbidden_moves_stay_exactly_zero(mask, rng):
    table = mask(4) if callable(mask) else mask
    posterior = Dirichlet(2.0, mask=mask).prior(4, flat=False).update(ChainSums(*counts(rng)))
    for chain in (posterior.mean(), posterior.mode(), posterior.expected_log(), posterior.sample(rng)):
        assert (chain.transition[~table] == 0.0).all()
        assert (chain.transition[table] > 0.0).all()


@pytest.mark.parametrize("initial", ["learned", "stationary", [0.5, 0.0, 0.25, 0.25]])
def test_log_weights_are_the_logarithms_of_weights_and_do_not_underflow(initial, rng):
    fixed = np.full((4, 4), np.nan)
    fixed[0, :2] = 0.25, 0.0
    prior = Dirichlet(1e-5, fixed=fixed, initial=initial).prior(4, flat=False)
    posterior = prior.update(ChainSums(*counts(rng)))
    weights, logs = posterior.expected_log(), posterior.log_surrogate()
    assert np.allclose(np.exp(logs.initial), weights.initial, rtol=1e-12)
    assert np.allclose(np.exp(logs.transition), weights.transition, rtol=1e-12)
    assert (~np.isfinite(prior.log_surrogate().transition)).sum() == 1
    assert (prior.expected_log().transition == 0.0).sum() > 1


def test_fixed_entries_keep_their_value_and_leave_the_rest_to_be_shared(rng):
    fixed = np.full((4, 4), np.nan)
    fixed[0, 1], fixed[2] = 0.25, [0.1, 0.2, 0.3, 0.4]
    initial, pairs = counts(rng)
    posterior = Dirichlet(fixed=fixed).prior(4, flat=True).update(ChainSums(initial, pairs))
    for chain in (posterior.mean(), posterior.mode(), posterior.expected_log(), posterior.sample(rng)):
        assert chain.transition[0, 1] == 0.25
        assert np.array_equal(chain.transition[2], fixed[2])
    free = np.delete(pairs[0], 1)
    assert np.allclose(np.delete(posterior.mode().transition[0], 1), 0.75 * free / free.sum())
    assert posterior.n_free() == 3 + (2 + 3 + 0 + 3)


def test_given_and_stationary_beginnings_learn_nothing(rng):
    given = Dirichlet(initial=[0.5, 0.5, 0, 0]).prior(4, flat=False).update(ChainSums(*counts(rng)))
    assert np.array_equal(given.mean().initial, [0.5, 0.5, 0, 0])
    stationary = Dirichlet(initial="stationary").prior(4, flat=False).update(ChainSums(*counts(rng)))
    chain = stationary.mean()
    assert np.allclose(chain.initial @ chain.transition, chain.initial)
    assert not Dirichlet(initial="stationary").exact


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-3])
def test_the_stationary_distribution_of_a_nearly_periodic_chain_is_uniform(epsilon):
    cycle = np.roll(np.eye(5), 1, axis=1) * (1 - epsilon) + epsilon * np.eye(5)
    assert np.allclose(stationary_distribution(cycle), 0.2)


@pytest.mark.parametrize("rare", [1e-100, 1e-300, 5e-324])
def test_the_stationary_distribution_where_some_states_are_hardly_ever_left(rare):
    """States 2 and 3 are entered from 0 and 1 all the time and left with a probability near the end of the doubles."""
    inside = np.array([[0.25, 0.75], [0.5, 0.5]])
    matrix = np.block([[np.full((2, 2), 0.25), np.full((2, 2), 0.25)], [np.array([[rare, 0.0], [0.0, rare]]), inside]])
    for order in itertools.permutations(range(4)):
        found = stationary_distribution(matrix[np.ix_(order, order)])
        np.testing.assert_allclose(found[np.argsort(order)], [0.0, 0.0, 0.4, 0.6], atol=1e-14)


def test_divergence_and_density_of_the_prior_itself(rng):
    prior = Dirichlet(0.7, mask=banded(4)).prior(4, flat=False)
    assert abs(prior.kl(prior)) < 1e-12
    assert prior.update(ChainSums(*counts(rng))).kl(prior) > 0.0
    assert Dirichlet().prior(4, flat=True).log_density(prior.mean()) == 0.0


def test_states_can_be_taken_in_another_order(rng):
    posterior = Dirichlet(0.7, mask=left_right(4)).prior(4, flat=False).update(ChainSums(*counts(rng)))
    order = np.array([3, 1, 0, 2])
    assert np.allclose(posterior.take(order).mean().transition, posterior.mean().transition[np.ix_(order, order)])
    assert np.allclose(posterior.take(order).mean().initial, posterior.mean().initial[order])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concentration": 0.0}, "concentration must be positive"),
        ({"concentration": [1.0, 2.0]}, r"shape \(2,\)"),
        ({"stickiness": -1.0}, "stickiness must be"),
        ({"mask": np.ones((3, 3))}, r"mask has shape \(3, 3\), but 4 states"),
        ({"mask": np.diag([1, 1, 1, 0])}, "allows no transition from state 3"),
        ({"fixed": np.full((4, 4), 0.5)}, "row 0 sum to 2"),
        ({"fixed": np.eye(4) * 2}, "between 0 and 1"),
        ({"fixed": np.eye(4), "mask": 1 - np.eye(4)}, "fixed to 1.0 but the mask forbids it"),
        ({"initial": "stationery"}, "Did you mean 'stationary'"),
        ({"initial": [0.5, 0.6, 0, 0]}, "4 probabilities that sum to 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Dirichlet(**settings).prior(4, flat=False)


def test_em_refuses_a_concentration_without_a_mode():
    with pytest.raises(InputError, match="concentration is 0.5, but below 1 the prior density is unbounded"):
        Dirichlet(0.5).prior(4, flat=True)


def test_names_and_clones():
    assert isinstance(resolve_transition("dirichlet"), Dirichlet)
    assert clone(Dirichlet(0.3, stickiness=1.0)).get_params()["stickiness"] == 1.0
    with pytest.raises(InputError, match="Did you mean 'dirichlet'"):
        resolve_transition("dirichlett")


def test_the_evidence_of_moves_is_that_of_one_after_the_other():
    rng = np.random.default_rng(0)
    fixed = np.array([[np.nan, np.nan, 0.2], [0.0, np.nan, np.nan], [0.5, 0.5, 0.0]])
    prior = Dirichlet(0.7, fixed=fixed, initial_concentration=0.4).prior(3, flat=False)
    moves = [(0, 0), (0, 2), (1, 2), (0, 1), (2, 1), (1, 1), (0, 0), (2, 0)]
    rng.shuffle(moves)
    initial, pairs, expected = np.zeros(3), np.zeros((3, 3)), 0.0
    for first in (0, 2, 0):
        expected += np.log(prior.update(ChainSums(initial, pairs)).mean().initial[first])
        initial[first] += 1.0
    for before, after in moves:
        expected += np.log(prior.update(ChainSums(initial, pairs)).mean().transition[before, after])
        pairs[before, after] += 1.0
    assert prior.log_evidence(ChainSums(initial, pairs)) == pytest.approx(expected, rel=1e-12)
    pairs[1, 0] = 1.0
    assert prior.log_evidence(ChainSums(initial, pairs)) == -np.inf
