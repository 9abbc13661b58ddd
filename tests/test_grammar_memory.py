"""What a fit of a grammar takes is known before it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from subchain import memory_estimate
from subchain.grammar import DMV, PCFG

SOURCES = str(Path(__file__).resolve().parents[1] / "src")
#: Every case has a process of its own, forked from one that has the package; compilers leave memory behind, so that
#: another process compiles.
MEASURE = """
import gc, os
import numpy as np
from subchain import CVI, EM, VI, memory_estimate
from subchain.grammar import DMV, PCFG, Dependencies, LatentPCFG, Tree

rng, TWO = np.random.default_rng(0), dict(max_iter=2, tolerance=0.0)

def sentences(n, length, n_tags):
    tags = [[f"t{k}" for k in row] for row in rng.integers(0, n_tags, (n, length)).tolist()]
    return Dependencies(tags, tags, None)

def treebank(n, size):
    def grow(m):
        if m == 1:
            return Tree(f"T{rng.integers(8)}", (f"w{rng.integers(2000)}",))
        k = int(rng.integers(1, m))
        return Tree(f"N{rng.integers(8)}", (grow(k), grow(m - k)))
    return [Tree("S", (grow(size),)) for _ in range(n)]

CASES = {
    "collapsed dependencies": (lambda: DMV(CVI(**TWO), n_jobs=2), lambda n: sentences(n, 20, 40), 10_000),
    "dependencies of many tags": (lambda: DMV(EM(**TWO), n_jobs=2), lambda n: sentences(n, 10, 600), 4000),
    "collapsed annotations": (lambda: LatentPCFG(4, CVI(**TWO), n_jobs=2), lambda n: treebank(n, 20), 2000),
    "many annotations": (lambda: LatentPCFG(12, EM(**TWO), n_jobs=2), lambda n: treebank(n, 20), 1000),
}

def resident(name):
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

def measure(name, make, data, n, compiles):
    make().set_params(progress=False).fit(data(200))
    if compiles:
        return
    x = data(n)
    said = memory_estimate(make(), x).total
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak so far
    before = resident("VmRSS")
    make().set_params(progress=False).fit(x)
    print(name, said, resident("VmHWM") - before, sep="\\t", flush=True)

for name, case in CASES.items():
    for compiles in (True, False):
        if os.fork() == 0:
            measure(name, *case, compiles)
            os._exit(0)
        os.wait()
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peaks are measured on Linux only")
def test_the_estimate_agrees_with_resident_memory() -> None:
    variables = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], env=os.environ | {"PYTHONPATH": SOURCES} | variables,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {
        name: int(said) / int(peak) for name, said, peak in (line.split("\t") for line in done.stdout.splitlines())
    }
    assert len(found) == 4, done.stderr
    assert not {name: ratio for name, ratio in found.items() if not 0.8 <= ratio <= 1.25}


def test_the_estimate_grows_with_what_a_run_keeps() -> None:
    sentences = ["DT NN VB DT NN"] * 200
    for grammar in (DMV, lambda name: PCFG(inference=name, n_nonterminals=5)):
        collapsed, plain = (memory_estimate(grammar(name), sentences) for name in ("cvi", "em"))
        assert collapsed.kept > plain.kept == 0
        assert collapsed.total > collapsed.kept
    assert memory_estimate(DMV("gibbs"), sentences).kept > 0
