"""How speed grows with threads, beside as many processes of one thread each, which is what the machine can give.

    python -m benchmarks.scaling --cases a,b,c,d,e --threads 1,2,4,8,16 --observations 8e6 --figure scaling.png
    python -m benchmarks.scaling --cases viterbi,scvi,cvi,gibbs,chains --threads 1,2,4,8,16

Cases of one letter are passes of EM; `viterbi`, `predict`, `score` and `filter` are uses of a model on the chain of
case (a); `scvi` is stochastic collapsed inference with minibatches of 20,000 observations, `cvi` collapsed inference in
shards, `gibbs` one chain of paths with drawn parameters, and `chains` sixteen chains of single states.

The figure is what a user waits for: the difference between whole fits of many iterations and of one, median of several
rounds. In each round every number of threads has its turn, and a fresh process. Processes begin together, and what they
do in a second is added up.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import statistics
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.cases import CASES, Case, Problem, draw
from benchmarks.contenders import Contender
from benchmarks.machine import describe
from benchmarks.ours import PRECISIONS, Subchain, Task
from benchmarks.tables import wide_console

#: Uses of a model.
TASKS = ("viterbi", "predict", "score", "filter")
#: What is run on what: passes of EM, and what else uses all cores.
RUNS = {name: (case, "EM") for name, case in CASES.items()} | {
    **{name: (dataclasses.replace(CASES["a"], name=name), name) for name in TASKS},
    "scvi": (dataclasses.replace(CASES["a"], name="scvi"), "SCVI"),
    "cvi": (Case("cvi", "categorical", n_states=45, width=10_000, n_sequences=50_000, length=20), "CVI"),
    "gibbs": (dataclasses.replace(CASES["b"], name="gibbs"), "Gibbs"),
    "chains": (Case("chains", "categorical", 12, 10_000, n_sequences=5_000, length=20), "Gibbs, 16 chains"),
}


class Work(NamedTuple):
    """What is measured: a problem, what learns from it, and in which precision."""

    problem: Problem
    algorithm: str
    precision: str


#: Iterations of the longer fit, beyond the one of the shorter.
ITERATIONS = 10
#: Seconds that one measurement may take.
LIMIT = 300.0


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    options = _parse(arguments)
    console, told = wide_console(), Console(stderr=True, style="dim")
    record: dict[str, Any] = {"machine": describe(), "cases": {}}
    for name in options.cases:
        case, algorithm = RUNS[name]
        case = case if options.observations is None else case.of_size(options.observations)
        work = Work(draw(case), algorithm, options.precision)
        speeds = _measure(work, options.threads, options.rounds, told)
        record["cases"][name] = {"title": case.title, "observations_per_second": speeds}
        console.print(_table(case, options.threads, speeds))
        if options.json:
            options.json.write_text(json.dumps(record, indent=1))
    if options.figure:
        _draw(record["cases"], options.threads, options.figure)


def _measure(work: Work, threads: list[int], rounds: int, told: Console) -> dict[str, dict[int, float]]:
    """Median observations a second by number of threads, and of as many processes in all."""
    found: dict[str, dict[int, list[float]]] = {kind: {n: [] for n in threads} for kind in ("threads", "processes")}
    for number in range(rounds):
        for n in threads:
            found["threads"][n].append(_speed(work, n_processes=1, n_jobs=n))
            found["processes"][n].append(_speed(work, n_processes=n, n_jobs=1))
            told.print(f"round {number + 1}, {n}: {found['threads'][n][-1]:,.0f} {found['processes'][n][-1]:,.0f}")
    return {kind: {n: statistics.median(speeds) for n, speeds in by.items()} for kind, by in found.items()}


def _speed(work: Work, n_processes: int, n_jobs: int) -> float:
    """Observations a second of some processes in all."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(n_processes), context.Queue()
    given = work, n_jobs, barrier, results
    workers = [context.Process(target=_work, args=given) for _ in range(n_processes)]
    for worker in workers:
        worker.start()
    try:
        return float(sum(results.get(timeout=LIMIT) for _ in workers))
    except Empty:
        raise SystemExit(f"a measurement with {n_processes} processes did not end within {LIMIT:.0f} s") from None
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _work(work: Work, n_jobs: int, barrier: Barrier, results: Any) -> None:
    """One process: practise, wait for the others, and time two fits."""
    problem, contender = work.problem, _contender(work, n_jobs)
    contender.load(problem)
    contender.prepare(problem)
    barrier.wait()
    seconds = []
    for n_iterations in (1, 1 + ITERATIONS):
        began = time.perf_counter()
        contender.iterate(n_iterations)
        seconds.append(time.perf_counter() - began)
    results.put(problem.n_observations * ITERATIONS / max(seconds[1] - seconds[0], 1e-9))


def _contender(work: Work, n_jobs: int) -> Contender:
    if work.algorithm == "viterbi":
        return Task("predict", n_jobs, decoding="viterbi")
    if work.algorithm in TASKS:
        return Task(work.algorithm, n_jobs)
    return Subchain(work.algorithm, n_jobs, work.precision)


def _table(case: Case, threads: list[int], speeds: dict[str, dict[int, float]]) -> Table:
    table = Table(title=case.title, title_justify="left")
    for heading in ("threads", "million observations/s", "times one", "processes", "share of processes"):
        table.add_column(heading, justify="right")
    for n in threads:
        own, whole = speeds["threads"][n], speeds["processes"][n]
        times = own / speeds["threads"][threads[0]]
        table.add_row(str(n), f"{own / 1e6:.2f}", f"{times:.2f}", f"{whole / 1e6:.2f}", f"{own / whole:.0%}")
    return table


def _draw(cases: dict[str, Any], threads: list[int], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 4), layout="constrained")
    for name, case in cases.items():
        speeds = case["observations_per_second"]["threads"]
        axes.plot(threads, [speeds[n] / speeds[threads[0]] for n in threads], marker="o", label=name)
    axes.plot(threads, threads, color="0.7", lw=1, label="ideal")
    axes.set(xlabel="threads", ylabel="times one thread", xscale="log", yscale="log", xticks=threads, yticks=threads)
    axes.set_xticklabels(threads)
    axes.set_yticklabels(threads)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.scaling", description=__doc__.split("\n")[0])
    cores = os.cpu_count() or 1
    powers = sorted({1 << i for i in range(cores.bit_length()) if 1 << i <= cores} | {cores})
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list("abcde"), help="cases (a,b,c,d,e)")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=powers)
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (3)")
    parser.add_argument(
        "--observations", type=lambda text: int(float(text)), help="observations of each case (those of the case)"
    )
    parser.add_argument("--precision", choices=PRECISIONS, default="double", help="of messages (double)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--figure", type=Path, help="file for a picture")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.cases if name not in RUNS]
    if unknown:
        parser.error(f"unknown case {unknown[0]}; there are {', '.join(RUNS)}")
    return options


if __name__ == "__main__":
    main()
