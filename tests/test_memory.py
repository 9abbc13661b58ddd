"""The estimate is made before the run; the run must keep to it."""

import os
import subprocess
import sys
import tracemalloc
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from subchain import CVI, EM, HDP, HMM, VI, Categorical, memory_estimate
from subchain.engines.cpu.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")

SOURCES = str(Path(__file__).resolve().parents[1] / "src")
RNG = np.random.default_rng(0)
CASES = {
    "one chain of words": (12, Categorical(n_categories=10_000), RNG.integers(0, 10_000, 500_000), VI),
    "many sentences": (12, Categorical(n_categories=10_000), (RNG.integers(0, 10_000, 500_000), [20] * 25_000), EM),
    "sentences, collapsed": (12, Categorical(n_categories=1000), (RNG.integers(0, 1000, 500_000), [20] * 25_000), CVI),
    "sentences, state by state": (
        12, Categorical(n_categories=1000), (RNG.integers(0, 1000, 500_000), [20] * 25_000),
        partial(VI, cluster="state"),
    ),
    "many states": (100, Categorical(n_categories=500), (RNG.integers(0, 500, 50_000), [50] * 1000), VI),
    "one chain of pairs": (8, "gaussian", RNG.normal(size=(500_000, 2)), VI),
    "one chain of vectors": (25, "diagonal_gaussian", RNG.normal(size=(100_000, 12)), EM),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_estimate_is_right_within_a_fifth(case):
    n_states, emission, x, algorithm = CASES[case]
    inference = algorithm(max_iter=2, tolerance=0.0)
    model = HMM(n_states, emission, inference=inference, init="exponential", random_state=0, n_jobs=2)
    estimate = memory_estimate(model, x)
    model.fit(x)
    Workspace._spare.clear()
    tracemalloc.start()
    model.fit(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak / 1.2 <= estimate.total <= peak * 1.2
    assert f"{estimate.total / 1e6:.1f} MB" in str(estimate)


#: Families × algorithms × sizes: number of states, emission, inference, expression for data of n positions, n.
SETTINGS = {
    "chain of words, EM": ("20", "WORDS", "EM(**TWO)", "symbols(n)", 2_000_000),
    "sentences of many words, VI": ("20", "MANY_WORDS", "VI(**TWO)", "sentences(n)", 500_000),
    "sentences, VI, many states": ("150", "WORDS", "VI(**TWO)", "sentences(n)", 200_000),
    "sentences, mean field": ("20", "WORDS", "VI(cluster='state', **TWO)", "sentences(n)", 500_000),
    "chain of words, SVI, guards": ("20", "WORDS", "SVI(length=2, boundary=Guards(), **FEW)", "symbols(n)", 2_000_000),
    "words, SCVI, guards": ("50", "WORDS", "SCVI(length=4, boundary='guards', **FEW)", "symbols(n)", 1_000_000),
    "words, SVI, buffer": ("20", "MANY_WORDS", "SVI(length=50, boundary=Buffer(9), **FEW)", "symbols(n)", 500_000),
    "sentences, CVI": ("20", "WORDS", "CVI(**TWO)", "sentences(n)", 400_000),
    "sentences, CVI in shards": ("20", "MANY_WORDS", "CVI(order='shards', **TWO)", "sentences(n)", 400_000),
    "sentences, CVI by batches": ("20", "WORDS", "CVI(order='batch', **TWO)", "sentences(n)", 200_000),
    "sentences, Gibbs": ("20", "WORDS", "Gibbs(n_samples=2, burn_in=1)", "sentences(n)", 500_000),
    "sentences, Beam": ("10", "WORDS", "Beam(n_samples=2, burn_in=1, n_chains=1)", "sentences(n)", 200_000),
    "vectors, Beam": ("10", "'gaussian'", "Beam(n_samples=2, burn_in=1, n_chains=1)", "vectors(n, 2)", 100_000),
    "vectors, SVI, guards": ("8", "'gaussian'", "SVI(length=2, boundary='guards', **FEW)", "vectors(n, 2)", 1_000_000),
    "long vectors, EM": ("25", "'diagonal_gaussian'", "EM(**TWO)", "vectors(n, 12)", 200_000),
    "counts, CVI": ("10", "'poisson'", "CVI(**TWO)", "counts(n)", 500_000),
    "words, four starts": ("20", "WORDS", "VI(**TWO)", "symbols(n)", 400_000),
    "marks, VI": ("12", "'bernoulli'", "VI(**TWO)", "marks(n)", 300_000),
}  # fmt: skip

#: Every setting has a process of its own, forked from one that has the package and its kernels.
MEASURE = """
import gc, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from subchain import CVI, EM, HDP, HMM, SCVI, SVI, VI, Beam, Buffer, Categorical, Gibbs, Guards, memory_estimate
from subchain.engines.cpu import fused, updates
from subchain.engines.cpu.workspace import Workspace

rng, TWO, FEW = np.random.default_rng(0), dict(max_iter=2, tolerance=0.0), dict(batch=100, max_updates=20)
WORDS, MANY_WORDS = Categorical(n_categories=1000), Categorical(n_categories=20_000)
symbols = lambda n: rng.integers(0, 1000, n)
sentences = lambda n: (symbols(n), [20] * (n // 20))
vectors = lambda n, d: rng.normal(size=(n, d))
counts = lambda n: (rng.poisson(3, n), [50] * (n // 50))
marks = lambda n: rng.integers(0, 2, (n, 8))

def resident(name):
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

def measure(states, emission, inference, x, small, compiles):
    fused.LARGE = updates.LARGE = 0  # the small fit loads all the code, which the estimate does not count
    def model():
        prior = {"transition": HDP()} if isinstance(inference, Beam) else {}
        n_init = 4 if "four starts" in name else 1
        return HMM(states, emission, inference=inference, n_init=n_init, random_state=0, n_jobs=2, **prior)
    model().fit(small)
    if compiles:
        model().fit(x)  # may need kernels that small data do not
        return
    said = memory_estimate(model(), x).total
    Workspace._spare.clear()  # tables of the small fit, which would be used again
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the peak so far
    before = resident("VmRSS")
    model().fit(x)
    print(repr(name), said, resident("VmHWM") - before, sep="\t", flush=True)

for name, (states, emission, inference, data, n) in eval(sys.argv[1]).items():
    x, small = (eval(data, globals() | {"n": size}) for size in (n, 2000))
    for compiles in (True, False):  # compilers leave memory behind, so that another process compiles
        if os.fork() == 0:
            measure(int(states), eval(emission), eval(inference), x, small, compiles)
            os._exit(0)
        os.wait()
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peaks are measured on Linux only")
def test_the_estimate_agrees_with_resident_memory() -> None:
    """Memory that is freed goes back to the system, so that earlier work does not hide what a fit takes."""
    variables = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, repr(SETTINGS)], env=os.environ | {"PYTHONPATH": SOURCES} | variables,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {
        name: int(said) / int(peak) for name, said, peak in (line.split("\t") for line in done.stdout.splitlines())
    }
    ratios = {name: ratio for name, ratio in found.items() if not 0.8 <= ratio <= 1.25}
    assert len(found) == len(SETTINGS), done.stderr
    assert not ratios


def test_rows_of_sticks_take_no_more_than_was_said():
    x = (RNG.integers(0, 50, 50_000), [50] * 1000)
    prior = HDP(1.0, 1.0, "sticks", merges=False, splits=False)
    model = HMM(120, Categorical(n_categories=50), prior, VI(max_iter=2, tolerance=0.0), random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(x)
        Workspace._spare.clear()
        tracemalloc.start()
        model.fit(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak / 1.2 <= memory_estimate(model, x).total <= peak * 1.5


def test_a_chain_of_1e8_symbols_takes_less_than_a_gigabyte(tmp_path):
    path = tmp_path / "chain.npy"
    chain = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(100_000_000,))
    chain.flush()
    assert memory_estimate(HMM(12, Categorical(n_categories=100), n_jobs=2), path).total < 1e9


def test_collapsed_inference_says_what_it_keeps_of_every_position():
    x = [np.zeros(20, dtype=int)] * 100
    collapsed = {
        together: memory_estimate(HMM(10, "categorical", inference=CVI(cluster_size=together)), x).kept
        for together in (1, 10)
    }
    assert collapsed[1] == 8 * (2000 * 10 + 101 * 100)
    assert collapsed[10] == 8 * (2000 * 10 + 11 * 100)
    assert memory_estimate(HMM(10, "categorical", inference=CVI(storage="folder")), x).kept == 0
    assert memory_estimate(HMM(10, "categorical"), x).kept == 0
