"""The restarts of a fit side by side: which won, by how much, and what each of them cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subchain.inference.run.journey import RunSummary

#: Columns of numbers, which are aligned to the right.
NUMBERS = ("run", "objective", "iterations", "seconds", "states")


def winner(runs: Sequence[RunSummary]) -> int:
    """Return the number of the run with the best objective, the first of several."""
    return max(range(len(runs)), key=lambda number: (runs[number].objective, -number))


def restarts_table(runs: Sequence[RunSummary]) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns and the rows of a table of runs; a column that no run fills is left out.

    The kind of start is shown for runs that name it.
    """
    best = winner(runs)
    columns = {
        "run": [str(number + 1) for number in range(len(runs))],
        "start": [run.start for run in runs],
        "objective": [f"{run.objective:,.4f}" for run in runs],
        "iterations": [f"{run.iterations:,}" for run in runs],
        "seconds": ["" if run.seconds is None else f"{run.seconds:,.1f}" for run in runs],
        "states": ["" if run.n_states is None else str(run.n_states) for run in runs],
        "ended": [run.status.replace("_", " ") for run in runs],
        "": ["best" if number == best else "" for number in range(len(runs))],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    return list(shown), [list(row) for row in zip(*shown.values(), strict=True)]


def print_restarts(runs: Sequence[RunSummary]) -> None:
    """Print the table of restarts to standard error."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    heads, rows = restarts_table(runs)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in heads:
        table.add_column(head, justify="right" if head in NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(stderr=True, highlight=False).print(table)
