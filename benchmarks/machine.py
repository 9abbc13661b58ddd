"""What the machine is, and the most that it could do: its speed in products of double-precision matrices."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ["subchain", "numpy", "scipy", "numba", "scikit-learn", "hmmlearn", "pomegranate", "torch", "dynamax", "jax"]


def peak_multiply_adds(n_threads: int, size: int = 2048, repeats: int = 5) -> float:
    """Multiply-adds a second in a product of two large matrices, best of several."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    left, right, out = rng.random((size, size)), rng.random((size, size)), np.empty((size, size))
    times = []
    with threadpool_limits(n_threads):
        for _ in range(repeats):
            began = time.perf_counter()
            np.matmul(left, right, out=out)
            times.append(time.perf_counter() - began)
    return float(size**3 / min(times))


def describe() -> dict[str, Any]:
    """Machine, date and versions, for the record."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in PACKAGES},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def _version(package: str) -> str | None:
    if package == "subchain":
        import subchain

        return subchain.__version__
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
