"""Chains with a band of transitions: time and memory of a pass, as a band and as a matrix, by the number of states.

    python -m benchmarks.banded --states 500,2000,5000 --most-dense 2000
    python -m benchmarks.banded --beside ../older-checkout

Every state leads to itself and to its neighbours on either side. The same model is fitted as the package chooses, and
with matrices for all (`--beside` adds another checkout of the package, which may know no bands). Each measurement has a
process of its own and first does its work on a few positions, so that nothing is compiled while it is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

N_SEQUENCES, LENGTH, N_SYMBOLS = 64, 256, 50
#: Positions of the work that is done beforehand.
FEW = 8


def measure(n_states: int, kind: str, task: str) -> dict[str, float]:
    """Processor seconds of a task (EM: of an iteration), and bytes of memory at the peak beyond those before."""
    import numpy as np

    from benchmarks.memory import AnonymousPeak
    from subchain import EM, HMM, Categorical, Dirichlet, banded

    if kind == "matrix":
        from subchain.transitions import layout

        layout.FEWEST_STATES = sys.maxsize
    rng = np.random.default_rng(0)
    steps = rng.integers(-1, 2, (N_SEQUENCES, LENGTH)).cumsum(axis=1) + rng.integers(n_states, size=(N_SEQUENCES, 1))
    data = list((np.clip(steps, 0, n_states - 1) * N_SYMBOLS // n_states + rng.integers(0, 3, steps.shape)) % N_SYMBOLS)
    mask = banded(n_states)

    def fitted(x: Any, n_iterations: int) -> Any:
        prior, algorithm = (
            Dirichlet(2.0, mask=mask, initial_concentration=2.0),
            EM(max_iter=n_iterations, tolerance=0.0),
        )
        emission = Categorical(2.0, n_categories=N_SYMBOLS)
        return HMM(n_states, emission, prior, algorithm, random_state=0, n_jobs=1, progress=False).fit(x)

    def run(x: Any) -> float:
        if task == "EM":
            times = [seconds(lambda n=n: fitted(x, n)) for n in (1, 3)]
            return (times[1] - times[0]) / 2
        model = fitted(x[:1], 1)
        return seconds(lambda: model.score(x) if task == "score" else model.predict(x, decoding="viterbi"))

    def seconds(work: Callable[[], Any]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    run([part[:FEW] for part in data[:2]])
    with AnonymousPeak() as memory:
        found = run(data)
    return {"seconds": found, "bytes": float(memory.beyond)}


def in_fresh_process(n_states: int, kind: str, task: str, source: Path | None) -> dict[str, float]:
    """Measure where nothing has been done before, with the package of another checkout if there is one."""
    command = [sys.executable, "-m", "benchmarks.banded", "--one", json.dumps([n_states, kind, task])]
    here = Path(__file__).parents[1]
    paths = [str((here if source is None else source) / "src"), str(here)]
    found = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, check=True, capture_output=True, text=True
    )
    result: dict[str, float] = json.loads(found.stdout.splitlines()[-1])
    return result


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", default="500,2000,5000", help="numbers of states")
    parser.add_argument("--tasks", default="EM,score,viterbi", help="what is measured")
    parser.add_argument("--most-dense", type=int, default=2000, help="largest number of states to run as a matrix")
    parser.add_argument("--beside", type=Path, help="another checkout of the package")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(*json.loads(options.one))))
        return
    kinds: list[tuple[str, Path | None]] = [("band", None), ("matrix", None)]
    if options.beside is not None:
        kinds.append(("other checkout", options.beside))
    print(f"{N_SEQUENCES} sequences of {LENGTH} positions, one core")
    for n_states in map(int, options.states.split(",")):
        for task in options.tasks.split(","):
            for kind, source in kinds:
                if kind != "band" and n_states > options.most_dense:
                    continue
                found = in_fresh_process(n_states, kind, task, source)
                print(
                    f"{n_states:6,} states  {task:8} {kind:15} {found['seconds']:9.3f} s "
                    f"{found['bytes'] / 1e6:9.1f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
