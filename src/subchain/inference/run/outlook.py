"""How long a fit will still take, from what it has done so far."""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass
class Outlook:
    """Estimate of the time that a fit will still take.

    Attributes
    ----------
    n_runs : number of runs of the fit
    n_iterations : largest number of iterations of a run; None if it is not limited
    may_end_early : whether a run may end before its last iteration
    time_limit : seconds after which the fit ends in any case
    run : number of the present run, from 0
    finished : seconds of every run of this call that has ended
    """

    n_runs: int = 1
    n_iterations: int | None = None
    may_end_early: bool = False
    time_limit: float = math.inf
    run: int = 0
    finished: list[float] = dataclasses.field(default_factory=list)
    _first: tuple[int, float] | None = None
    _last: tuple[int, float] = (0, 0.0)
    _began: float = 0.0
    _counts: bool = True

    def begin(self, run: int, seconds: float) -> None:
        """Note that a run begins, so many seconds after the fit began."""
        self.run, self._began, self._first, self._last = run, seconds, None, (0, seconds)

    def advance(self, iteration: int, seconds: float, has_compiled: bool = False) -> None:
        """Note that an iteration of the present run has ended, so many seconds after the fit began.

        One that has compiled kernels says nothing of those to come.
        """
        self._counts = not has_compiled or self._first is not None
        self._first = self._first or (iteration, seconds)
        self._last = iteration, seconds

    def end(self, seconds: float) -> None:
        """Note that the present run has ended."""
        self.finished.append(seconds - self._began)

    @property
    def iteration(self) -> int:
        """Number of iterations of the present run."""
        return self._last[0]

    @property
    def share(self) -> float | None:
        """Share of the iterations of all runs that are done; None if their number is not limited."""
        if self.n_iterations is None:
            return None
        return (self.run + min(self.iteration / self.n_iterations, 1.0)) / self.n_runs

    @property
    def is_bound(self) -> bool:
        """Whether `remaining` is the longest that the fit may take, rather than an estimate."""
        return self.may_end_early or self.time_limit < math.inf

    def remaining(self, seconds: float) -> float | None:
        """Return the estimate of the seconds left, so many seconds after the fit began; None if there is none yet.

        The first iteration of a run, which may have compiled kernels, is left out once there is a second. Runs that
        have not begun are expected to take as long as those before, on average.
        """
        left = self.time_limit - seconds
        of_run = self._of_present_run(seconds)
        if of_run is not None:
            a_run = seconds - self._began + of_run
            if self.finished:
                a_run = sum(self.finished) / len(self.finished)
            left = min(left, of_run + a_run * (self.n_runs - self.run - 1))
        return max(left, 0.0) if left < math.inf else None

    def _of_present_run(self, seconds: float) -> float | None:
        if self._first is None and self.finished:
            return max(sum(self.finished) / len(self.finished) - (seconds - self._began), 0.0)
        if self.n_iterations is None or self._first is None:
            return None
        (first, began), (last, ended) = self._first, self._last
        if last == first and not self._counts:
            return None
        each = (ended - began) / (last - first) if last > first else ended - self._began
        return max((self.n_iterations - last) * each - (seconds - ended), 0.0)


@dataclasses.dataclass
class Whole:
    """Several fits that belong together, such as those of a selection of the number of states.

    Attributes
    ----------
    work : expected work of all fits, in any unit
    n_fits : their number
    label : what the present fits are about
    kind, n_of_label : what the fits with this label are called ("fold"), and their number
    begun, begun_of_label : number of fits that have begun
    began : time of `time.perf_counter` at which the first began
    """

    work: float
    n_fits: int
    label: str = ""
    kind: str = "fit"
    n_of_label: int = 1
    begun: int = 0
    begun_of_label: int = 0
    began: float = math.nan
    _each: float = 1.0
    _done: float = 0.0

    def expect(self, label: str, kind: str, n_fits: int, work: float) -> None:
        """Announce fits with another label, with so much work each."""
        self.label, self.kind, self.n_of_label, self._each = label, kind, n_fits, work
        self.begun_of_label = 0

    def begin(self, now: float) -> None:
        """Note that a fit begins, at a time of `time.perf_counter`."""
        self.began = now if math.isnan(self.began) else self.began
        self.begun += 1
        self.begun_of_label += 1

    def end(self) -> None:
        """Note that the present fit has ended."""
        self._done += self._each

    def remaining(self, seconds: float, of_fit: float | None, seconds_of_fit: float) -> float | None:
        """Return the estimate of the seconds left for all fits, from the work done and the present fit's own estimate.

        Parameters
        ----------
        seconds : since the first fit began
        of_fit : estimate of what is left of the present fit
        seconds_of_fit : since the present fit began
        """
        if self._done:
            a_unit = (seconds - seconds_of_fit) / self._done
            return max(
                (self.work - self._done) * a_unit - seconds_of_fit, (self.work - self._done - self._each) * a_unit
            )
        return None if of_fit is None else (seconds_of_fit + of_fit) * self.work / self._each - seconds_of_fit

    def __str__(self) -> str:
        inner = f", {self.kind} {self.begun_of_label} of {self.n_of_label}" if self.n_of_label > 1 else ""
        return f"{self.label}{inner} (fit {self.begun} of {self.n_fits})"
