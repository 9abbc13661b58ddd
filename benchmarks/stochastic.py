"""Speed of stochastic inference on one long chain.

    python -m benchmarks.stochastic words growing buffers gaussian pass genome

words     SCVI with guards, a thousand words an update, K = 12: updates a second, for vocabularies of 10⁴ and 10⁶
growing   SCVI with growing buffers, the same minibatches
buffers   SVI with a buffer of 20 words on either side of subchains of two
gaussian  SCVI and SVI of a thousand vectors of 2 coordinates an update, K = 8; SVI of 2,000 of 12 coordinates, K = 25
large     SCVI with guards, 20,000 words an update, on one thread and on all cores
pass      SCVI with guards over 10⁸ words from a file: one pass
genome    SVI over a chain of 250 million × 12 real numbers in a file (12 GB), K = 25: a hundred updates

Every measurement has a process of its own and one thread unless it says otherwise; compilation is left out, and so are
searches over states, which would take longer than the updates. "CPU" is by the processor time of the compiled calls,
which other programs disturb least.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.tables import wide_console

N_STATES = 12
WORDS = 1000


def words(folder: Path, *, n_symbols: int, length: int, updates: int = 20_000) -> dict[str, Any]:
    """Updates a second of SCVI with guards."""
    from subchain import SCVI, Guards

    return _of_words(SCVI(length=length, batch=WORDS // length, boundary=Guards()), n_symbols, updates)


def growing(folder: Path, *, length: int, updates: int = 1000) -> dict[str, Any]:
    """Updates a second of SCVI with growing buffers."""
    from subchain import SCVI, GrowBuffer

    return _of_words(SCVI(length=length, batch=WORDS // length, boundary=GrowBuffer()), 10_000, updates)


def buffers(folder: Path, *, n_symbols: int = 10_000, updates: int = 3000) -> dict[str, Any]:
    """Updates a second of SVI with buffers."""
    from subchain import SVI, Buffer

    return _of_words(SVI(length=2, batch=WORDS // 2, boundary=Buffer(20)), n_symbols, updates)


def large(folder: Path, *, n_jobs: int | None, updates: int = 2000) -> dict[str, Any]:
    """Updates a second of SCVI with large minibatches."""
    from subchain import SCVI, Guards

    return _of_words(SCVI(length=10, batch=2000, boundary=Guards()), 10_000, updates, n_jobs)


def gaussian(
    folder: Path, *, name: str, n_states: int, n_features: int, length: int, batch: int, updates: int
) -> dict[str, Any]:
    """Updates a second of full Gaussians."""
    import subchain
    from subchain import Gaussian, Guards

    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, n_states, 100_000), 10)
    x = 3.0 * rng.normal(size=(n_states, n_features))[states] + rng.normal(size=(len(states), n_features))
    inference = getattr(subchain, name)(length=length, batch=batch, boundary=Guards())
    return _updates(inference, n_states, Gaussian(), x, "random", updates, 1)


def _of_words(inference: Any, n_symbols: int, updates: int, n_jobs: int | None = 1) -> dict[str, Any]:
    from subchain import Categorical

    rng = np.random.default_rng(0)
    weights = 1.0 / np.arange(1.0, n_symbols + 1.0)
    x = rng.choice(n_symbols, 1_000_000, p=weights / weights.sum())
    emission = Categorical(0.1, n_categories=n_symbols)
    return _updates(inference, N_STATES, emission, x, "exponential", updates, n_jobs)


def _updates(
    inference: Any, n_states: int, emission: Any, x: Any, init: str, updates: int, n_jobs: int | None
) -> dict[str, Any]:
    """Best of three runs after one that compiles; Python's share is what is not spent in compiled updates."""
    from subchain import HMM, Dirichlet
    from subchain.engines import Cpu

    inside = np.zeros(2)
    run = Cpu.run_updates

    def timed(*arguments: Any) -> None:
        began = np.array([time.perf_counter(), time.process_time()])
        run(*arguments)
        inside[:] += np.array([time.perf_counter(), time.process_time()]) - began

    Cpu.run_updates = timed  # type: ignore[method-assign]
    best: dict[str, Any] = {"updates a second": 0.0, "CPU": 0.0}
    for limit in (100, updates, updates, updates):
        inference.set_params(max_updates=limit, report_every=limit, forgetting=0.5, search=False)
        model = HMM(
            n_states, emission, Dirichlet(0.1), inference, init=init, random_state=0, progress=False, n_jobs=n_jobs
        )
        inside[:] = 0.0
        seconds = model.fit(x).trace_.seconds[-1]
        if limit == updates:
            best["CPU"] = max(best["CPU"], limit / inside[1])
            if limit / seconds > best["updates a second"]:
                best |= {"updates a second": limit / seconds, "outside compiled code": 1.0 - inside[0] / seconds}
    return best | {"MB": _peak()}


def one_pass(folder: Path, *, n: int = 100_000_000, n_symbols: int = 10_000) -> dict[str, Any]:
    """Seconds of one pass of SCVI with guards."""
    from subchain import HMM, SCVI, Categorical, Dirichlet, Guards
    from subchain.datasets import write_chain

    path = folder / "words.npy"
    if not path.exists():
        write_chain(path, n, "categorical", dtype=np.int32, n_states=N_STATES, n_symbols=n_symbols, random_state=0)
    seconds = {}
    for passes in (0.001, 1.0):
        inference = SCVI(
            length=10, batch=100, boundary=Guards(), forgetting=0.5, max_passes=passes, report_every=10_000
        )
        model = HMM(
            N_STATES, Categorical(0.1, n_categories=n_symbols), Dirichlet(0.1), inference, init="exponential",
            random_state=0, progress=False,
        )  # fmt: skip
        seconds[passes] = model.fit(path).trace_.seconds[-1]
    return {"seconds": seconds[1.0], "observations a second": n / seconds[1.0], "MB": _peak()}


def genome(folder: Path, *, n: int = 250_000_000) -> dict[str, Any]:
    """Seconds of a hundred updates of SVI with fifty subchains of four thousand."""
    from subchain import HMM, SVI
    from subchain.datasets import write_chain

    path = folder / "genome.npy"
    if not path.exists():
        write_chain(path, n, n_states=25, n_features=12, dtype=np.float32, random_state=0)
    HMM(25, "gaussian", inference=SVI(length=101, batch=5, max_updates=2), random_state=0, progress=False).fit(
        np.load(path, mmap_mode="r")[:100_000]
    )
    inference = SVI(length=4001, batch=50, forgetting=0.5, max_updates=100, report_every=10)
    began = time.perf_counter()
    model = HMM(25, "gaussian", inference=inference, random_state=0, progress=False).fit(path)
    return {
        "seconds": model.trace_.seconds[-1], "with start": time.perf_counter() - began, "MB": _peak(),
    }  # fmt: skip


def _peak() -> int:
    """Largest resident memory of this process in megabytes, mapped files included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1000
    return -1


CASES: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "words": [
        (f"SCVI, guards, length {length}, W = {n_symbols:,}", "words", {"length": length, "n_symbols": n_symbols})
        for n_symbols in (10_000, 1_000_000)
        for length in (10, 3, 2)
    ],
    "growing": [
        (f"SCVI, growing buffers, length {length}, W = 10,000", "growing", {"length": length}) for length in (50, 10)
    ],
    "gaussian": [
        (
            f"{name}, guards, {batch} × {length} vectors, K = {n_states}, D = {n_features}",
            "gaussian",
            {
                "name": name,
                "n_states": n_states,
                "n_features": n_features,
                "length": length,
                "batch": batch,
                "updates": updates,
            },
        )
        for name, n_states, n_features, length, batch, updates in (
            ("SCVI", 8, 2, 10, 100, 10_000),
            ("SVI", 8, 2, 10, 100, 10_000),
            ("SVI", 25, 12, 100, 20, 1000),
            ("SCVI", 25, 12, 100, 20, 1000),
        )
    ],
    "large": [
        (f"SCVI, guards, 20,000 words, {jobs or 'all'} threads", "large", {"n_jobs": jobs}) for jobs in (1, None)
    ],
    "buffers": [("SVI, buffers of 20, length 2, W = 10,000", "buffers", {})],
    "pass": [("SCVI, guards, a pass over 100,000,000 words", "one_pass", {})],
    "genome": [("SVI, 250,000,000 × 12, 100 updates of 50 × 4,001", "genome", {})],
}


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="benchmarks.stochastic", description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", default=["words", "buffers"], help=", ".join(CASES))
    parser.add_argument("--folder", type=Path, help="where large files are kept (a temporary folder)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        function, settings = json.loads(options.one)
        print(json.dumps(globals()[function](options.folder, **settings)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        table = Table("", "result", title="stochastic inference", title_justify="left", title_style="bold")
        for case in options.cases:
            for label, function, settings in CASES[case]:
                table.add_row(label, _run(function, settings, folder))
    wide_console().print(table)


def _run(function: str, settings: dict[str, Any], folder: Path) -> str:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.stochastic", "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--one", json.dumps([function, settings])], stdout=subprocess.PIPE, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    shown = {name: f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for name, value in found.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


if __name__ == "__main__":
    main()
