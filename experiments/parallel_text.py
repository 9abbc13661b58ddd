"""Parallel text with gold links: the Hansards, and texts of made-up languages whose links are known.

The hand-aligned development and test pairs of the Hansards come first, then training text. Everything is in lower case,
without accents; English is the source. With seed 0 the training text is the beginning of the corpus, with others a
random sample of it.

Made-up languages check that settings do not depend on English and French. Source words are drawn from Zipf's law; each
has a few translations, of which one is frequent. A language says how words are ordered, how many forms they have, and
how many words they become.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from experiments.corpora import data_file
from subchain.alignment import GoldLinks, Links, ParallelText, read_gold, read_parallel
from subchain.metrics.alignment import link_counts, scores_of

Tokens = list[str]


class Corpus(NamedTuple):
    """Text of which the first pairs have gold links: those for development, then those of the test."""

    text: ParallelText
    dev: GoldLinks
    test: GoldLinks

    @property
    def n_dev(self) -> int:
        return len(self.dev.sure)

    @property
    def n_gold(self) -> int:
        return len(self.dev.sure) + len(self.test.sure)


@lru_cache(maxsize=1)
def _training() -> list[tuple[Tokens, Tokens]]:
    text = read_parallel(data_file("hansards", "train.e.xz"), data_file("hansards", "train.f.xz"), lowercase=True)
    return list(text)


def hansards(n_pairs: int, seed: int) -> Corpus:
    """The hand-aligned pairs, and so many pairs of training text: the first ones, or a sample of them."""
    pairs: list[tuple[Tokens, Tokens]] = []
    gold = []
    for name in ("dev37", "test447"):
        files = [data_file("hansards", f"{name}.{side}") for side in "ef"]
        part = read_parallel(files[0], files[1], lowercase=True)
        gold.append(read_gold(data_file("hansards", f"{name}.a"), part, swap=True))  # French comes first
        pairs += part
    training = _training()
    chosen = np.random.default_rng(seed).permutation(len(training)) if seed else np.arange(len(training))
    pairs += [training[number] for number in np.sort(chosen[:n_pairs])]
    return Corpus(ParallelText.from_sentences(*zip(*pairs, strict=True)), *gold)


class Language(NamedTuple):
    """How sentences are translated.

    Attributes
    ----------
    n_words : source words
    n_forms : forms of each translation, of which one is taken at random
    swaps : share of neighbours that are exchanged
    verb_last : whether the second word of every sentence, and of every clause of eight words, goes to the end of it
    doubled : share of source words that become two words
    lost, added : share of source words that are not translated, and of target words that translate nothing
    """

    n_words: int = 4_000
    n_forms: int = 1
    swaps: float = 0.1
    verb_last: bool = False
    doubled: float = 0.0
    lost: float = 0.1
    added: float = 0.1


LANGUAGES = {
    "word by word": Language(),
    "verb last": Language(n_words=2_000, verb_last=True, swaps=0.3),
    "many forms": Language(n_words=4_000, n_forms=8, doubled=0.15, lost=0.15),
    "two for one": Language(n_words=2_000, doubled=0.4),
    "few words": Language(n_words=300, swaps=0.3, lost=0.2, added=0.2),
}
CLAUSE = 8
#: Sentence pairs of a made-up text that have gold links.
N_GOLD = 300


def made_up(language: str, n_pairs: int, seed: int) -> Corpus:
    """A text of a made-up language; its gold pairs are for development, and there are none for a test."""
    rng, how = np.random.default_rng([seed, n_pairs]), LANGUAGES[language]
    share = 1.0 / np.arange(1, how.n_words + 1)
    pairs, gold = [], []
    for _ in range(n_pairs):
        words = rng.choice(how.n_words, size=rng.integers(3, 26), p=share / share.sum())
        target, links = _translated(words, how, rng)
        pairs.append(([f"s{word}" for word in words], target))
        gold.append(np.array(sorted(links), dtype=np.int64).reshape(-1, 2))
    sure = Links.from_pairs(gold[:N_GOLD])
    nothing = Links.from_pairs([])
    return Corpus(
        ParallelText.from_sentences(*zip(*pairs, strict=True)), GoldLinks(sure, sure), GoldLinks(nothing, nothing)
    )


def _translated(words: np.ndarray, how: Language, rng: np.random.Generator) -> tuple[Tokens, set[tuple[int, int]]]:
    """A translation, and the links of its words."""
    order: list[int] = []
    for begin in range(0, len(words), CLAUSE):
        clause = list(range(begin, min(begin + CLAUSE, len(words))))
        if how.verb_last and len(clause) > 2:
            clause.append(clause.pop(1))
        order += clause
    for at in range(len(order) - 1):
        if rng.random() < how.swaps:
            order[at], order[at + 1] = order[at + 1], order[at]
    target: Tokens = []
    links = set()
    for i in order:
        if rng.random() < how.added:
            target.append(f"n{int(20 * rng.random() ** 2)}")
        if rng.random() < how.lost and len(words) > 3:
            continue
        sense = min(int(rng.exponential(0.5)), 3)
        parts = 1 + ((words[i] * 7919) % 1000 < 1000 * how.doubled)
        for part in range(parts):
            links.add((i, len(target)))
            # some senses are shared by several source words
            name = (words[i] * 31 + sense * 977) % (2 * how.n_words)
            target.append(f"t{name}.{part}.{rng.integers(how.n_forms)}")
    return target or ["n0"], links


def error_rate(links: Links, gold: GoldLinks) -> float:
    """Alignment error rate in per cent."""
    return 100.0 * float(scores_of(link_counts(links, *gold).sum(axis=0)).aer)
