"""Variational inference (Beal 2003): the surrogate is exp E[log θ] under the posterior of the parameters.

Beliefs over the hidden chains and a distribution over the parameters take turns; each turn raises a lower bound on
the log evidence. The bound is the log normaliser of the surrogate less the divergence of the parameters from their
prior.
"""

from __future__ import annotations

from subchain.engines.surrogate import Surrogate
from subchain.inference.batch import Batch
from subchain.inference.posterior import ModelPosterior, Point
from subchain.statistics import Statistics


class VI(Batch):
    """A full posterior over the parameters; states that the data do not need fall back to their prior.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, VI
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 10)
    >>> HMM(2, "categorical", inference=VI(max_iter=20), random_state=0).fit(x).n_states_
    2
    """

    name = "vi"
    flat = False
    monotone = True

    def surrogate(self, posterior: ModelPosterior, point: Point) -> Surrogate:
        return posterior.expected_log()

    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        return posterior.mean(), []

    def objective(
        self, prior: ModelPosterior, posterior: ModelPosterior | None, point: Point, log_normalizer: float
    ) -> float:
        assert posterior is not None, "a bound is that of a posterior"
        return log_normalizer - posterior.kl(prior) + prior.log_hyper()
