"""The estimate is made before the run; the run must keep to it."""

import tracemalloc
import warnings
from functools import partial

import numpy as np
import pytest

from subchain import CVI, EM, HDP, HMM, VI, Categorical, memory_estimate
from subchain.engines.cpu.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")

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
