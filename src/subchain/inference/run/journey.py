"""The restarts of a fit: where each of them stands, and how those ended that have.

A limit that is raised lets every restart go on that it had ended, so the states of all of them are kept if they are
small. A restart whose results were left out begins again, and comes to the same.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

from subchain.core.parts import Point
from subchain.core.ranges import header_number
from subchain.errors import FileFormatError
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.trace import Status, status_of


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """How one restart ended.

    Attributes
    ----------
    objective : the number by which restarts are compared
    status : why the run ended
    iterations : number of its iterations
    start : the kind of start that it began with
    n_states : number of states in use at its end; None if that is not known
    seconds : time that it took, over all calls; None if that is not known
    """

    objective: float
    status: Status
    iterations: int
    start: str = ""
    n_states: int | None = None
    seconds: float | None = dataclasses.field(default=None, compare=False)

    @classmethod
    def of(cls, state: RunState, objective: float) -> RunSummary:
        """Return the summary of a run that has ended."""
        assert state.status is not None
        found, seconds = state.results.reported, state.trace.seconds
        n_states = None if found is None else found.n_states_used
        spent = seconds[-1] if seconds else None
        return cls(objective, state.status, state.iteration, state.trace.start, n_states, spent)

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> RunSummary:
        """Return the summary of a file; raise a `FileFormatError` if it is none."""
        if type(plain["objective"]) not in (int, float) or math.isnan(plain["objective"]):
            raise FileFormatError(f"the objective of a run is {plain['objective']!r:.60}, not a number")
        seconds = plain.get("seconds")
        if seconds is not None and (type(seconds) not in (int, float) or not 0.0 <= seconds < math.inf):
            raise FileFormatError(f"the seconds of a run are {seconds!r:.60}, not a positive number")
        n_states = None if plain.get("n_states") is None else header_number(plain, "n_states")
        status, iterations = status_of(plain["status"]), header_number(plain, "iterations")
        return cls(plain["objective"], status, iterations, str(plain.get("start", "")), n_states, seconds)


#: Stands for results that were left out.
LEFT_OUT = Known(None, cast(Point, None))


@dataclasses.dataclass(eq=False)
class Restart:
    """One restart.

    Attributes
    ----------
    state : where it stands; its results may have been left out if it is not the best
    summary : how it ended; None while it goes on
    """

    state: RunState
    summary: RunSummary | None = None

    @property
    def has_results(self) -> bool:
        return self.state.results is not LEFT_OUT

    def leave_out(self) -> None:
        """Forget the results of a restart that has ended; its trace says which limit ended it."""
        self.state = dataclasses.replace(self.state, results=LEFT_OUT)


@dataclasses.dataclass
class Journey:
    """All restarts of a fit that have begun, in their order, and whether the fit was cut short."""

    restarts: list[Restart] = dataclasses.field(default_factory=list)
    interrupted: bool = False

    @property
    def summaries(self) -> list[RunSummary]:
        """How restarts ended."""
        return [restart.summary for restart in self.restarts if restart.summary is not None]

    @property
    def winner(self) -> Restart | None:
        """The restart with the best objective, the first of several; its results may have been left out."""
        return _best(self.restarts)

    @property
    def best(self) -> RunState | None:
        """The state of the best restart whose results are known."""
        found = _best([restart for restart in self.restarts if restart.has_results])
        return None if found is None else found.state

    @property
    def losers(self) -> list[Restart]:
        """The restarts that have ended and are not the best."""
        winner = self.winner
        return [restart for restart in self.restarts if restart.summary is not None and restart is not winner]


def _best(restarts: list[Restart]) -> Restart | None:
    """Return the restart with the best objective among those that have ended, the first of several."""
    ended = [(restart.summary.objective, -n) for n, restart in enumerate(restarts) if restart.summary is not None]
    return restarts[-max(ended)[1]] if ended else None
