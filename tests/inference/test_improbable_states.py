"""States that are very improbable where they are the only ones possible: weights must not vanish."""

import naive
import numpy as np
import pytest

from subchain import CVI, HMM, Dirichlet, Gaussian, Gibbs
from subchain.core.components import clone
from subchain.propagation.collapsed.log_space import log_messages

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")

KINDS = {"states": {}, "sequences": {"block": "sequence"}}


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_the_best_state_of_an_observation_may_be_forbidden(settings):
    """At 200 state 1 costs 5,000 nats and state 0 20,000; state 2, which costs nothing, cannot follow state 0."""
    mask = np.array([[1, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=bool)
    emission = Gaussian.from_parameters([[0.0], [100.0], [200.0]], np.ones((3, 1, 1)))
    start = HMM.from_parameters([1 / 3] * 3, mask / mask.sum(axis=1, keepdims=True), emission)
    data = [np.array([[0.0], [200.0], [0.0]])] * 10
    sampler = Gibbs(n_samples=20, burn_in=20, n_chains=1, **settings)
    fitted = HMM(3, Gaussian(frozen=True), Dirichlet(mask=mask), sampler, init=start, random_state=0, n_jobs=1).fit(
        data, states=[np.array([0, -1, 0])] * 10
    )
    assert fitted.statistics_.visits == pytest.approx([20.0, 10.0, 0.0])


@pytest.mark.parametrize("gap", [680.0, 720.0, 1400.0])
@pytest.mark.parametrize(
    "inference", [CVI(cluster="sequence"), *(Gibbs(n_chains=1, **kind) for kind in KINDS.values())]
)
def test_strong_evidence_counts_in_full(inference, gap):
    """It speaks against state 1 by twenty nats more than the likelihood, which is strong too, speaks for it."""
    far = np.sqrt(2 * (gap - 20.0))
    emission = Gaussian.from_parameters([[0.0], [far]], np.ones((2, 1, 1)))
    start = HMM.from_parameters([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], emission)
    inference = clone(inference).set_params(**({"max_iter": 10} if isinstance(inference, CVI) else {"n_samples": 20}))
    fitted = HMM(2, Gaussian(frozen=True), inference=inference, init=start, random_state=0, n_jobs=1).fit(
        [np.array([[far], [far]])] * 6, evidence=[np.array([[0.0, -gap]] * 2)] * 6
    )
    assert fitted.statistics_.visits == pytest.approx([12.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_pieces_in_log_space_have_the_marginals_of_plain_loops(seed):
    """Transitions are far from symmetric, and messages from outside count."""
    rng = np.random.default_rng(seed)
    logs, chances = rng.normal(size=(9, 3)) * 400.0, rng.dirichlet(np.ones(3), 3)
    chances[0, 1] = 0.0
    start, stop = rng.random(3), rng.random(3)
    alpha, beta, _, log_total, lost = log_messages(logs, chances, start, stop)
    told = logs.copy()
    told[-1] += np.log(stop)
    expected = naive.marginals(told, start, chances)
    assert lost == -1
    assert log_total == pytest.approx(expected.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(np.exp(alpha + beta - log_total), expected.smoothed, atol=1e-9)
