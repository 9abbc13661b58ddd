"""Chains whose counts change a little at a time."""

from __future__ import annotations

import numpy as np
import pytest

from subchain import CVI, HDP, HMM, SVI, Dirichlet
from subchain.transitions import TransitionPrior
from subchain.transitions.base import ChainSums
from subchain.transitions.dirichlet import DirichletChain, DirichletRows
from subchain.transitions.incremental import IncrementalDirichlet
from subchain.transitions.initial import LearnedInitial


def test_rounding_leaves_no_weight_below_zero_where_the_prior_weighs_next_to_nothing() -> None:
    least = np.full((2, 2), 1e-40)
    prior = DirichletChain(LearnedInitial(least[0]), DirichletRows(least, np.zeros((2, 2))))
    moving = IncrementalDirichlet(prior, ChainSums(np.array([0.3, 1.0]), np.array([[0.3, 1.0], [2.0, 1.0]])))
    for part in (0.1, 0.2):
        moving.blend(1.0, -1.0, ChainSums(np.array([part, 0.0]), np.array([[part, 0.0], [0.0, 0.0]])))
    assert moving.pairs[0, 0] < 0.0
    found = moving.surrogate("predictive")
    assert (found.initial >= 0.0).all()
    assert (found.transition >= 0.0).all()


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
def test_states_that_are_hardly_used_any_more_keep_their_logarithms() -> None:
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(50, 1)) for _ in range(20)]
    model = HMM(8, "gaussian", HDP(), CVI(), random_state=0, n_jobs=1).fit(x)
    assert model.effective_states() == 1


@pytest.mark.parametrize("concentration", [1e-4, 3e-4, 1e-3, 0.02, 0.5])
def test_small_concentrations_have_the_weights_of_their_digamma_functions(concentration: float) -> None:
    mask = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    rows = DirichletRows(concentration * mask, np.zeros((3, 3)))
    prior = DirichletChain(LearnedInitial(np.full(3, concentration)), rows)
    sums = ChainSums(np.zeros(3), mask * np.array([[0.0], [5e-4], [2.0]]) * [1.0, 0.0, 0.5])
    found, wanted = IncrementalDirichlet(prior, sums).surrogate("expected_log"), prior.update(sums).expected_log()
    assert found.transition[0, 0] == 1.0  # the only transition of its row
    np.testing.assert_allclose(found.transition, wanted.transition, rtol=1e-9, atol=1e-290)
    np.testing.assert_allclose(found.initial, wanted.initial, rtol=1e-9, atol=1e-290)


@pytest.mark.parametrize("prior", [Dirichlet(concentration=1e-4), HDP(concentration=0.03)], ids=["dirichlet", "hdp"])
@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
def test_svi_fits_under_sparse_priors(prior: TransitionPrior) -> None:
    x = np.tile([0, 1], 500)
    model = HMM(4, "categorical", prior, SVI(length=10, batch=5, max_updates=400), random_state=0, n_jobs=1).fit(x)
    assert model.score(x) > -20.0
