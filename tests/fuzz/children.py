"""Cases run in child processes, so that a crash or a hang of one is its verdict and not the end of the attack."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import multiprocessing
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

#: Verdicts of a case.
PASSED, REFUSED, VIOLATION = "passed", "refused", "violation"
#: Seconds that a child may take to import what it runs.
STARTUP = 60.0
#: Seconds after which a case counts as hanging. What takes long is compilation, on a busy machine and without a cache.
LIMIT = 400.0
#: Reasons of refusals that a report lists.
MOST_REASONS = 40


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


def _serve(connection: Connection, module: str, function: str, given: Any) -> None:
    home = importlib.import_module(module)
    if given is not None:
        home.prepare(given)
    while True:  # until the parent ends this process
        connection.send(judge(getattr(home, function), connection.recv()))


class Child:
    """A process that runs one case after the other; see `verdicts`."""

    def __init__(self, work: Callable[[int], Verdict], given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, work.__module__, work.__name__, given)
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
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

    def __init__(self, seeds: Iterable[int], work: Callable[[int], Verdict], n_jobs: int, given: Any) -> None:
        self.todo = iter(seeds)
        self.work = work
        self.given = given
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
            child = Child(self.work, self.given)
            self.running[child.connection] = child
        child.give(seed)


def verdicts(
    seeds: Iterable[int], work: Callable[[int], Verdict], n_jobs: int = 1, limit: float = LIMIT, given: Any = None
) -> Iterator[Verdict]:
    """Yield the verdict of each seed, in the order in which they end.

    Parameters
    ----------
    work : function at the top of a module, from a seed to its verdict
    limit : seconds after which a case counts as hanging
    given : what `prepare` of that module is called with in every child, if it is not None
    """
    children = Children(seeds, work, n_jobs, given)
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


def report(found: Iterable[Verdict], describe: Callable[[int], str]) -> bool:
    """Print each violation as it is found, and counts at the end; return whether there was none."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for verdict in found:
        counts[verdict.kind] += 1
        if verdict.kind == REFUSED:
            reasons[verdict.what] += 1
        if verdict.kind == VIOLATION:
            print(f"violation, seed {verdict.seed}: {describe(verdict.seed)}\n    {verdict.what}", flush=True)
    for reason, count in reasons.most_common(MOST_REASONS):
        print(f"  refused {count} times: {reason}")
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())), flush=True)
    return not counts[VIOLATION]


def command(
    description: str,
    attacks: Mapping[str, Callable[[int], Verdict]],
    describe: Callable[[int], str],
    given: Any = None,
) -> int:
    """Run as many cases of an attack as the command line asks for; return 1 if there is a violation."""
    parser = argparse.ArgumentParser(description=description)
    if len(attacks) > 1:
        parser.add_argument("attack", choices=attacks)
    parser.add_argument("number", type=int, help="number of cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    options = parser.parse_args()
    work = attacks[options.attack] if len(attacks) > 1 else next(iter(attacks.values()))
    seeds = range(options.seed, options.seed + options.number)
    return 0 if report(verdicts(seeds, work, options.jobs, given=given), describe) else 1
