"""Expectation maximisation (Baum et al. 1970): the surrogate is the most probable HMM itself.

Every pass computes expected counts under the present parameters; the next parameters maximise the posterior those
counts make (the likelihood, where no prior was given). The log posterior never falls.
"""

from __future__ import annotations

import numpy as np

from subchain.core.statistics import Statistics
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError
from subchain.inference.batch.passes import Batch
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.posterior import ModelPosterior, Point
from subchain.inference.stochastic.boundaries import Boundary
from subchain.inference.stochastic.updates import Stochastic

#: Expected number of visits below which a state counts as empty.
EMPTY = 1e-8


#: Settings that mean something with minibatches only.
ONLINE = (
    "length", "boundary", "delay", "forgetting", "starts", "max_updates", "max_passes", "report_every", "adapt",
    "average",
)  # fmt: skip


class OnlineEM(Stochastic):
    """EM over minibatches (Cappé & Moulines 2009); users write `EM(batch=...)`."""

    name = "online_em"
    flat = True
    kind = "mode"

    def point(
        self, posterior: ModelPosterior, statistics: Statistics, previous: Point | None
    ) -> tuple[Point, list[str]]:
        return posterior.mode(), []


class EM(Batch):
    """Maximum likelihood; maximum a posteriori for every component whose prior was given.

    A state that loses all its observations keeps the parameters it had, and the trace says so.

    With `batch` it visits so many subchains (or whole sequences) at a time, and the statistics move a little with each:
    online EM. The settings after `batch` are those of `SVI`, and `max_iter` and `tolerance` mean nothing then.

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
    climbs_from_points = True

    def __init__(
        self,
        max_iter: int = 200,
        tolerance: float = 1e-6,
        time_limit: float | None = None,
        patience: int | None = None,
        batch: int | None = None,
        length: int | str | None = "auto",
        boundary: str | Boundary = "stationary",
        delay: float = 1.0,
        forgetting: float = 0.6,
        starts: str = "grid",
        max_updates: int | None = None,
        max_passes: float | None = None,
        report_every: int = 100,
        adapt: bool = False,
        average: bool = False,
    ) -> None:
        super().__init__(max_iter, tolerance, time_limit, patience)
        self.batch = batch
        self.length = length
        self.boundary = boundary
        self.delay = delay
        self.forgetting = forgetting
        self.starts = starts
        self.max_updates = max_updates
        self.max_passes = max_passes
        self.report_every = report_every
        self.adapt = adapt
        self.average = average

    def check(self) -> None:
        super().check()
        defaults = OnlineEM().get_params(deep=False)
        for name, value in self.get_params(deep=False).items():
            if name in ONLINE and value != defaults[name]:
                raise InputError(f"EM: {name}={value!r} is for minibatches; say how large they are with batch=...")

    def itself(self) -> Algorithm:
        """Online EM if there are minibatches."""
        if self.batch is None:
            return self
        settings = self.get_params(deep=False)
        return OnlineEM(**{name: value for name, value in settings.items() if name not in ("max_iter", "tolerance")})

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
        self, prior: ModelPosterior, posterior: ModelPosterior | None, point: Point, log_normalizer: float
    ) -> float:
        return log_normalizer + prior.log_density(point)
