"""Credible intervals are those of the posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from subchain import EM, HMM, Categorical, Gibbs
from subchain.tasks.intervals import LEVELS, intervals

X = np.array([0, 0, 0, 1, 1, 1, 2] * 40)


def test_intervals_are_quantiles_of_the_posterior() -> None:
    model = HMM(2, "categorical", random_state=0).fit(X)
    places = np.array([[0, 2], [1, 2]])
    found = intervals(model.posterior_, places, None, np.random.default_rng(0))
    table = model.posterior_.emission.concentration  # (W, K)
    for state in range(2):
        for index, symbol in enumerate(places[state]):
            a = table[symbol, state]
            exact = stats.beta(a, table[:, state].sum() - a).ppf(LEVELS)
            np.testing.assert_allclose(found.emission[:, state, index], exact, atol=0.02)
    assert (found.transition[0] <= model.transition_).all()
    assert (model.transition_ <= found.transition[1]).all()


def test_what_was_given_has_no_interval() -> None:
    emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
    assert intervals(model.posterior_, np.zeros((2, 1), int), None, np.random.default_rng(0)) is None


@pytest.mark.filterwarnings("ignore")
def test_a_posterior_that_cannot_be_drawn_from_has_none() -> None:
    model = HMM(2, "gaussian", inference=EM(max_iter=3), random_state=0).fit(np.array([0.0, 5.0, 0.1]))
    found = intervals(model.posterior_, np.zeros((2, 1), int), None, np.random.default_rng(0))
    assert found is None or np.isfinite(found.transition).all()


@pytest.mark.filterwarnings("ignore")
def test_draws_of_a_sampler_are_used_where_states_keep_their_names() -> None:
    model = HMM(2, "categorical", inference=Gibbs(n_samples=60, burn_in=20, n_chains=2), random_state=0).fit(X)
    found = intervals(model.posterior_, np.zeros((2, 1), int), model.samples_, np.random.default_rng(0))
    draws = model.samples_["transition"][model.samples_.best_chain]
    np.testing.assert_allclose(found.transition, np.quantile(draws, LEVELS, axis=0))
