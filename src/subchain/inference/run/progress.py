"""What a person sees while a run goes on: one line, on a terminal only."""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import Any

from subchain.errors import InputError
from subchain.inference.run.loop import RunState


class Progress:
    """A line with iteration, speed, objective and time left; does nothing without a terminal.

    Parameters
    ----------
    show : True, False or "auto" (only if standard error is a terminal)
    """

    def __init__(self, show: bool | str, max_iter: int | None, n_observations: int, n_runs: int) -> None:
        if show not in (True, False, "auto"):
            raise InputError(f"progress must be True, False or 'auto', not {show!r}.")
        has_stderr = sys.stderr is not None  # programs without a console have none
        self.visible = has_stderr and (sys.stderr.isatty() if show == "auto" else bool(show))
        self.max_iter = max_iter
        self.n_observations = n_observations
        self.n_runs = n_runs
        self.run = 0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self.visible:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.completed}/{task.total}"),
                TextColumn("{task.fields[speed]} obs/s  objective {task.fields[objective]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.__enter__()
            self._task = self._bar.add_task("fit", total=self.max_iter, speed="–", objective="–")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, traceback)

    def begin(self, run: int) -> None:
        """A new restart begins."""
        self.run = run

    def update(self, state: RunState) -> None:
        """An iteration has ended."""
        if self._bar is None:
            return
        seconds = state.trace.seconds
        last = seconds[-1] - (seconds[-2] if len(seconds) > 1 else 0.0)
        objective = state.trace.objective[-1]
        self._bar.update(
            self._task,
            description=f"fit {self.run + 1}/{self.n_runs}" if self.n_runs > 1 else "fit",
            completed=state.iteration,
            speed=f"{self.n_observations / last / 1e6:.2f} M" if last > 0 else "–",
            objective="–" if math.isnan(objective) else f"{objective:.6g}",
        )
