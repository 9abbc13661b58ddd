"""Expectation maximisation (Baum et al. 1970): the surrogate is the most probable HMM itself.

Every pass computes expected counts under the present parameters; the next parameters maximise the posterior those
counts make (the likelihood, where no prior was given). The log posterior never falls.
"""

from __future__ import annotations

import inspect
from typing import Any

from subchain.core.parts import IncrementalPosterior, Point, Posterior
from subchain.core.statistics import Statistics
from subchain.errors import InputError, unknown_name
from subchain.inference.batch.passes import Batch
from subchain.inference.run.trace import Status, Trace
from subchain.inference.stochastic.settings import Stochastic
from subchain.inference.stochastic.updates import Draw
from subchain.transitions.stationary_mode import TOO_MANY, UNSOLVED


class OnlineEM(Stochastic):
    """EM over minibatches (Cappé & Moulines 2009); users write `EM(batch=...)`."""

    name = "online_em"

    def __repr__(self) -> str:
        return super().__repr__().replace("OnlineEM", "EM", 1)

    flat = weighs_points = True
    kind = "mode"

    def update(self, model: IncrementalPosterior, draw: Draw) -> None:
        fresh = draw.expected_statistics(model.weights("mode"))
        rate = draw.step_size(fresh)
        model.blend(1.0 - rate, fresh.scaled(rate), fresh.statistics)

    def point(self, posterior: Posterior, statistics: Statistics, previous: Point | None) -> tuple[Point, list[str]]:
        return posterior.mode(), []


class EM(Batch):
    """Maximum likelihood; maximum a posteriori for every component whose prior was given.

    A state that loses all its observations keeps the parameters it had, and the trace says so. With
    `Dirichlet(initial="stationary")` the likelihood of the first states is maximised too, but not that of more than
    1024 states, nor of chains with parts that never meet: `fit` warns that the result is approximate then.

    `EM(batch=…)` is online EM: it visits so many subchains (or whole sequences) at a time, and the statistics change a
    little with each.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tolerance : float
        The run has converged when an iteration changes the log posterior by less than this fraction.
    time_limit : float, optional
        Seconds after which the run ends with what it has.
    patience : int, optional
        With validation data: iterations without a better held-out score after which the run ends.
    search : bool
        Whether to look for better states once the run has settled: two states are merged, a third is split, and the
        result is kept if the objective rises. The trace says what was tried.
    **minibatches : int, float, str or bool
        Settings of online EM. ``batch`` is the number of subchains (or sequences) of an update; without it every
        iteration visits all the data. ``length``, ``boundary``, ``delay``, ``forgetting``, ``starts``, ``max_updates``,
        ``max_passes``, ``report_every``, ``adapt`` and ``average`` are as in `SVI` and need ``batch``. Online EM has no
        `max_iter` and no `tolerance`.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, EM
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 10)
    >>> HMM(2, "categorical", inference=EM(max_iter=200), random_state=0).fit(x).status_
    'converged'
    """

    name = "em"
    flat = weighs_points = True
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

    def complaint(self, trace: Trace, status: Status) -> str | None:
        approximate = [event.message for event in trace.events if event.message in (TOO_MANY, UNSOLVED)]
        found = super().complaint(trace, status)
        return " ".join([*([found] if found else []), *(f"EM: {message}." for message in approximate)]) or None

    def objective(self, prior: Posterior, posterior: Posterior | None, point: Point, log_normalizer: float) -> float:
        return log_normalizer + prior.log_density(point)


def _settings() -> inspect.Signature:
    """Return the signature of `EM` for `help`: its own settings, and by name those of `OnlineEM`."""
    own = [p for p in inspect.signature(EM.__init__).parameters.values() if p.kind is not p.VAR_KEYWORD][1:]
    names = {parameter.name for parameter in own}
    online = [p for p in inspect.signature(OnlineEM).parameters.values() if p.name not in names]
    return inspect.Signature([*own, *(parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in online)])


EM.__signature__ = _settings()  # type: ignore[attr-defined]
