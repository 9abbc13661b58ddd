"""Passes over an annotated treebank, and sentences parsed a second: `python -m benchmarks.latent_annotations`.

The treebank is that of the experiment `latent_annotations`, or a bracketed file. Passes are timed on one thread by the
time of the processor, in turn, and on all threads by the clock; the median of several rounds is shown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from experiments.latent_annotations import LONGEST, treebank
from subchain.data.treebank import prepare_trees
from subchain.engines.threads import n_threads
from subchain.grammar import LatentPCFG, Tree, clean_tree, read_trees
from subchain.inference import CVI
from subchain.structures.latent.grammar import treebank_grammar
from subchain.structures.latent.layout import layout_of
from subchain.structures.latent.ledger import AnnotatedLedger
from subchain.structures.latent.model import AnnotatedPoint, AnnotatedPosterior
from subchain.structures.latent.starts import start_statistics
from subchain.structures.latent.structure import AnnotatedTrees

#: Trees that are excluded together.
TOGETHER = (1, 16, 256)


def median(run: Callable[[], object], clock: Callable[[], float], rounds: int) -> float:
    """Return the median time of a call, the first left out: it compiles."""
    taken = []
    for _ in range(rounds + 1):
        began = clock()
        run()
        taken.append(clock() - began)
    return statistics.median(taken[1:])


def measure_passes(trees: list[Tree], n_annotations: int, rounds: int) -> None:
    """Print the time of an iteration of EM and of a pass of CVI, and what CVI keeps."""
    grammar, forest = treebank_grammar(prepare_trees(trees).trees)
    sizes = np.full(grammar.n_symbols, n_annotations)
    sizes[0] = 1
    layout = layout_of(grammar, sizes)
    one, every = AnnotatedTrees(forest, layout, 1), AnnotatedTrees(forest, layout, n_threads(None))
    start = start_statistics(one, grammar, 0.01, np.random.default_rng(0))
    flat = AnnotatedPosterior.symmetric(layout.widths, 1.0)

    def iterate(structure: AnnotatedTrees) -> None:
        point = flat.update(start).mode()
        assert isinstance(point, AnnotatedPoint)
        structure.statistics(point)

    alone = median(lambda: iterate(one), time.process_time, rounds)
    print(f"{n_annotations} annotations, {len(trees):,} trees, {len(forest.rules):,} nodes")
    print(f"  EM iteration: {alone:.3f} s on one thread, ", end="")
    print(f"{median(lambda: iterate(every), time.perf_counter, rounds):.3f} s by the clock on {every.n_jobs}")
    prior = AnnotatedPosterior.symmetric(layout.widths, 0.01)
    for size in TOGETHER:
        ledger = one.ledger(CVI(cluster_size=size), prior)
        ledger.begin(start)
        ratios = []
        for measures in (False, True):
            seconds = median(partial(_visit, ledger, measures), time.process_time, rounds)
            ratios.append(f"{seconds:.3f} s, {seconds / alone:.2f} of EM")
        megabytes = ledger.shares["uses"].nbytes / 1e6
        print(f"  CVI pass, {size} trees at once: {ratios[0]}; with objective {ratios[1]}; keeps {megabytes:.1f} MB")


def _visit(ledger: AnnotatedLedger, measures: bool) -> None:
    ledger.measures = measures
    ledger.visit(np.arange(ledger.size), excludes=True, puts_back=True)


def measure_parsing(trees: list[Tree], sentences: Sequence[Tree], n_annotations: int, rounds: int) -> None:
    """Print how many sentences are parsed a second."""
    grammar = LatentPCFG(n_annotations, iterations=20, random_state=0, progress=False).fit(trees)
    words = [tree.leaves() for tree in sentences]
    for method in ("max-rule", "viterbi"):
        seconds = median(partial(grammar.parse, words, method), time.perf_counter, rounds)
        print(f"  {method}: {len(words) / seconds:.0f} sentences a second by the clock, coarse pass included")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", help="a bracketed file, of which the last tenth is parsed; else the Penn sample")
    parser.add_argument("--annotations", type=int, nargs="+", default=[4])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.treebank is None:
        bank = treebank()
        training, sentences = bank.training, [*bank.development, *bank.test]
    else:
        trees = read_trees(given.treebank)
        training = trees[: -max(len(trees) // 10, 1)]
        cleaned = (clean_tree(tree) for tree in trees[len(training) :])
        sentences = [tree for tree in cleaned if tree is not None and len(tree.leaves()) <= LONGEST]
    for n_annotations in given.annotations:
        measure_passes(training, n_annotations, given.rounds)
        measure_parsing(training, sentences, n_annotations, max(given.rounds // 2, 1))


if __name__ == "__main__":
    main()
