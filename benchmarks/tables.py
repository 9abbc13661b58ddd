"""Results as tables: who trained how fast, how many times faster, and how far from what the machine could do."""

from __future__ import annotations

import math
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.cases import Case
from benchmarks.rounds import Entry


def wide_console() -> Console:
    """A console that leaves room for remarks when the output goes to a file."""
    return Console() if sys.stdout.isatty() else Console(width=150)


def show(console: Console, case: Case, entries: list[Entry], peaks: dict[int, float]) -> None:
    """Print all there is to say about one case."""
    console.print(_speeds(case, entries))
    console.print(_comparison(case, entries, peaks))
    agreement = _agreement(entries)
    if agreement:
        console.print(agreement)
    console.print()


def ratios(entries: list[Entry], ours: Entry) -> tuple[float, str, float]:
    """How many times faster than the fastest peer with the same inference, who that is, and than hmmlearn."""
    peers = [
        entry
        for entry in entries
        if entry.measurements
        and entry.contender.package != "subchain"
        and entry.contender.inference == ours.contender.inference
    ]
    if not peers or not ours.measurements:
        return math.nan, "–", math.nan
    fastest = max(peers, key=lambda entry: entry.best)
    hmmlearn = max((entry.best for entry in peers if entry.contender.package == "hmmlearn"), default=math.nan)
    return ours.best / fastest.best, fastest.contender.name, ours.best / hmmlearn


def _speeds(case: Case, entries: list[Entry]) -> Table:
    table = Table(title=case.title, title_justify="left", title_style="bold")
    for heading in ("", "inference", "threads"):
        table.add_column(heading, no_wrap=True)
    for heading in ("obs/s, best", "median", "ms/iteration", "cores", "memory"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("remark")
    for entry in entries:
        contender = entry.contender
        threads = "any" if contender.n_jobs is None else str(contender.n_jobs)
        table.add_row(contender.name, contender.inference, threads, *_figures(case, entry), entry.remark)
    return table


def _figures(case: Case, entry: Entry) -> list[str]:
    if not entry.measurements:
        return ["–"] * 5
    milliseconds = 1e3 * case.n_observations / entry.best
    return [
        count(entry.best),
        count(entry.median),
        f"{milliseconds:,.4g}",
        f"{entry.cores:.1f}",
        megabytes(entry.memory),
    ]


def _comparison(case: Case, entries: list[Entry], peaks: dict[int, float]) -> Table:
    needed = case.multiply_adds()
    dgemm = ", ".join(f"{peak / 1e9:.1f} on {n_jobs}" for n_jobs, peak in peaks.items())
    title = f"one observation needs {needed:,} multiply-adds; matrix products make {dgemm} threads, × 10⁹ a second"
    table = Table(title=title, title_justify="left", title_style="")
    table.add_column("", no_wrap=True)
    table.add_column("threads", no_wrap=True)
    for heading in ("/ fastest peer", "/ hmmlearn", "limit, obs/s", "of the limit"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        contender = entry.contender
        if contender.package != "subchain" or contender.n_jobs is None:
            continue
        by_fastest, fastest, by_hmmlearn = ratios(entries, entry)
        limit = peaks[contender.n_jobs] / needed
        table.add_row(
            f"subchain {contender.inference}",
            str(contender.n_jobs),
            f"{times(by_fastest)} ({fastest})",
            times(by_hmmlearn),
            count(limit),
            "–" if math.isnan(entry.best) else f"{entry.best / limit:.1%}",
        )
    return table


def _agreement(entries: list[Entry]) -> str:
    """Whether two implementations of the same iteration found the same: their log likelihoods in the second."""
    found = {
        entry.contender.package: entry.measurements[0].objectives[1]
        for entry in entries
        if entry.measurements
        and entry.share == 1.0
        and entry.contender.inference == "EM"
        and len(entry.measurements[0].objectives) > 1
    }
    ours, theirs = found.get("subchain"), found.get("hmmlearn")
    if ours is None or theirs is None:
        return ""
    return (
        f"log likelihood after one iteration: subchain {ours:.10g}, hmmlearn {theirs:.10g}, "
        f"relative difference {abs(ours - theirs) / abs(theirs):.1e}"
    )


def count(value: float) -> str:
    """A rate with three digits that mean something."""
    if math.isnan(value):
        return "–"
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB"


def times(ratio: float) -> str:
    return "–" if math.isnan(ratio) else f"{ratio:.3g} ×"
