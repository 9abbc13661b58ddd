"""Contenders take turns: round after round each is measured once, so that what disturbs the machine disturbs all.

Before the first round a trial on a small part of the data tells how long an iteration takes. A package for which all of
the data would take too long, or too much memory, gets a tenth or a hundredth of them; the work per observation is the
same.

A peer may use as many threads as it likes in every other round, and one in the rounds between: linear algebra on many
threads makes some packages slower. The better counts.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.cases import Case
from benchmarks.contenders import Contender
from benchmarks.supervision import Limits, Measurement, Task, carry_out

SHARES = {1.0: "all", 0.1: "1/10", 0.01: "1/100"}
#: Problems with fewer observations than this are tried as a whole.
SMALL = 100_000


@dataclasses.dataclass(frozen=True)
class Pace:
    """How much time to give.

    Attributes
    ----------
    repeats : rounds
    target : seconds that one measurement should fill with iterations
    longest : seconds that one iteration may take before a contender gets less data
    """

    repeats: int = 3
    target: float = 4.0
    longest: float = 30.0
    most_iterations: int = 100

    def n_iterations(self, seconds: float) -> int:
        """Iterations to measure, and one before that does not count unless it is very long."""
        if seconds > self.target:
            return 2 if seconds < self.longest / 2 else 1
        return 1 + max(2, min(self.most_iterations, math.ceil(self.target / max(seconds, 1e-6))))


@dataclasses.dataclass
class Entry:
    """One contender in one case, and all that was measured of it.

    Attributes
    ----------
    failures : share of the data, and what happened on it
    seconds_expected : of one iteration on all of the data
    """

    contender: Contender
    share: float = 1.0
    seconds_expected: float = 0.0
    measurements: list[Measurement] = dataclasses.field(default_factory=list)
    failures: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    retired: bool = False

    @property
    def iteration_seconds(self) -> list[float]:
        return [seconds for measurement in self.measurements for seconds in measurement.steady]

    @property
    def n_observations(self) -> int:
        return self.measurements[-1].n_observations

    @property
    def best(self) -> float:
        """Observations a second, in the fastest iteration."""
        return self.n_observations / min(self.iteration_seconds) if self.measurements else math.nan

    @property
    def median(self) -> float:
        """Observations a second, in the median iteration of the best round."""
        if not self.measurements:
            return math.nan
        return self.n_observations / min(statistics.median(measurement.steady) for measurement in self.measurements)

    @property
    def memory(self) -> int:
        """Bytes beyond libraries and data; the least of all rounds, since the first may have compiled something."""
        return min(measurement.memory for measurement in self.measurements)

    @property
    def cores(self) -> float:
        """Cores that were kept busy in the best round; less than one where others used the machine."""
        best = min(self.measurements, key=lambda measurement: min(measurement.steady))
        return best.processor_seconds / best.elapsed

    @property
    def remark(self) -> str:
        """Anything but a full measurement, in words."""
        words = [f"on {SHARES[self.share]} of the data"] if self.measurements and self.share < 1.0 else []
        words += [f"{SHARES[share]}: {failure}" if share in SHARES else failure for share, failure in self.failures]
        return "; ".join(words)

    def to_json(self) -> dict[str, Any]:
        return {
            "contender": self.contender.name,
            "inference": self.contender.inference,
            "threads": self.contender.n_jobs,
            "share": self.share,
            "best": self.best,
            "median": self.median,
            "failures": [{"share": share, "failure": failure} for share, failure in self.failures],
            "measurements": [dataclasses.asdict(measurement) for measurement in self.measurements],
        }


class Race:
    """All contenders on one problem."""

    def __init__(
        self,
        case: Case,
        problem: Path,
        contenders: list[Contender],
        pace: Pace,
        limits: Limits,
        tell: Callable[[str], None],
    ) -> None:
        self.case, self.problem, self.pace, self.limits, self.tell = case, problem, pace, limits, tell
        self.entries = [Entry(contender) for contender in contenders]

    def run(self) -> list[Entry]:
        """Trials first, then the rounds."""
        for entry in self.entries:
            self._try_out(entry)
        for round_number in range(self.pace.repeats):
            for entry in self.entries:
                if not entry.retired:
                    self.tell(f"({self.case.name}) round {round_number + 1}: {entry.contender.key}")
                    self._measure(entry, entry.contender.n_jobs or (None, 1)[round_number % 2])
        return self.entries

    def _try_out(self, entry: Entry) -> None:
        if not entry.contender.installed:
            self._retire(entry, 0.0, "not installed")
            return
        share = 1.0 if self.case.n_observations <= SMALL else min(SHARES)
        self.tell(f"({self.case.name}) trial: {entry.contender.key}")
        trial = carry_out(Task(entry.contender, self.problem, share, 2, entry.contender.n_jobs), self.limits)
        if trial.failure is not None:
            self._retire(entry, share, trial.failure)
            return
        entry.seconds_expected = min(trial.seconds) * self.case.n_observations / trial.n_observations
        bearable = [share for share in SHARES if share * entry.seconds_expected <= self.pace.longest]
        entry.share = max(bearable, default=min(SHARES))

    def _measure(self, entry: Entry, n_threads: int | None) -> None:
        """Measure once; where memory runs out, try a tenth of the data."""
        n_iterations = self.pace.n_iterations(entry.seconds_expected * entry.share)
        measured = carry_out(Task(entry.contender, self.problem, entry.share, n_iterations, n_threads), self.limits)
        if measured.failure is None:
            entry.measurements.append(measured)
            return
        smaller = [share for share in SHARES if share < entry.share]
        if not measured.failure.startswith("out of memory") or not smaller or entry.measurements:
            self._retire(entry, entry.share, measured.failure)
            return
        entry.failures.append((entry.share, measured.failure))
        entry.share = max(smaller)
        self._measure(entry, n_threads)

    def _retire(self, entry: Entry, share: float, failure: str) -> None:
        entry.failures.append((share, failure))
        entry.retired = True
        self.tell(f"({self.case.name}) {entry.contender.key}: {failure}")
