"""How long a user waits before anything happens: the import, the very first fit, and the first fit of any other day.

    python -m benchmarks.startup

Every figure comes from fresh interpreters. The very first fit has to compile: it runs with an empty cache for compiled
code; the next one finds the cache filled.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile

from rich.table import Table

from benchmarks.tables import wide_console

_CLOCK = "import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
_FIT = """
import time
began = time.perf_counter()
import numpy as np
from subchain import HMM, VI
x = np.random.default_rng(0).{draw}
HMM(3, "{family}", inference=VI(max_iter=10), random_state=0, progress=False).fit((x, [200] * 100))
print(time.perf_counter() - began)
"""
#: The same with hmmlearn, where it is installed.
PEER = """
import time
began = time.perf_counter()
import numpy as np
from hmmlearn.hmm import CategoricalHMM
x = np.random.default_rng(0).integers(5, size=(20_000, 1))
CategoricalHMM(3, n_iter=10, tol=-np.inf, random_state=0).fit(x, [200] * 100)
print(time.perf_counter() - began)
"""
FITS = {
    "categorical": _FIT.format(draw="integers(5, size=20_000)", family="categorical"),
    "gaussian": _FIT.format(draw="normal(size=20_000)", family="gaussian"),
}


def seconds(program: str, cache: str | None = None) -> float:
    """What a program prints, run by a fresh interpreter; `cache` is its folder for compiled code."""
    environment = os.environ if cache is None else os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def importing(statement: str, repeats: int) -> float:
    """Best time of an import statement."""
    return min(seconds(_CLOCK.format(statement=statement)) for _ in range(repeats))


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.startup", description="How long a user waits for the first result."
    )
    parser.add_argument("--repeats", type=int, default=5, help="fresh interpreters per figure; the best counts (5)")
    repeats = parser.parse_args(arguments).repeats
    table = Table("", "seconds", title="start-up", title_justify="left", title_style="bold")
    for statement in ("import numpy", "import subchain", "from subchain import HMM"):
        table.add_row(statement, f"{importing(statement, repeats):.3f}")
    for family, program in FITS.items():
        with tempfile.TemporaryDirectory() as cache:
            table.add_row(f"{family}: import and first fit, nothing compiled yet", f"{seconds(program, cache):.2f}")
            warm = min(seconds(program, cache) for _ in range(repeats))
            table.add_row(f"{family}: the same, compiled before", f"{warm:.2f}")
    if importlib.util.find_spec("hmmlearn") is not None:
        table.add_row(
            "categorical, hmmlearn: import and first fit", f"{min(seconds(PEER) for _ in range(repeats)):.2f}"
        )
    wide_console().print(table)


if __name__ == "__main__":
    main()
