"""`python -m benchmarks.low_rank`: passes of EM with low-rank transitions, against the matrix of their product."""

from __future__ import annotations

import argparse
import time

import numpy as np

from subchain.data import Sequences
from subchain.emissions import Categorical
from subchain.engines import Cpu, Part
from subchain.structures.chain.model import HMMPoint
from subchain.transitions import LowRank
from subchain.transitions.base import Chain
from subchain.transitions.low_rank import given_chain


def measured(point: HMMPoint, part: Part, n_jobs: int, repeats: int) -> tuple[float, float]:
    """Return the shortest time of a pass with statistics, after one that does not count, and its log likelihood."""
    engine, surrogate = Cpu(n_jobs), point.surrogate()
    engine.statistics(surrogate, part)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = engine.statistics(surrogate, part)
        times.append(time.perf_counter() - start)
    return min(times), found.log_normalizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    parser.add_argument("--features", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--words", type=int, default=2_000)
    parser.add_argument("--positions", type=int, default=20_000, help="at 512 states; fewer in proportion for more")
    parser.add_argument("--length", type=int, default=20, help="of a sentence")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    print("states  features  dense µs/position  low rank µs/position  times as fast  difference of log likelihoods")
    for n_states in options.states:
        n = max(options.positions * 512 // n_states // options.length, 1) * options.length
        offsets = np.arange(0, n + 1, options.length)
        part = Part(Sequences(rng.integers(0, options.words, n), offsets))
        emission = Categorical.from_parameters(rng.dirichlet(np.ones(options.words), n_states))
        initial = rng.dirichlet(np.ones(n_states))
        for n_features in options.features:
            left, right = rng.dirichlet(np.ones(n_features), n_states), rng.dirichlet(np.ones(n_states), n_features)
            low = HMMPoint(given_chain(initial, LowRank.from_parameters(left, right)), emission)
            dense = HMMPoint(Chain(initial, left @ right), emission)
            slow, one = measured(dense, part, options.jobs, options.repeats)
            fast, other = measured(low, part, options.jobs, options.repeats)
            print(
                f"{n_states:6}  {n_features:8}  {1e6 * slow / n:17.1f}  {1e6 * fast / n:20.1f}  {slow / fast:13.1f}  "
                f"{abs(one - other) / abs(one):.1e}", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
