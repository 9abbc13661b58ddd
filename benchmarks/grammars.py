"""Sentences a second of passes over dependency trees, on one thread: `python -m benchmarks.grammars`.

Sentences of 1 to 10 tags are made up, with 32 tags and the lengths of the short sentences of the Penn sample. Times are
those of the processor; the passes take turns, and the median and the best of several rounds are shown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from subchain.propagation.trees.passes import BEST, DRAW, SCORE, Tags
from subchain.structures.trees.ledger import TreeLedger
from subchain.structures.trees.model import TreePoint, TreePosterior
from subchain.structures.trees.starts import start_statistics
from subchain.structures.trees.structure import DependencyTrees

N_TAGS = 32
#: Number of sentences of 1, 2, … words among the short sentences of the Penn sample.
SHARES = np.array([13, 21, 26, 46, 55, 55, 61, 92, 89, 97])


def made_up(n: int, longest: int | None) -> DependencyTrees:
    """Return n sentences of random tags, with these lengths, or all of one length."""
    rng = np.random.default_rng(0)
    lengths = rng.choice(10, n, p=SHARES / SHARES.sum()) + 1 if longest is None else np.full(n, longest)
    tags = rng.choice(N_TAGS, int(lengths.sum()), p=rng.dirichlet(np.full(N_TAGS, 0.5)))
    return DependencyTrees(Tags(tags.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)])), N_TAGS)


def passes(structure: DependencyTrees) -> dict[str, Callable[[], object]]:
    """Return the passes by name, each over all sentences."""
    prior = TreePosterior.symmetric(N_TAGS, dict.fromkeys(("root", "stop", "attach"), 0.1))
    begin = start_statistics(structure, "harmonic", np.random.default_rng(0))
    weights = prior.update(begin).mean()
    assert isinstance(weights, TreePoint)
    point, everything = weights, np.arange(structure.n_clusters)
    ledger = TreeLedger(structure, prior)
    ledger.begin(begin)
    uniforms = np.random.default_rng(0).random(2 * structure.n_observations)

    def visit(measures: bool) -> None:
        ledger.measures = measures
        ledger.visit(everything, excludes=True, puts_back=True)

    return {
        "expected counts (EM, VI)": lambda: structure.statistics(point),
        "collapsed visits (CVI)": lambda: visit(False),
        "collapsed visits with objective": lambda: visit(True),
        "log likelihood": lambda: structure.run(SCORE, point.rules(), everything),
        "best trees": lambda: structure.run(BEST, point.rules(), everything),
        "draws": lambda: structure.run(DRAW, point.rules(), everything, uniforms),
    }


def measure(n: int, longest: int | None, rounds: int) -> None:
    """Print sentences a second."""
    structure = made_up(n, longest)
    print(f"{n:,} sentences, {structure.lengths.mean():.1f} words on average")
    taken: dict[str, list[float]] = {}
    chosen = passes(structure)
    for _ in range(rounds + 1):  # the first compiles
        for name, run in chosen.items():
            began = time.process_time()
            run()
            taken.setdefault(name, []).append(time.process_time() - began)
    for name, seconds in taken.items():
        print(f"{name:32} {n / statistics.median(seconds[1:]):>12,.0f} a second, best {n / min(seconds[1:]):>12,.0f}")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--length", type=int, help="words of every sentence; those of the Penn sample by default")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    measure(given.sentences, given.length, given.rounds)


if __name__ == "__main__":
    main()
