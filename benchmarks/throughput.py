"""Training speed beside other packages, interleaved in one run.

    python -m benchmarks.throughput --cases a,b,c --repeats 3 --json throughput.json

One number: observations a second of one full training iteration, that is expected statistics of all the data and new
parameters, best of several. Start-up and compilation are left out for all packages. Every measurement has a process of
its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.cases import CASES, Case, draw
from benchmarks.contenders import Contender
from benchmarks.machine import describe, peak_multiply_adds
from benchmarks.ours import PRECISIONS, Subchain
from benchmarks.peers import PEERS
from benchmarks.rounds import Entry, Pace, Race
from benchmarks.supervision import Limits
from benchmarks.tables import show, wide_console

#: How much smaller the cases are with --quick.
QUICK = 50


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    options = _parse(arguments)
    console, progress = wide_console(), Console(stderr=True, style="dim")
    pace = Pace(repeats=options.repeats)
    if options.quick:
        pace = Pace(repeats=options.repeats, target=0.3, longest=5.0)
    limits = Limits(options.time_limit, options.memory_limit)
    peaks: dict[int, float] = dict.fromkeys(options.jobs, 0.0)
    record: dict[str, Any] = {
        "machine": describe(),
        "pace": dataclasses.asdict(pace),
        "limits": dataclasses.asdict(limits),
        "multiply_adds_per_second": peaks,
        "cases": [],
    }
    for case in _cases(options):
        for n_jobs in peaks:
            peaks[n_jobs] = max(peaks[n_jobs], peak_multiply_adds(n_jobs))
        entries = race(case, _contenders(options), pace, limits, progress.print)
        show(console, case, entries, peaks)
        record["cases"].append(_case_record(case, entries))
        if options.json:
            options.json.write_text(json.dumps(_plain(record), indent=1))


def race(
    case: Case, contenders: list[Contender], pace: Pace, limits: Limits, tell: Callable[[str], None]
) -> list[Entry]:
    """Draw a problem and let every package train on it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "problem.npz")
        tell(f"({case.name}) drawing {case.n_observations:,} observations")
        draw(case).save(path)
        return Race(case, path, contenders, pace, limits, tell).run()


def _contenders(options: argparse.Namespace) -> list[Contender]:
    ours: list[Contender] = [
        Subchain(inference, n_jobs, precision)
        for inference in ("EM", "VI")
        for n_jobs in options.jobs
        for precision in options.precision
    ]
    return ours + [contender for peer in options.peers for contender in PEERS[peer]]


def _cases(options: argparse.Namespace) -> list[Case]:
    cases = [CASES[name] for name in options.cases]
    return [case.smaller(QUICK) if case.name != "f" else case for case in cases] if options.quick else cases


def _case_record(case: Case, entries: list[Entry]) -> dict[str, Any]:
    return {
        **dataclasses.asdict(case),
        "n_observations": case.n_observations,
        "multiply_adds": case.multiply_adds(),
        "entries": [entry.to_json() for entry in entries],
    }


def _plain(value: Any) -> Any:
    """Without nan and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.throughput", description=__doc__.split("\n")[0])
    all_cores = sorted({1, os.cpu_count() or 1})
    parser.add_argument("--cases", type=_names(CASES), default=list(CASES), help="cases, such as a,c (all)")
    parser.add_argument("--repeats", type=int, help="rounds (4; 2 with --quick)")
    parser.add_argument("--peers", type=_names(PEERS), default=list(PEERS), help="other packages ('' for none)")
    parser.add_argument("--jobs", type=_numbers, default=all_cores, help="threads of subchain (1 and all cores)")
    known = dict.fromkeys(PRECISIONS)
    parser.add_argument("--precision", type=_names(known), default=["double"], help="double, single or both (double)")
    parser.add_argument("--json", type=Path, help="file for every raw timing")
    parser.add_argument("--quick", action="store_true", help=f"problems {QUICK} times smaller, for a look")
    parser.add_argument("--time-limit", type=float, default=180.0, help="seconds for one measurement (180)")
    parser.add_argument("--memory-limit", type=float, default=16.0, help="GiB of memory for one measurement (16)")
    options = parser.parse_args(arguments)
    if options.repeats is None:
        options.repeats = 2 if options.quick else 4
    return options


def _names(known: dict[str, Any]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        given = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
        return given

    return names


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
