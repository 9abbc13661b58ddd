"""Expectation maximisation (Baum et al. 1970): the surrogate is the most probable HMM itself.

Every pass computes expected counts under the present parameters; the next parameters maximise the posterior those
counts make (the likelihood, where no prior was given). The log posterior never falls.
"""

from __future__ import annotations

from typing import Any

from subchain.core.parts import IncrementalPosterior, Point, Posterior
from subchain.core.statistics import Statistics
from subchain.errors import InputError, unknown_name
from subchain.inference.batch.passes import Batch
from subchain.inference.stochastic.settings import Stochastic
from subchain.inference.stochastic.updates import Draw


class OnlineEM(Stochastic):
    """EM over minibatches (Cappé & Moulines 2009); users write `EM(batch=...)`."""

    name = "online_em"

    def __repr__(self) -> str:
        return super().__repr__().replace("OnlineEM", "EM", 1)

    flat = True
    kind = "mode"

    def update(self, model: IncrementalPosterior, draw: Draw) -> None:
        fresh = draw.expected_statistics(model.weights("mode"))
        rate = draw.step_size(fresh)
        model.blend(1.0 - rate, fresh.scaled(rate), fresh.statistics)

    def point(self, posterior: Posterior, statistics: Statistics, previous: Point | None) -> tuple[Point, list[str]]:
        return posterior.mode(), []


class EM(Batch):
    """Maximum likelihood; maximum a posteriori for every component whose prior was given.

    A state that loses all its observations keeps the parameters it had, and the trace says so.

    `EM(batch=…)` is online EM: it visits so many subchains (or whole sequences) at a time, and the statistics change a
    little with each. It takes the settings of `SVI` instead of `max_iter` and `tolerance`.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, EM
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 10)
    >>> HMM(2, "categorical", inference=EM(max_iter=200), random_state=0).fit(x).status_
    'converged'
    """

    name = "em"
    flat = True
    monotone = True
    climbs_from_points = True

    def __new__(cls, *args: Any, batch: int | None = None, **settings: Any) -> Any:
        if batch is None:
            return super().__new__(cls)
        given = [name for name in ("max_iter", "tolerance") if name in settings] or (["max_iter"] if args else [])
        if given:
            raise InputError(
                f"EM: {given[0]} is about passes over all the data, and batch={batch} learns from minibatches; use "
                "max_updates or max_passes."
            )
        return OnlineEM(batch=batch, **settings)

    def __init__(
        self,
        max_iter: int = 200,
        tolerance: float = 1e-6,
        time_limit: float | None = None,
        patience: int | None = None,
        search: bool = True,
        **minibatches: Any,
    ) -> None:
        super().__init__(max_iter, tolerance, time_limit, patience, search)
        defaults = OnlineEM().get_params(deep=False)
        for name, value in minibatches.items():
            if name not in defaults:
                raise unknown_name("setting of EM", name, [*self.get_params(deep=False), "batch"])
            if value != defaults[name]:
                raise InputError(f"EM: {name}={value!r} is for minibatches; say how large they are with batch=...")

    def weights(self, posterior: Posterior, point: Point) -> Point:
        return point

    def point(self, posterior: Posterior, statistics: Statistics, previous: Point | None) -> tuple[Point, list[str]]:
        return posterior.next_mode(statistics, previous)

    def objective(self, prior: Posterior, posterior: Posterior | None, point: Point, log_normalizer: float) -> float:
        return log_normalizer + prior.log_density(point)
