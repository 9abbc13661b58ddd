"""What all stochastic algorithms share: their settings, when a run ends, and how runs are compared."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import number, positive_number, whole_number
from subchain.core.parts import IncrementalPosterior, Point, Posterior
from subchain.errors import InputError, unknown_name
from subchain.inference.run.algorithm import Algorithm, Files
from subchain.inference.run.loop import RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.trace import Trace
from subchain.inference.stochastic.updates import Draw, Updates
from subchain.structures.base import Plan
from subchain.structures.chain.boundaries import Boundary
from subchain.structures.chain.boundary_choice import USUAL_MIXING_TIME, boundary_of, resolve_boundary
from subchain.structures.chain.minibatches import plan_for

if TYPE_CHECKING:
    from subchain.inference.run.loop import Stepper

STARTS = ("grid", "anywhere")
#: Updates and passes of a run that was given no limit, whichever is more.
LEAST_UPDATES, PASSES = 1000, 5.0


#: Length of subchains that is typically chosen, and number of tables (K, n) that a minibatch of n positions takes.
USUAL_LENGTH, BATCH_TABLES = 2 * USUAL_MIXING_TIME, 4


class Stochastic(Algorithm):
    """Base of the stochastic algorithms.

    Parameters
    ----------
    length : int, "auto" or None
        Positions of a subchain. None takes whole sequences; "auto" does so too if all are short, and else chooses a
        length by how soon the chain forgets.
    batch : int, optional
        Subchains (or sequences) of an update; by default so many that an update sees about 2000 observations.
    boundary : str or Boundary
        What subchains know of the rest of their chain: "auto", "stationary", `Buffer(n)`, `GrowBuffer()`, `Guards()`.
        "auto" takes guards where subchains are short and visited more than once, and else a buffer as long as the
        mixing time, which a short trial measures.
    delay, forgetting : float
        The n-th update moves the statistics by ρ = (delay + n)^−forgetting towards the minibatch's.
    starts : "grid" or "anywhere"
        Whether subchains are the pieces of a fixed grid, or begin anywhere.
    max_updates, max_passes : optional
        When to stop. With neither, nor patience: after five passes and a thousand updates.
    time_limit : float, optional
        Seconds after which a call of `fit` ends with what it has; all its restarts count, an earlier call that it
        resumes does not.
    patience : int, optional
        With validation data: reports without a better held-out score after which the run ends.
    report_every : int
        Updates between two entries of the trace.
    adapt : bool
        Choose ρ by the noise of the minibatches instead.
    average : bool
        Report the mean of the statistics over about the last half of the run instead of the last.
    search : bool
        Whether to look for better states now and then: two states are merged, a third is split, and the result is kept
        if an excerpt of the data is explained better. With `HDP` the number of states may change.
    """

    #: The surrogate of the posterior that minibatches are run under.
    kind: ClassVar[str]
    comparable = False

    def __init__(
        self,
        length: int | str | None = "auto",
        batch: int | None = None,
        boundary: str | Boundary = "auto",
        delay: float = 1.0,
        forgetting: float = 0.6,
        starts: str = "grid",
        max_updates: int | None = None,
        max_passes: float | None = None,
        time_limit: float | None = None,
        patience: int | None = None,
        report_every: int = 100,
        adapt: bool = False,
        average: bool = False,
        search: bool = True,
    ) -> None:
        self.search = search
        self.length = length
        self.batch = batch
        self.boundary = boundary
        self.delay = delay
        self.forgetting = forgetting
        self.starts = starts
        self.max_updates = max_updates
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.patience = patience
        self.report_every = report_every
        self.adapt = adapt
        self.average = average

    def check(self) -> None:
        super().check()
        if self.length is not None and self.length != "auto":
            whole_number(self, "length", 2)
        for name in ("batch", "max_updates"):
            if getattr(self, name) is not None:
                whole_number(self, name)
        whole_number(self, "report_every")
        number(self, "delay", 0.0)
        if self.max_passes is not None:
            positive_number(self, "max_passes")
        if self.starts not in STARTS:
            raise unknown_name("kind of starts", self.starts, STARTS)
        number(self, "forgetting", 0.0)
        if not (math.isfinite(self.forgetting) and math.isfinite(self.delay)):
            raise InputError(f"{type(self).__name__}: delay and forgetting must be finite.")
        if not 0.5 <= self.forgetting <= 1.0:
            warnings.warn(
                f"{type(self).__name__}: forgetting={self.forgetting} is outside [0.5, 1]: below, the steps do not "
                "shrink fast enough for the noise to die out; above, they shrink before the run has arrived.",
                stacklevel=2,
            )
        given = resolve_boundary(self.boundary)
        if given is not None:
            given.check()

    # ---- the algorithm -----------------------------------------------------------------------------------------------

    @abstractmethod
    def update(self, model: IncrementalPosterior, draw: Draw) -> None:
        """Do one update of the posterior from the minibatch of `draw`."""

    def weights(self, posterior: Posterior, point: Point) -> Point:
        return point if self.kind == "mode" else posterior.weights(self.kind)

    @property
    def files(self) -> Files:
        return "none" if getattr(resolve_boundary(self.boundary), "storage", None) is None else "shared"

    # ---- memory ------------------------------------------------------------------------------------------------------

    def _plan(self, lengths: NDArray[np.int64]) -> Plan:
        """Return how a run cuts sequences of these lengths, if their mixing time is the usual one."""
        longest = max(int(lengths.max(initial=1)), 1)
        length = longest if self.length is None else USUAL_LENGTH if isinstance(self.length, str) else self.length
        n_units = int((-(-lengths // min(length, longest))).sum())
        return plan_for(self, n_units, min(length, longest), int(lengths.sum()))

    def kept_bytes(self, lengths: NDArray[np.int64], n_states: int) -> int:
        plan = self._plan(lengths)
        boundary = boundary_of(self, plan, int(lengths.max(initial=1)), None, n_states)
        return boundary.held_bytes(plan.n_units, n_states)

    def working_bytes(self, lengths: NDArray[np.int64], n_states: int, n_jobs: int, *, has_symbols: bool) -> int:
        return int(BATCH_TABLES * 8 * n_states * self._plan(lengths).n_observations)

    # ---- the run -----------------------------------------------------------------------------------------------------

    def n_updates(self, problem: Problem) -> int | None:
        """Return the number of updates after which a run ends; None if no limit is known beforehand."""
        a_pass = problem.structure.n_observations / problem.structure.plan(self).n_observations
        limits: list[float] = []
        if self.max_updates is not None:
            limits.append(self.max_updates)
        if self.max_passes is not None:
            limits.append(math.ceil(self.max_passes * a_pass))
        watched = self.patience is not None and problem.validation is not None
        if not limits and not watched:
            limits.append(max(LEAST_UPDATES, math.ceil(PASSES * a_pass)))
        return int(max(min(limits), 1)) if limits else None

    def n_iterations(self, problem: Problem) -> int | None:
        updates = self.n_updates(problem)
        return None if updates is None else -(-updates // self.report_every)

    def visited(self, problem: Problem) -> float:
        return float(self.report_every * problem.structure.plan(self).n_observations)

    def measured(self, trace: Trace) -> set[str]:
        return {"updates"}  # how far buffers grew is known only of updates that were not compiled into one call

    def is_at_limit(self, problem: Problem, trace: Trace) -> bool:
        """Return whether all updates are done; a time limit may have added reports between those of a schedule."""
        limit = self.n_updates(problem)
        return limit is not None and trace.measures.get("updates", [0.0])[-1] >= limit

    def stepper(self, problem: Problem, state: RunState) -> Stepper:
        return Updates(problem, self, state)
