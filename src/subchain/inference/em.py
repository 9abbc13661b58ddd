"""Expectation maximisation (Baum et al. 1970): the surrogate is the most probable HMM itself.

Every pass computes expected counts under the present parameters; the next parameters maximise the posterior those
counts make (the likelihood, where no prior was given). The log posterior never falls.
"""

from __future__ import annotations

import numpy as np

from subchain.engines.surrogate import Surrogate
from subchain.inference.base import Algorithm
from subchain.inference.posterior import ModelPosterior, Point
from subchain.inference.problem import Problem
from subchain.statistics import Statistics

#: Expected number of visits below which a state counts as empty.
EMPTY = 1e-8


class EM(Algorithm):
    """Maximum likelihood; maximum a posteriori for every component whose prior was given.

    A state that loses all its observations keeps the parameters it had, and the trace says so.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, EM
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 10)
    >>> HMM(2, "categorical", inference=EM(max_iter=20), random_state=0).fit(x).n_states_
    2
    """

    name = "em"
    flat = True
    monotone = True

    def surrogate(self, posterior: ModelPosterior, point: Point) -> Surrogate:
        return point.surrogate()

    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        mode = posterior.mode()
        if previous is None:
            return mode, []
        visits = statistics.initial + statistics.pairs.sum(axis=0)
        unvisited, unleft = visits < EMPTY, statistics.pairs.sum(axis=1) < EMPTY
        if unvisited.any():
            mode.emission = mode.emission.keep_states(unvisited, previous.emission)
        if unleft.any():
            mode.chain.transition[unleft] = previous.chain.transition[unleft]
        events = [f"state {k} has no observations left; it keeps its parameters" for k in np.flatnonzero(unvisited)]
        return mode, events

    def objective(
        self, problem: Problem, posterior: ModelPosterior | None, point: Point, log_normalizer: float
    ) -> float:
        return log_normalizer + problem.prior.log_density(point)
