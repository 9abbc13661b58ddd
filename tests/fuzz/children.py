"""Cases run in child processes, so that a crash or a hang of one is its verdict and not the end of the attack."""

from __future__ import annotations

import dataclasses
import importlib
import multiprocessing
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

#: Verdicts of a case.
PASSED, REFUSED, VIOLATION = "passed", "refused", "violation"
#: Seconds that a child may take to import what it runs.
STARTUP = 60.0


@dataclasses.dataclass
class Verdict:
    """What became of a case; `what` says why it was refused or how it went wrong."""

    seed: int
    kind: str
    what: str = ""


def judge(function: Callable[[int], Verdict], seed: int) -> Verdict:
    """Run one case; any exception that it lets through is a violation."""
    try:
        return function(seed)
    except Exception as error:
        where = traceback.format_exc(limit=-3).strip()
        return Verdict(seed, VIOLATION, f"{type(error).__name__}: {error}\n{where}")


def _serve(connection: Connection, module: str, function: str) -> None:
    work = getattr(importlib.import_module(module), function)
    while True:
        seed = connection.recv()
        if seed is None:
            return
        connection.send(judge(work, seed))


class Child:
    """A process that runs one case after the other."""

    def __init__(self, module: str, function: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, module, function), daemon=True)
        self.process.start()
        theirs.close()
        self.seed = -1
        self.since = 0.0

    def give(self, seed: int) -> None:
        is_new = self.seed < 0
        self.seed, self.since = seed, time.monotonic() + (STARTUP if is_new else 0.0)
        self.connection.send(seed)

    def take(self) -> Verdict:
        """Return the verdict of the case in flight; the end of the process is one too."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            return Verdict(self.seed, VIOLATION, f"the process ended with exit code {self.process.exitcode}")

    def end(self) -> None:
        self.process.kill()
        self.process.join()


class Children:
    """Some children, and the cases that they have yet to run."""

    def __init__(self, seeds: Iterable[int], work: Callable[[int], Verdict], n_jobs: int) -> None:
        self.todo = iter(seeds)
        self.work = work
        self.running: dict[Any, Child] = {}
        for _ in range(n_jobs):
            self.proceed(None)

    def proceed(self, child: Child | None) -> None:
        """Give the next case to a child, or to a new one."""
        seed = next(self.todo, None)
        if child is not None and (seed is None or not child.process.is_alive()):
            self.running.pop(child.connection).end()
        if seed is None:
            return
        if child is None or not child.process.is_alive():
            child = Child(self.work.__module__, self.work.__name__)
            self.running[child.connection] = child
        child.give(seed)


def verdicts(
    seeds: Iterable[int], work: Callable[[int], Verdict], n_jobs: int = 1, limit: float = 120.0
) -> Iterator[Verdict]:
    """Yield the verdict of each seed, in the order in which they end.

    Parameters
    ----------
    work : function at the top of a module, from a seed to its verdict
    limit : seconds after which a case counts as hanging
    """
    children = Children(seeds, work, n_jobs)
    try:
        while children.running:
            for connection in wait(list(children.running), timeout=1.0):
                child = children.running[connection]
                yield child.take()
                children.proceed(child)
            for child in list(children.running.values()):
                if time.monotonic() - child.since > limit:
                    child.end()
                    yield Verdict(child.seed, VIOLATION, f"no end after {limit:g} s")
                    children.proceed(child)
    finally:
        for child in children.running.values():
            child.end()


def report(found: Iterable[Verdict], describe: Callable[[int], str], *, quiet: bool = False) -> bool:
    """Print each violation as it is found, and counts at the end; return whether there was none."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for verdict in found:
        counts[verdict.kind] += 1
        if verdict.kind == REFUSED:
            reasons[verdict.what] += 1
        if verdict.kind == VIOLATION:
            print(f"violation, seed {verdict.seed}: {describe(verdict.seed)}\n    {verdict.what}", flush=True)
    if not quiet:
        for reason, count in reasons.most_common(40):
            print(f"  refused {count} times: {reason}")
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())), flush=True)
    return not counts[VIOLATION]
