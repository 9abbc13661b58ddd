"""One measurement, in a process of its own: one contender, one problem, a few iterations.

The parent starts it with the memory limit and the number of threads already set, and reads the result from a file.
Whatever goes wrong ends this process alone.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.cases import Problem
from benchmarks.memory import peak_resident, settle
from benchmarks.supervision import Task


def measure(task: Task) -> dict[str, Any]:
    """Train as the task says, and count time and memory from the moment that the data are in place."""
    problem = Problem.load(task.problem).part(task.share)
    task.contender.load(problem)
    task.contender.prepare(problem)
    before = settle()
    began, processor = time.perf_counter(), time.process_time()
    course = task.contender.iterate(task.n_iterations)
    return {
        "seconds": course.seconds,
        "objectives": course.objectives,
        "n_observations": problem.n_observations,
        "memory": max(peak_resident() - before, 0),
        "elapsed": time.perf_counter() - began,
        "processor_seconds": time.process_time() - processor,
    }


if __name__ == "__main__":
    result = measure(pickle.loads(Path(sys.argv[1]).read_bytes()))
    Path(sys.argv[2]).write_text(json.dumps(result))
