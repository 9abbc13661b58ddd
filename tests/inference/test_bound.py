"""The bound of variational inference against sums over all paths."""

import itertools

import numpy as np
import pytest
from examples import FAMILIES
from scipy.special import gammaln

from subchain import HMM, VI, Categorical
from subchain.data import Sequences

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


def log_sum_over_paths(surrogate, values):
    """Log normaliser of one sequence, path by path."""
    logs = surrogate.emission.log_likelihood(values)
    totals = []
    for path in itertools.product(range(surrogate.n_states), repeat=len(values)):
        total = np.log(surrogate.initial[path[0]]) + sum(logs[k, t] for t, k in enumerate(path))
        totals.append(total + sum(np.log(surrogate.transition[j, k]) for j, k in itertools.pairwise(path)))
    return np.logaddexp.reduce(totals)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bound_is_the_sum_over_paths_less_the_divergence_from_the_prior(family):
    specification, draw = FAMILIES[family]
    values = draw(np.random.default_rng(1), 9)
    data = Sequences(values, [0, 5, 9])
    before = HMM(2, specification, inference=VI(max_iter=2, tolerance=0.0), random_state=0).fit(data)
    after = HMM(2, specification, inference=VI(max_iter=3, tolerance=0.0), random_state=0).fit(data)
    posterior = before.posterior_
    surrogate = posterior.expected_log()
    paths = log_sum_over_paths(surrogate, values[:5]) + log_sum_over_paths(surrogate, values[5:])
    assert after.trace_.objective[-1] == pytest.approx(paths - posterior.kl(before.prior_), rel=1e-9)


def log_polya(counts, concentration):
    """Log probability of counts under a multinomial with a symmetric Dirichlet prior, in a given order."""
    total = concentration * len(counts)
    rising = gammaln(np.array(counts) + concentration) - gammaln(concentration)
    return gammaln(total) - gammaln(total + sum(counts)) + rising.sum()


def test_the_bound_lies_below_the_evidence():
    x, n_states, n_symbols = np.array([0, 1, 1, 0, 2, 2]), 2, 3
    evidence = []
    for path in itertools.product(range(n_states), repeat=len(x)):
        first, moves, emitted = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 3))
        first[path[0]] = 1
        np.add.at(moves, (np.array(path[:-1]), np.array(path[1:])), 1)
        np.add.at(emitted, (np.array(path), x), 1)
        chain = log_polya(first, 1.0) + sum(log_polya(row, 1.0) for row in moves)
        evidence.append(chain + sum(log_polya(row, 0.5) for row in emitted))
    exact = np.logaddexp.reduce(evidence)
    for seed in range(5):
        emission = Categorical(0.5, n_categories=n_symbols)
        fitted = HMM(n_states, emission, inference=VI(max_iter=200, tolerance=1e-12), random_state=seed).fit(x)
        assert exact - 5.0 < fitted.trace_.objective[-1] < exact
