"""Parallel text of any size, drawn from the model of word alignment, with the links that it was drawn with.

    python -m benchmarks.parallel_text --pairs 1e7 --folder /tmp/large

The folder gets text.source, text.target, and gold.links of the first pairs. Source words are drawn by Zipf's law.
Every source word has a few translations with probabilities from a Dirichlet distribution. Positions are a Markov chain
over jump widths, as in the hidden Markov aligner; a target word is NULL's with a fixed probability, and is then drawn
by Zipf's law too.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]

#: Sentence pairs that are drawn at a time, and the first ones, whose links are written.
BLOCK, GOLD = 100_000, 10_000
#: Translations of a word, at most, and the concentration of their probabilities.
TRANSLATIONS, CONCENTRATION = 4, 0.3
#: Probability of NULL.
NULL = 0.15
#: Weights of the jump widths −3 … 4; most jumps lead to the next position.
JUMPS = np.array([1.0, 2.0, 5.0, 4.0, 70.0, 12.0, 4.0, 2.0])
FIRST_JUMP = -3


class Language(NamedTuple):
    """What sentences are drawn from.

    Attributes
    ----------
    words : (V + 1,) cumulative probabilities of words, from 0 to 1
    translations, chances : (V, TRANSLATIONS) target words, and their cumulative probabilities
    source_words, target_words : (V,) spelling
    """

    words: NDArray[np.float64]
    translations: Index
    chances: NDArray[np.float64]
    source_words: NDArray[np.object_]
    target_words: NDArray[np.object_]


def language(n_words: int, rng: np.random.Generator) -> Language:
    """Draw a vocabulary with translations."""
    weights = 1.0 / np.arange(1.0, n_words + 1.0)
    words = np.concatenate([[0.0], np.cumsum(weights / weights.sum())])
    translations = np.stack([rng.permutation(n_words) for _ in range(TRANSLATIONS)], axis=1)
    chances = np.cumsum(rng.dirichlet(np.full(TRANSLATIONS, CONCENTRATION), n_words), axis=1)
    spelling = (np.array([f"{side}{word}" for word in range(n_words)], dtype=object) for side in "st")
    return Language(words, translations, chances, *spelling)


def drawn(of: Language, n_pairs: int, length: float, rng: np.random.Generator) -> tuple[Index, ...]:
    """Draw sentence pairs: lengths and words of both sides, (n_pairs,) and (tokens,), and a source position per target
    word, −1 for NULL."""
    n_source, n_target = (1 + rng.poisson(length - 1.0, n_pairs) for _ in range(2))
    source = np.searchsorted(of.words, rng.random(n_source.sum()), side="right") - 1
    first = np.cumsum(n_source) - n_source
    aligned = np.full((n_pairs, n_target.max()), -1)
    last = np.full(n_pairs, -1)
    for j in range(n_target.max()):
        is_linked = rng.random(n_pairs) >= NULL
        steps = last[:, None] + np.arange(len(JUMPS)) + FIRST_JUMP
        weights = np.where((steps >= 0) & (steps < n_source[:, None]), JUMPS, 0.0)
        ends = np.cumsum(weights, axis=1)
        is_linked &= ends[:, -1] > 0.0
        chosen = (ends < rng.random(n_pairs)[:, None] * ends[:, -1:]).sum(axis=1)
        position = np.minimum(last + chosen + FIRST_JUMP, n_source - 1)
        aligned[:, j] = np.where(is_linked, position, -1)
        last = np.where(is_linked, position, last)
    inside = np.arange(aligned.shape[1]) < n_target[:, None]
    of_null = np.searchsorted(of.words, rng.random(int(n_target.sum())), side="right") - 1
    links = aligned[inside]
    word = source[np.repeat(first, n_target) + np.maximum(links, 0)]
    which = (of.chances[word] < rng.random(len(word))[:, None]).sum(axis=1).clip(max=TRANSLATIONS - 1)
    target = np.where(links < 0, of_null, of.translations[word, which])
    return n_source, n_target, source, target, links


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=float, default=1e7)
    parser.add_argument("--length", type=float, default=10.0, help="mean number of words of a sentence")
    parser.add_argument("--words", type=float, default=10_000, help="words of each language")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng, n_pairs = np.random.default_rng(options.seed), int(options.pairs)
    options.folder.mkdir(parents=True, exist_ok=True)
    of, began = language(int(options.words), rng), time.perf_counter()
    with (
        open(options.folder / "text.source", "w", encoding="ascii") as source_file,
        open(options.folder / "text.target", "w", encoding="ascii") as target_file,
        open(options.folder / "gold.links", "w", encoding="ascii") as gold_file,
    ):
        for begin in range(0, n_pairs, BLOCK):
            n = min(BLOCK, n_pairs - begin)
            n_source, n_target, source, target, links = drawn(of, n, options.length, rng)
            for file, spelling, tokens, lengths in (
                (source_file, of.source_words, source, n_source),
                (target_file, of.target_words, target, n_target),
            ):
                words, ends = spelling[tokens].tolist(), np.cumsum(lengths).tolist()
                spans = zip([0, *ends], ends, strict=False)
                file.write("".join(" ".join(words[first:last]) + "\n" for first, last in spans))
            ends = np.cumsum(n_target)[: max(min(GOLD - begin, n), 0)].tolist()
            for first, last in zip([0, *ends], ends, strict=False):
                linked = enumerate(links[first:last].tolist())
                gold_file.write(" ".join(f"{i}-{j}" for j, i in linked if i >= 0) + "\n")
    print(f"{n_pairs:,} sentence pairs in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
