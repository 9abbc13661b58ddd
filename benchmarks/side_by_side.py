"""Two versions of the package beside each other on the same machine: is the one slower than the other?

    python -m benchmarks.side_by_side --other /path/to/another/checkout [case ...]

Each version lives in a process of its own, and all stay for the whole run; only one of them works at a time. They take
turns, A B A B, so that what disturbs the machine disturbs both. Only the public interface is used (`workloads.py`), so
that modules may have other names in the two. Cases are groups (`throughput`, `stochastic`, `collapsed`, `states`,
`masks`, `long_chain`, `startup`) or parts of titles.

With one thread the processor's time counts, which hardly depends on what else the machine does; with several, the time
on the wall. Compiled code is kept in a temporary folder, by the contents of each version.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe
from benchmarks.startup import FITS
from benchmarks.tables import wide_console
from benchmarks.workloads import NOTHING, WORKLOADS, Clock, Measure, Setup, Timing, Workload

HERE = Path(__file__).resolve().parents[1]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


# ---- a version -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Version:
    """A checkout of the package."""

    name: str
    path: Path

    def environment(self, n_jobs: int) -> dict[str, str]:
        """Variables under which Python imports this version, with caches of its own."""
        cache = Path(tempfile.gettempdir(), "subchain-side-by-side", self._fingerprint())
        return os.environ | dict.fromkeys(THREADS, str(n_jobs)) | {
            "PYTHONPATH": str(self.path / "src"),
            "PYTHONPYCACHEPREFIX": str(cache / "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
            "NUMBA_CACHE_DIR": str(cache / "numba"),
        }  # fmt: skip

    def _fingerprint(self) -> str:
        """Changes with every source file: Numba itself does not see that a function in another file has changed."""
        hashed = hashlib.blake2b(str(self.path).encode(), digest_size=8)
        for path in sorted((self.path / "src" / "subchain").rglob("*.py")):
            hashed.update(path.read_bytes())
        return hashed.hexdigest()


class Worker:
    """A process that has imported one version and does one workload at a time."""

    def __init__(self, version: Version, setup: Setup) -> None:
        self.version = version
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.side_by_side", "--worker", str(version.path / "src")],
            cwd=HERE, env=version.environment(setup.n_jobs), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._say(dataclasses.asdict(setup) | {"folder": str(setup.folder)})

    def _say(self, message: Any) -> None:
        assert self._process.stdin is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)

    def ask(self, what: str, workload: Workload) -> None:
        """Begin to "share", "prepare" or "measure"; `answer` waits for the end."""
        self._say([what, WORKLOADS.index(workload)])

    def answer(self) -> Timing | str | None:
        """A measurement, or what went wrong."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.version.name} ({self.version.path}) has ended")
        found = json.loads(line)
        return Timing(Clock(*found[0]), Clock(*found[1]), found[2]) if isinstance(found, list) else found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def work(source: str) -> None:
    """What a worker does until its input ends."""
    import subchain

    if not Path(subchain.__file__).resolve().is_relative_to(Path(source).resolve()):
        raise SystemExit(f"imported {subchain.__file__}, not the version in {source}")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the package prints goes elsewhere
    given = json.loads(sys.stdin.readline())
    setup = Setup(**given | {"folder": Path(given["folder"])})
    measures: dict[int, Measure] = {}
    for line in sys.stdin:
        what, number = json.loads(line)
        try:
            found = _do(what, number, setup, measures)
        except Exception as error:  # a version may be unable to do something; the others go on
            found = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(json.dumps(found), file=answers, flush=True)


def _do(what: str, number: int, setup: Setup, measures: dict[int, Measure]) -> Timing | None:
    workload = WORKLOADS[number]
    if what == "share":
        if workload.share is not None:
            workload.share(setup)
        return None
    if what == "prepare":
        measures.clear()  # the data of the workload before
        measures[number] = workload.prepare(setup)
        measures[number]()
        return None
    return measures[number]()


# ---- fresh interpreters ----------------------------------------------------------------------------------------------

_CLOCK = """
import time
first = time.perf_counter(), time.process_time()
{program}
print(time.perf_counter() - first[0], time.process_time() - first[1])
"""
STARTUP = {
    "import subchain": "import subchain",
    "from subchain import HMM": "from subchain import HMM",
    **{f"import and first fit, {family}, compiled before": program for family, program in FITS.items()},
}
COMPILING = "import and first fit, categorical, nothing compiled yet"


def fresh(version: Version, program: str, setup: Setup, *, compiled: bool = True) -> Timing | str:
    """How long a program takes in a fresh interpreter."""
    environment = version.environment(setup.n_jobs)
    with tempfile.TemporaryDirectory() as empty:
        if not compiled:
            environment |= {"NUMBA_CACHE_DIR": empty}
        command = [sys.executable, "-W", "ignore", "-c", _CLOCK.format(program=program)]
        done = subprocess.run(command, cwd=setup.folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return Timing(NOTHING, Clock(*map(float, done.stdout.splitlines()[-1].split())))


# ---- taking turns ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    """All measurements of one workload."""

    group: str
    title: str
    unit: str
    seconds: float
    times: dict[str, list[Timing]] = dataclasses.field(default_factory=dict)
    failures: dict[str, str] = dataclasses.field(default_factory=dict)

    def note(self, version: Version, found: Timing | str | None) -> None:
        if isinstance(found, str):
            self.failures[version.name] = found
        elif found is not None:
            self.times.setdefault(version.name, []).append(found)

    def values(self, version: Version, clock: str) -> Any:
        """Measurements in the row's unit."""
        short, long, count = self._parts(version, clock)
        return (long - short) / count / self.seconds

    def least(self, version: Version, clock: str) -> float:
        """The fastest long run less the fastest short one: disturbances only ever add to either."""
        short, long, count = self._parts(version, clock)
        return float((long.min() - short.min()) / count[0] / self.seconds)

    def _parts(self, version: Version, clock: str) -> Any:
        found = self.times.get(version.name, [])
        parts = [(getattr(timing.short, clock), getattr(timing.long, clock), timing.count) for timing in found]
        return np.array(parts, dtype=np.float64).reshape(-1, 3).T


def take_turns(workload: Workload, workers: list[Worker], rounds: int) -> Row:
    """Prepare in all processes at the same time, then measure in one after the other."""
    row = Row(workload.group, workload.title, workload.unit, workload.seconds)
    workers[0].ask("share", workload)
    row.note(workers[0].version, workers[0].answer())
    for worker in workers:
        worker.ask("prepare", workload)
    for worker in workers:
        row.note(worker.version, worker.answer())
    for _ in range(min(rounds, workload.most_rounds)):
        for worker in workers:
            if worker.version.name not in row.failures:
                worker.ask("measure", workload)
                row.note(worker.version, worker.answer())
    return row


def start_in_turns(title: str, versions: list[Version], rounds: int, measure: Callable[[Version], Timing | str]) -> Row:
    """Fresh interpreters, one after the other."""
    row = Row("startup", title, "s", 1.0)
    for _ in range(rounds):
        for version in versions:
            row.note(version, measure(version))
    return row


# ---- the table -------------------------------------------------------------------------------------------------------


def show(console: Console, rows: list[Row], versions: list[Version], clock: str) -> None:
    """Medians, their ratio, that of the fastest runs, and the least and largest ratio of a round."""
    ours, other = versions
    title = f"{ours.path} (A) beside {other.path} (B), {clock} time"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for heading in ("A", "B", "A / B", "least", "rounds"):
        table.add_column(heading, justify="right", no_wrap=True)
    group = None
    for row in rows:
        if group is not None and row.group != group:
            table.add_section()
        group = row.group
        table.add_row(row.title, row.unit, *_figures(row, ours, other, clock))
    console.print(table)


def _figures(row: Row, ours: Version, other: Version, clock: str) -> list[str]:
    first, second = row.values(ours, clock), row.values(other, clock)
    figures = [
        f"{np.median(values):.4g}" if len(values) else row.failures.get(version.name, "–")
        for version, values in ((ours, first), (other, second))
    ]
    n = min(len(first), len(second))
    if not n:
        return [*figures, "–", "–", "–"]
    each = first[:n] / second[:n]
    ratios = np.median(first) / np.median(second), row.least(ours, clock) / row.least(other, clock)
    return [*figures, *(f"{ratio:.2f}" for ratio in ratios), f"{each.min():.2f}–{each.max():.2f}"]


# ---- the command -----------------------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    options = _parse(arguments)
    if options.worker:
        work(options.worker)
        return
    versions = [Version("A", options.this.resolve()), Version("B", options.other.resolve())]
    for version in versions:
        if not (version.path / "src" / "subchain").is_dir():
            raise SystemExit(f"{version.path} is no checkout: it has no folder src/subchain")
    rounds = options.rounds or (3 if options.quick else 4)
    clock = options.clock or ("processor" if options.jobs == 1 else "wall")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        setup = Setup(Path(folder), options.quick, options.jobs, options.length)
        rows = [*_workloads(options, versions, setup, rounds, began), *_starts(options, versions, setup, rounds, began)]
    if not rows:
        raise SystemExit("nothing was chosen; --list shows all cases")
    show(wide_console(), rows, versions, clock)
    print(f"{time.perf_counter() - began:.0f} s in all")
    if options.json:
        record = {"rounds": rounds, "clock": clock, "jobs": options.jobs, "quick": options.quick}
        versions_record = {version.name: str(version.path) for version in versions}
        record |= {"versions": versions_record, "rows": [dataclasses.asdict(row) for row in rows]}
        options.json.write_text(json.dumps(record | {"machine": describe()}, indent=1))


def _tell(began: float, title: str) -> None:
    Console(stderr=True, style="dim").print(f"{time.perf_counter() - began:5.0f} s  {title}")


def _workloads(
    options: argparse.Namespace, versions: list[Version], setup: Setup, rounds: int, began: float
) -> list[Any]:
    """Measurements of the chosen workloads."""
    chosen = [workload for workload in WORKLOADS if _asked_for(workload.group, workload.title, options.cases)]
    if options.quick:
        chosen = [workload for workload in chosen if workload.is_quick]
    if not chosen:
        return []
    rows, workers = [], [Worker(version, setup) for version in versions]
    for workload in chosen:
        _tell(began, workload.title)
        rows.append(take_turns(workload, workers, rounds))
    for worker in workers:
        worker.close()
    return rows


def _starts(options: argparse.Namespace, versions: list[Version], setup: Setup, rounds: int, began: float) -> list[Any]:
    """Measurements of fresh processes, with and without compiled code."""
    rows = []
    for title, program in STARTUP.items():
        if _asked_for("startup", title, options.cases):
            _tell(began, title)
            for version in versions:  # fills the caches
                fresh(version, program, setup)
            rows.append(start_in_turns(title, versions, rounds, lambda v, p=program: fresh(v, p, setup)))
    if _asked_for("startup", COMPILING, options.cases) and not options.quick:
        _tell(began, COMPILING)
        program = FITS["categorical"]
        rows.append(start_in_turns(COMPILING, versions, 1, lambda v: fresh(v, program, setup, compiled=False)))
    return rows


def _asked_for(group: str, title: str, cases: list[str]) -> bool:
    return not cases or any(case == group or case.lower() in title.lower() for case in cases)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.side_by_side", description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help="groups, or parts of titles (all)")
    parser.add_argument("--other", type=Path, help="the checkout to compare with")
    parser.add_argument("--this", type=Path, default=HERE, help="the checkout that is compared (this one)")
    parser.add_argument("--rounds", type=int, help="measurements of each version (4; 3 with --quick)")
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")
    parser.add_argument("--clock", choices=["processor", "wall"], help="processor with one thread, else wall")
    parser.add_argument("--length", type=int, default=2_000_000, help="positions of the long chain (2,000,000)")
    parser.add_argument("--quick", action="store_true", help="smaller problems and fewer rounds")
    parser.add_argument("--json", type=Path, help="file for every measurement, by both clocks")
    parser.add_argument("--list", action="store_true", help="show all cases")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.list:
        for workload in WORKLOADS:
            print(f"{workload.group:12} {workload.title}")
        for title in (*STARTUP, COMPILING):
            print(f"{'startup':12} {title}")
        raise SystemExit
    if options.other is None and not options.worker:
        parser.error("--other is needed: the checkout to compare with")
    return options


if __name__ == "__main__":
    main()
