"""The n-gram model of the experiments, against its equations written out, and against numbers made by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from experiments.kneser_ney import USUAL, KneserNey
from subchain.data import Sequences

BEGIN = "begin"


def sentences(seed: int, n: int, n_words: int = 4) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(n_words, 0.5), n_words)
    found = []
    for _ in range(n):
        words = [int(rng.integers(n_words))]
        while words[-1] != n_words - 1 and len(words) < 9:
            words.append(int(rng.choice(n_words, p=law[words[-1]])))
        found.append(words)
    return found


def as_text(lines: list[list[int]]) -> Sequences:
    return Sequences(np.concatenate(lines), np.concatenate(([0], np.cumsum([len(line) for line in lines]))))


class Slow:
    """The same by dictionaries."""

    def __init__(self, lines: list[list[int]], n_words: int, order: int) -> None:
        self.n_words, self.order = n_words, order
        padded = [[BEGIN, *line] for line in lines]
        raw = [
            Counter(tuple(line[end - size : end]) for line in padded for end in range(max(size, 2), len(line) + 1))
            for size in range(1, order + 1)
        ]
        self.counts: list[Any] = []
        for size in range(1, order + 1):
            if size == order:
                self.counts.append(dict(raw[-1]))
                continue
            before = defaultdict(set)
            for gram in raw[size]:
                before[gram[1:]].add(gram[0])
            self.counts.append({
                gram: raw[size - 1][gram] if gram[0] == BEGIN else len(before[gram]) for gram in raw[size - 1]
            })  # fmt: skip
        self.discounts = [self._discounts(list(counts.values())) for counts in self.counts]

    @staticmethod
    def _discounts(values: list[int]) -> tuple[float, ...]:
        one, two, three, four = (values.count(n) for n in range(1, 5))
        if not (one and two and three):
            return USUAL
        y = one / (one + 2 * two)
        found = (1 - 2 * y * two / one, 2 - 3 * y * three / two, 3 - 4 * y * four / three)
        return found if min(found) >= 0 else USUAL

    def probability(self, word: int, context: tuple[Any, ...]) -> float:
        context = context[max(len(context) - self.order + 1, 0) :]
        counts, discounts = self.counts[len(context)], self.discounts[len(context)]
        lower = self.probability(word, context[1:]) if context else 1.0 / self.n_words
        following = {gram: count for gram, count in counts.items() if gram[:-1] == context and count}
        total = sum(following.values())
        if not total:
            return lower
        left = sum(discounts[min(count, 3) - 1] for count in following.values()) / total
        count = counts.get((*context, word), 0)
        own = (count - discounts[min(count, 3) - 1]) / total if count else 0.0
        return own + left * lower


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [3, 60])
def test_probabilities_are_those_of_the_equations(order: int, n: int) -> None:
    lines, others = sentences(0, n), sentences(1, 15)
    model, slow = KneserNey(as_text(lines), 4, order), Slow(lines, 4, order)
    expected = [slow.probability(line[at], (BEGIN, *line[:at])) for line in others for at in range(len(line))]
    np.testing.assert_allclose(model.probabilities(as_text(others)), expected, rtol=1e-12)
    assert np.isclose(model.perplexity(as_text(others)), np.exp(-np.log(expected).mean()), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 3, 5])
def test_probabilities_of_all_words_sum_to_one(order: int) -> None:
    model = KneserNey(as_text(sentences(0, 40)), 4, order)
    for before in ([], [0], [1, 1], [2, 0, 1, 0], [0, 0, 0, 0, 0, 0]):
        last = [model.probabilities(as_text([[*before, word]]))[-1] for word in range(4)]
        assert np.isclose(sum(last), 1.0, rtol=1e-12)


def test_a_bigram_model_that_was_made_by_hand() -> None:
    """Sentences "a b ." and "a ."; discounts are 0.5 for one and 1 for two, since no bigram occurs three times.

    Words follow different words: a one (begin), b one, "." two, which is four in all. By discounts, 0.5, 0.5 and 1 of
    these, a half, is left for the uniform distribution: p(a) = 0.5/4 + 1/2 · 1/3 = 7/24 = p(b), and
    p(.) = 1/4 + 1/6 = 10/24. Behind a, b and "." occur once each, so that half of it is left:
    p(. | a) = 0.5/2 + 1/2 · 10/24 = 11/24. Behind the begin a occurs twice: p(a | begin) = 1/2 + 1/2 · 7/24. Behind b,
    "." occurs once: p(. | b) = 1/2 + 1/2 · 10/24.
    """
    model = KneserNey(as_text([[0, 1, 2], [0, 2]]), 3, order=2)
    found = model.probabilities(as_text([[0, 1, 2], [0, 2]]))
    np.testing.assert_allclose(found, [31 / 48, 0.25 + 7 / 48, 17 / 24, 31 / 48, 11 / 24], rtol=1e-12)
