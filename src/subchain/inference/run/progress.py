"""What a person sees while a fit goes on: one line, on a terminal only; and what a log says of every iteration.

Iterations, ends of runs and compilations are also told to the logger "subchain" of Python's `logging`, so that a
program, or `subchain fit --log`, can keep them.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

from subchain.errors import InputError
from subchain.inference.run.outlook import Outlook, Whole
from subchain.numerics.compilation import watching_compilation

if TYPE_CHECKING:
    from subchain.inference.run.loop import RunState

LOGGER = logging.getLogger("subchain")
STOPPING = "stopping after this iteration; press Ctrl-C again to abort"
#: Times a second that the line is drawn.
REFRESH = 5
#: Fits that the present one belongs to.
_WHOLE: ContextVar[Whole | None] = ContextVar("whole", default=None)


@contextmanager
def fits_of(whole: Whole) -> Iterator[Whole]:
    """Let the lines of all fits inside the context tell of the whole that they belong to."""
    token = _WHOLE.set(whole)
    try:
        yield whole
    finally:
        _WHOLE.reset(token)


def is_shown(show: bool | str) -> bool:
    """Return whether progress is shown, for a setting True, False or "auto" (if standard error is a terminal)."""
    if show not in (True, False, "auto"):
        raise InputError(f"progress must be True, False or 'auto', not {show!r}.")
    return sys.stderr is not None and (sys.stderr.isatty() if show == "auto" else bool(show))


class Progress:
    """A line with iterations, elapsed and remaining time, objective and speed; draws nothing without a terminal.

    Parameters
    ----------
    show : True, False or "auto" (only if standard error is a terminal)
    what : what is fitted
    unit : name of a unit that users count in, and the number of observations in it, for the speed
    """

    def __init__(self, show: bool | str, what: str = "fit", unit: tuple[str, float] | None = None) -> None:
        self.visible = is_shown(show)
        self.what, self.unit = what, unit
        self.outlook = Outlook()
        self.objective = math.nan
        self.visited, self.speed = 0.0, math.nan
        self.is_compiling = self.is_stopping = self._has_compiled = False
        self._whole = _WHOLE.get()
        self._contexts = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        self._began = time.perf_counter()
        if self._whole is not None:
            self._whole.begin(self._began)
        self._contexts.enter_context(watching_compilation(self._compiling))
        if self.visible:
            from rich.console import Console
            from rich.live import Live

            live = Live(
                console=Console(stderr=True), refresh_per_second=REFRESH, transient=True, get_renderable=self._drawn
            )
            self._contexts.enter_context(live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._contexts.close()
        if self._whole is not None:
            self._whole.end()

    @property
    def is_alone(self) -> bool:
        """Whether the fit belongs to no others, so that its end is the end of what the user asked for."""
        return self._whole is None

    def expect(self, outlook: Outlook, visited: float) -> None:
        """Tell what is to come, and how many observations an iteration visits."""
        self.outlook, self.visited = outlook, visited

    # ---- what happens ------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds since the fit began."""
        return time.perf_counter() - self._began

    def begin(self, run: int) -> None:
        """Note that a run begins."""
        self.objective, self.speed, self._has_compiled = math.nan, math.nan, False
        self.outlook.begin(run, self.seconds)
        LOGGER.info("run %s begins", self._of_runs())

    def update(self, state: RunState) -> None:
        """Note that an iteration has ended."""
        trace, self.is_compiling = state.trace, False
        self.outlook.advance(state.iteration, self.seconds, self._has_compiled)
        last = trace.seconds[-1] - (trace.seconds[-2] if len(trace.seconds) > 1 else 0.0)
        self.speed = self.visited / last if last > 0.0 else math.nan
        if not math.isnan(trace.objective[-1]):
            self.objective = trace.objective[-1]
        if LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug("%s", self._logged(state))
            for event in trace.events:
                if event.iteration == state.iteration:
                    LOGGER.info("run %s iteration %d: %s", self._of_runs(), event.iteration, event.message)

    def end(self, state: RunState) -> None:
        """Note that a run has ended."""
        self.outlook.end(self.seconds)
        LOGGER.info("run %s ends after %d iterations: %s", self._of_runs(), state.iteration, state.status)

    def acknowledge(self) -> None:
        """Say that an interruption waits for the end of an iteration; called by a handler of signals."""
        self.is_stopping = True
        if not self.visible and sys.stderr is not None and sys.stderr.isatty():
            os.write(2, f"{STOPPING}\n".encode())  # printing is not safe inside a handler of signals

    def _compiling(self, is_under_way: bool) -> None:
        if is_under_way and not self.is_compiling:
            LOGGER.info("compiling kernels")
        self.is_compiling = is_under_way
        self._has_compiled |= is_under_way

    # ---- what is shown -----------------------------------------------------------------------------------------------

    def _of_runs(self) -> str:
        return f"{self.outlook.run + 1}/{self.outlook.n_runs}"

    def _iterations(self) -> str:
        limit = self.outlook.n_iterations
        return f"{self.outlook.iteration}" if limit is None else f"{self.outlook.iteration}/{limit}"

    def _logged(self, state: RunState) -> str:
        trace, index = state.trace, state.iteration - 1
        entries = {"objective": trace.objective, "held_out": trace.validation} | trace.measures
        numbers = [f"{name}={values[index]:.10g}" for name, values in entries.items() if len(values) > index]
        about = "" if self._whole is None else f"{self._whole}: "
        start = f"{about}run {self._of_runs()} iteration {self._iterations()} seconds={trace.seconds[index]:.3f}"
        return " ".join([start, *numbers])

    def line(self) -> str:
        """Return the line as text: what goes on, its times, and how it goes."""
        seconds, outlook = self.seconds, self.outlook
        elapsed, left, word = seconds, outlook.remaining(seconds), "at most" if outlook.is_bound else "about"
        what = f"{self.what} {self._of_runs()}" if outlook.n_runs > 1 else self.what
        if self._whole is not None:
            elapsed = time.perf_counter() - self._whole.began
            what = f"{self._whole}, run {self._of_runs()}" if outlook.n_runs > 1 else str(self._whole)
            left, word = self._whole.remaining(elapsed, left, seconds), "about"
        if self.is_stopping:
            return f"{what}  {self._iterations()}  {STOPPING}  elapsed {_clock(elapsed)}"
        if self.is_compiling:
            return f"{what}  compiling (kept on disk for the next time)  elapsed {_clock(elapsed)}"
        texts = [what, self._iterations() if outlook.iteration else "preparing", f"elapsed {_clock(elapsed)}"]
        texts.append("remaining –" if left is None else f"remaining {word} {_clock(left)}")
        if not math.isnan(self.objective):
            texts.append(f"objective {self.objective:,.{4 if abs(self.objective) < 1e4 else 0}f}")
        if not math.isnan(self.speed):
            texts.append(self._speed())
        return "  ".join(texts)

    def _speed(self) -> str:
        if self.unit is None:
            return f"{self.speed / 1e6:.2f} M obs/s"
        name, size = self.unit
        return f"{self.speed / size:,.0f} {name}/s"

    def _drawn(self) -> Any:
        """Return the line for Rich, cut to the width of the terminal; the times come before what may be cut."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        share, row = self.outlook.share, Table.grid(padding=(0, 1))
        row.add_column(width=12)
        row.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=1.0 if share is not None else None, completed=share or 0.0, width=12)
        row.add_row(bar, Text(self.line()))
        return row


def _clock(seconds: float) -> str:
    """Return a time as m:ss or h:mm:ss, or in days.

    Examples
    --------
    >>> _clock(63.2), _clock(3723), _clock(3e5)
    ('1:03', '1:02:03', '3.5 days')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{seconds / 86400:,.1f} days"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
