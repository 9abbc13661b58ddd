"""Runs a measurement in a process of its own, within limits of time and memory, and says in words what went wrong.

A package that needs more memory than there is, crashes, computes nan or takes too long is part of the answer; it must
not end the run.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.contenders import Contender

GIBIBYTE = 1 << 30
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_OUT_OF_MEMORY = ("memoryerror", "bad_alloc", "resource_exhausted", "out of memory", "t allocate", "cannot allocate")


@dataclasses.dataclass(frozen=True)
class Task:
    """What a worker is to do.

    Attributes
    ----------
    problem : file with the whole problem
    share : how much of the data to train on
    n_threads : for linear algebra and Numba; None for as many as they take
    """

    contender: Contender
    problem: Path
    share: float
    n_iterations: int
    n_threads: int | None


@dataclasses.dataclass(frozen=True)
class Limits:
    """How long a measurement may take, and how much address space it may have."""

    seconds: float = 180.0
    gibibytes: float = 16.0


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What came of a task.

    Attributes
    ----------
    failure : what went wrong, in words; None if nothing did
    seconds : of each iteration, the first included
    memory : bytes beyond libraries, data and model, at the peak
    elapsed, processor_seconds : all iterations together, and what they took of all cores
    """

    share: float
    n_threads: int | None
    failure: str | None = None
    seconds: list[float] = dataclasses.field(default_factory=list)
    objectives: list[float | None] = dataclasses.field(default_factory=list)
    n_observations: int = 0
    memory: int = 0
    elapsed: float = 0.0
    processor_seconds: float = 0.0

    @property
    def steady(self) -> list[float]:
        """Times without the first iteration, which may still have something to load, wherever there are others."""
        return self.seconds[1:] or self.seconds


def carry_out(task: Task, limits: Limits) -> Measurement:
    """Run a worker, and understand how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        order, answer = Path(folder, "task.pickle"), Path(folder, "result.json")
        order.write_bytes(pickle.dumps(task))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.worker", str(order), str(answer)],
                env=_environment(task.n_threads),
                preexec_fn=lambda: _limit_memory(limits.gibibytes),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limits.seconds,
            )
        except subprocess.TimeoutExpired:
            return Measurement(task.share, task.n_threads, f"timed out after {limits.seconds:.0f} s")
        if done.returncode != 0:
            return Measurement(task.share, task.n_threads, _in_words(done.returncode, done.stderr, limits))
        measured = Measurement(task.share, task.n_threads, **json.loads(answer.read_text()))
    return dataclasses.replace(measured, failure=_not_a_number(measured.objectives))


def _environment(n_threads: int | None) -> dict[str, str]:
    threads = {} if n_threads is None else dict.fromkeys(_THREADS, str(n_threads))
    # JAX logs at length when an allocation fails; torch and it find the processors by themselves.
    return os.environ | threads | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}


def _limit_memory(gibibytes: float) -> None:
    n_bytes = int(gibibytes * GIBIBYTE)
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _in_words(returncode: int, stderr: str, limits: Limits) -> str:
    if any(sign in stderr.lower() for sign in _OUT_OF_MEMORY):
        return f"out of memory (limit {limits.gibibytes:g} GiB)"
    if returncode == -signal.SIGKILL:
        return "killed by the system, most likely out of memory"
    if returncode < 0:
        return f"crashed ({signal.Signals(-returncode).name})"
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    return f"failed: {lines[-1][:200]}" if lines else f"failed with exit code {returncode}"


def _not_a_number(objectives: list[float | None]) -> str | None:
    for iteration, value in enumerate(objectives, start=1):
        if value is not None and not math.isfinite(value):
            return f"not a number in iteration {iteration}"
    return None
