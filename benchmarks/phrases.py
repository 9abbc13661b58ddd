"""Sentences a second of passes over trees of phrases, on one thread: `python -m benchmarks.phrases`.

The grammar is fully connected, in Chomsky's normal form, with random probabilities; sentences are made up. Times are
those of the processor; the passes take turns, and the median and the best of several rounds are shown. With `--peer`
PyTorch and torch-struct, where they are installed, compute the same expected counts, on one thread of the processor.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from subchain.propagation.phrases.passes import BEST, DRAW, SCORE
from subchain.structures.phrases.ledger import PhraseLedger
from subchain.structures.phrases.model import PhrasePoint, PhrasePosterior
from subchain.structures.phrases.rules import fully_connected
from subchain.structures.phrases.structure import PhraseTrees

N_TOKENS = 1000
KEY = np.array([1, 2], dtype=np.uint64)


def made_up(n: int, length: int, n_symbols: int) -> PhraseTrees:
    """Return n sentences of random tokens."""
    rng, tokens = np.random.default_rng(0), [f"w{number}" for number in range(N_TOKENS)]
    rules = fully_connected(n_symbols, None, tokens, " ")
    return PhraseTrees([tuple(rng.choice(tokens, length).tolist()) for _ in range(n)], rules)


def passes(structure: PhraseTrees) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return the passes by name: how many sentences, and what is to be called."""
    rules = structure.rules
    prior = PhrasePosterior.of(rules, np.full(len(rules), 0.1))
    weights = PhrasePosterior.of(rules, np.ones(len(rules))).sample(np.random.default_rng(0))
    assert isinstance(weights, PhrasePoint)
    point, everything = weights, np.arange(structure.n_clusters)
    ledger = PhraseLedger(structure, prior)
    ledger.begin(structure.statistics(point))

    def visit(measures: bool) -> None:
        ledger.measures = measures
        ledger.visit(everything, excludes=True, puts_back=True)

    whole = len(everything)
    return {
        "expected counts (EM, VI)": (whole, lambda: structure.statistics(point)),
        "collapsed visits (CVI)": (whole, lambda: visit(False)),
        "collapsed visits with objective": (whole, lambda: visit(True)),
        "log likelihood": (whole, lambda: structure.run(SCORE, point.rules.weights, everything)),
        "best trees": (whole, lambda: structure.run(BEST, point.rules.weights, everything)),
        "draws": (whole, lambda: structure.run(DRAW, point.rules.weights, everything, KEY)),
    }


def peer(structure: PhraseTrees) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return the pass of torch-struct: log likelihood and its derivatives, which are the expected counts.

    Its grammars have other symbols over tokens than over pairs; here there are as many of one kind as of the other.
    """
    import torch  # type: ignore[import-not-found]
    from torch_struct import SentCFG  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    n, length = structure.n_clusters, int(structure.lengths[0])
    size = structure.grammar.n_rows
    torch.manual_seed(0)
    terms = torch.randn(n, length, size).log_softmax(-1)
    rules = torch.randn(n, size, 2 * size, 2 * size).reshape(n, size, -1).log_softmax(-1)
    rules = rules.reshape(n, size, 2 * size, 2 * size)
    roots = torch.randn(n, size).log_softmax(-1)

    def run(batch: int = 20) -> Any:
        return [
            SentCFG((terms[i : i + batch], rules[i : i + batch], roots[i : i + batch])).marginals
            for i in range(0, n, batch)
        ]

    return {"torch-struct, marginals": (n, run)}


def measure(structure: PhraseTrees, rounds: int, with_peer: bool) -> None:
    """Print sentences a second."""
    taken: dict[str, list[float]] = {}
    chosen = passes(structure) | (peer(structure) if with_peer else {})
    for _ in range(rounds + 1):  # the first compiles
        for name, (n, run) in chosen.items():
            began = time.process_time()
            run()
            taken.setdefault(name, []).append((time.process_time() - began) / n)
    for name, seconds in taken.items():
        print(f"{name:32} {1 / statistics.median(seconds[1:]):>10,.0f} a second, best {1 / min(seconds[1:]):>10,.0f}")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--symbols", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", action="store_true", help="compare with torch-struct")
    given = parser.parse_args()
    structure = made_up(given.sentences, given.length, given.symbols)
    print(f"{given.sentences:,} sentences of {given.length} tokens, {given.symbols} symbols")
    measure(structure, given.rounds, given.peer)


if __name__ == "__main__":
    main()
