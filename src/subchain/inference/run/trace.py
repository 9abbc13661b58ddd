"""What happened during a run: the objective, held-out scores, times, and events worth telling."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, get_args

from subchain.core.ranges import header_number
from subchain.errors import FileFormatError

#: Relative changes of the objective that are nothing but rounding.
ROUNDING = 1e-10
Status = Literal["converged", "max_iter", "time_limit", "interrupted", "stopped_improving"]


def status_of(plain: Any) -> Status:
    """Return the status that a file names; raise a `FileFormatError` if there is none of this name."""
    if plain not in get_args(Status):
        raise FileFormatError(f"the status of a run is {plain!r:.60}, not one of {', '.join(get_args(Status))}")
    found: Status = plain
    return found


@dataclasses.dataclass(frozen=True)
class Event:
    """Something a user should know: when, and what."""

    iteration: int
    message: str


@dataclasses.dataclass
class Trace:
    """The course of one run, one entry an iteration.

    Attributes
    ----------
    objective : the bound, or the log posterior; for stochastic algorithms the mean log normaliser of an observation of
        the subchains since the last entry, which is noisy and no bound
    validation : held-out log likelihood per observation, empty without validation data
    seconds : time since the run began
    measures : further numbers by name: "scoring" (seconds that the held-out score took); "updates", "rate" and "growth"
        (how far buffers reach) of stochastic runs; "left_out" of `CVI`, the log probability of each cluster given all
        others, added up (nan where neighbours are weighed by counts, which makes no probabilities, and for a pass that
        was cut short); "sweeps", "temperature", "changed", "accepted" and "log_joint.i" of chain i of `Gibbs`
    events : what was out of the ordinary
    start : the kind of start that the run began with, empty if it began with a model
    """

    objective: list[float] = dataclasses.field(default_factory=list)
    validation: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    measures: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    events: list[Event] = dataclasses.field(default_factory=list)
    start: str = ""

    def __len__(self) -> int:
        return len(self.objective)

    def known_objectives(self) -> list[float]:
        """The objectives of the iterations that have one."""
        return [value for value in self.objective if not math.isnan(value)]

    def has_settled(self, tolerance: float, coming: float | None = None) -> bool:
        """Whether the last iteration changed the objective by no more than this fraction, and no more than that before.

        Changes that are small and grow are those of a run that is leaving a plateau. The iteration may be yet to come.
        """
        known = [*self.known_objectives(), *([] if coming is None else [coming])][-3:]
        if len(known) < 3:
            return False
        before, change = abs(known[1] - known[0]), abs(known[2] - known[1])
        return change <= tolerance * abs(known[2]) and change <= max(before, ROUNDING * abs(known[2]))

    def settled_at(self, tolerance: float, coming: float | None) -> float | None:
        """The highest objective so far if a run settles with the coming one, else None."""
        if coming is None or not self.has_settled(tolerance, coming):
            return None
        return max(coming, *self.known_objectives())

    def tell(self, iteration: int, message: str) -> None:
        """Record an event, once for each message."""
        if all(event.message != message for event in self.events):
            self.events.append(Event(iteration, message))

    def to_json(self) -> dict[str, Any]:
        """Plain lists, for files."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Trace:
        """Return the trace of a file; raise a `FileFormatError` if its lists are none of one run."""
        events = [Event(header_number(event, "iteration"), str(event["message"])) for event in plain["events"]]
        measures = dict(plain.get("measures", {}))
        columns = {name: plain[name] for name in ("objective", "validation", "seconds")}
        length = len(columns["objective"])
        for name, column in (columns | measures).items():
            if not isinstance(column, list) or any(type(value) not in (int, float) for value in column):
                raise FileFormatError(f"{name} of the trace is no list of numbers")
            if len(column) > length or (name == "seconds" and len(column) < length):
                raise FileFormatError(f"{name} of the trace has {len(column)} entries for {length} iterations")
        if not all(0.0 <= value < math.inf for value in columns["seconds"]):
            raise FileFormatError("seconds of the trace are not all finite and positive")
        return cls(**columns, measures=measures, events=events, start=str(plain.get("start", "")))
