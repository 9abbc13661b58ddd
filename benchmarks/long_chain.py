"""One very long chain in a file: time, and memory beyond the mapped data, of everything a user does with it.

    python -m benchmarks.long_chain --length 100000000

The chain is drawn straight to disk and mapped. Each task has a process of its own and first does its work on a short
chain, so that nothing is compiled while it is measured. Only anonymous memory counts: pages of the files can be dropped
at any time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.memory import AnonymousPeak
from benchmarks.tables import count, megabytes, wide_console

N_STATES, N_SYMBOLS = 12, 1_000
SHORT = 200_000


def _model(**settings: Any) -> Any:
    """The model that is used, and that fits start from: the same for every process."""
    from subchain import HMM, Categorical

    rng = np.random.default_rng(0)
    transition = 0.5 * np.eye(N_STATES) + 0.5 * rng.dirichlet(np.ones(N_STATES), N_STATES)
    emission = Categorical.from_parameters(rng.dirichlet(np.ones(N_SYMBOLS), N_STATES))
    return HMM.from_parameters(np.full(N_STATES, 1.0 / N_STATES), transition, emission, **settings)


def _score(path: Path, n_jobs: int) -> float:
    return _seconds(lambda: _model(n_jobs=n_jobs).score(path))


def _iteration(inference: str) -> Callable[[Path, int], float]:
    """The second iteration of a fit, the first that begins with a posterior."""

    def iterate(path: Path, n_jobs: int) -> float:
        from subchain import EM, HMM, VI, Categorical

        algorithm = {"EM": EM, "VI": VI}[inference](max_iter=2, tolerance=0.0)
        emission = Categorical(n_categories=N_SYMBOLS)
        model = HMM(N_STATES, emission, inference=algorithm, init=_model(), n_jobs=n_jobs, progress=False)
        first, second = model.fit(path).trace_.seconds
        return float(second - first)

    return iterate


def _marginals(path: Path, n_jobs: int) -> float:
    with _answer_beside(path) as out:
        return _seconds(lambda: _model(n_jobs=n_jobs).predict_proba(path, out=out))


def _viterbi(path: Path, n_jobs: int) -> float:
    with _answer_beside(path) as out:
        return _seconds(lambda: _model(n_jobs=n_jobs).predict(path, decoding="viterbi", out=out))


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def _answer_beside(path: Path) -> Iterator[Path]:
    """A file for the answer, for as long as it is needed."""
    answer = path.with_suffix(".answer.npy")
    try:
        yield answer
    finally:
        answer.unlink(missing_ok=True)


TASKS: dict[str, Callable[[Path, int], float]] = {
    "score": _score,
    "one iteration of EM": _iteration("EM"),
    "one iteration of VI": _iteration("VI"),
    "posterior marginals, to a file": _marginals,
    "Viterbi path, to a file": _viterbi,
}


def measure(task: str, path: Path, short: Path, n_jobs: int) -> tuple[float, int]:
    """Seconds, and bytes of anonymous memory at the peak beyond those before, of one task."""
    TASKS[task](short, n_jobs)
    with AnonymousPeak() as memory:
        seconds = TASKS[task](path, n_jobs)
    return seconds, memory.beyond


def in_fresh_process(task: str, path: Path, short: Path, n_jobs: int) -> tuple[float, int]:
    """Measure where nothing has been done before."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        return pool.submit(measure, task, path, short, n_jobs).result()


def write_chains(folder: Path, length: int) -> tuple[Path, Path]:
    """The long chain, and the short one for warming up."""
    from subchain.datasets import write_chain

    path, short = folder / "chain.npy", folder / "short.npy"
    for target, n in ((path, length), (short, min(SHORT, length))):
        write_chain(
            target,
            n,
            "categorical",
            dtype=np.uint16,
            n_states=N_STATES,
            n_symbols=N_SYMBOLS,
            stickiness=0.5,
            random_state=0,
        )
    return path, short


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.long_chain", description="Time and memory on one very long chain."
    )
    parser.add_argument("--length", type=int, default=100_000_000, help="observations (100,000,000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="threads (all cores)")
    parser.add_argument("--folder", type=Path, help="where the files go; marginals take 96 bytes an observation")
    options = parser.parse_args(arguments)
    console = wide_console()
    title = f"one chain of {options.length:,}, W = {N_SYMBOLS:,}, K = {N_STATES}, {options.jobs} threads"
    table = Table("", title=title, title_justify="left", title_style="bold")
    for heading in ("seconds", "obs/s", "memory"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        began = time.perf_counter()
        path, short = write_chains(Path(folder), options.length)
        console.print(f"chain written in {time.perf_counter() - began:.1f} s, {megabytes(path.stat().st_size)}")
        for task in TASKS:
            seconds, memory = in_fresh_process(task, path, short, options.jobs)
            table.add_row(task, f"{seconds:.2f}", count(options.length / seconds), megabytes(memory))
    console.print(table)


if __name__ == "__main__":
    main()
