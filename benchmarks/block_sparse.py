"""`python -m benchmarks.block_sparse`: passes of EM with words and states in groups, against a table without zeros."""

from __future__ import annotations

import argparse
import time

import numpy as np

from subchain.data import Sequences
from subchain.emissions import BlockSparse, Categorical
from subchain.engines import Cpu, Part, Surrogate
from subchain.structures.chain.model import HMMPoint
from subchain.transitions.base import Chain


def measured(point: HMMPoint, data: Sequences, n_jobs: int, repeats: int) -> float:
    """Return the shortest CPU time of a pass with statistics, after one that does not count."""
    engine, part = Cpu(n_jobs), Part(data, point.evidence(data, None))
    surrogate: Surrogate = point.surrogate()
    engine.statistics(surrogate, part)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        engine.statistics(surrogate, part)
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=2048)
    parser.add_argument("--groups", type=int, default=32)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--positions", type=int, default=100_000, help="with groups")
    parser.add_argument("--dense", type=int, default=4_000, help="positions without")
    parser.add_argument("--length", type=int, default=20, help="of a sentence")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.arange(options.words) % options.groups)
    table = rng.gamma(1.0, size=(options.states, options.words))
    table[(np.arange(options.states) * options.groups // options.states)[:, None] != groups] = 0.0
    table /= table.sum(axis=1, keepdims=True)
    sparse = BlockSparse.from_parameters(table, groups)
    initial = np.full(options.states, 1.0 / options.states)
    transition = rng.gamma(1.0, size=(options.states, options.states))
    chain = Chain(initial, transition / transition.sum(axis=1, keepdims=True))
    for name, emission, n in (
        ("groups", sparse, options.positions),
        ("dense", Categorical.from_parameters(table), options.dense),
    ):
        values = rng.integers(0, options.words, n)
        data = Sequences(values, np.arange(0, n + 1, options.length))
        seconds = measured(HMMPoint(chain, emission), data, options.jobs, options.repeats)
        print(f"{name}: {1e6 * seconds / n:.1f} µs of CPU time a position ({n} positions, {seconds:.2f} s)", flush=True)


if __name__ == "__main__":
    main()
