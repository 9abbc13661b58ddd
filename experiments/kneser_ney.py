"""N-gram language models with interpolated modified Kneser-Ney smoothing.

(Chen & Goodman, An Empirical Study of Smoothing Techniques for Language Modeling, 1998, section 3 and equation 26 with
three discounts for each order.) With context h and the context h' without its first word,

    p(w | h) = max(c(h w) − D(c(h w)), 0) / c(h ·) + γ(h) p(w | h'),

where γ(h) is what the discounts have left, and the words of no context are interpolated with 1 / W. Counts c are
numbers of occurrences for the highest order, and numbers of different words before the n-gram for the others, unless
the n-gram begins a sentence. A sentence has one begin symbol, which is never predicted; what ends sentences is a word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Discounts where too few n-grams occur once to four times to estimate them.
USUAL = (0.5, 1.0, 1.5)


class Order(NamedTuple):
    """The n-grams of one order.

    Attributes
    ----------
    keys : (n,) rising; the number of the context among the n-grams of the order below, times W + 1, plus the word
    share : (n,) discounted counts over the counts of their contexts
    left : (contexts,) γ of each context; 1 where it was never followed
    """

    keys: Index
    share: Array
    left: Array


class KneserNey:
    """An n-gram model of sentences of codes.

    Parameters
    ----------
    text : Sequences
        One column of codes; every sequence is a sentence, with the word that ends it.
    n_words : int
        Size of the vocabulary, W.
    order : int
        Longest n-grams.

    Examples
    --------
    >>> text = Sequences(np.array([0, 1, 2, 0, 2]), [0, 3, 5])
    >>> model = KneserNey(text, 3, order=2)
    >>> round(model.perplexity(text), 3)
    1.795
    """

    def __init__(self, text: Sequences, n_words: int, order: int = 5) -> None:
        self.n_words = n_words
        tokens, places = _padded(text, n_words)
        numbers = [np.where(places >= 0, tokens, -1)]
        keys: list[Index] = [np.arange(n_words + 1)]
        counts, firsts = [np.bincount(tokens[places > 0], minlength=n_words + 1)], [np.empty(0, dtype=np.int64)]
        for size in range(2, order + 1):
            here = np.flatnonzero(places >= size - 1)
            joined = numbers[-1][here - 1] * (n_words + 1) + tokens[here]
            found, first, inverse, count = np.unique(joined, return_index=True, return_inverse=True, return_counts=True)
            number = np.full(len(tokens), -1)
            number[here] = inverse
            numbers.append(number)
            keys.append(found)
            counts.append(count)
            firsts.append(here[first])
        self.orders = []
        for size in range(1, order + 1):
            count = counts[size - 1]
            if size < order:
                count = _continuations(count, numbers[size - 1], firsts[size], places, size)
            context = keys[size - 1] // (n_words + 1) if size > 1 else np.zeros(n_words + 1, dtype=np.int64)
            n_contexts = len(keys[size - 2]) if size > 1 else 1
            self.orders.append(_order(keys[size - 1], count, context, n_contexts))

    @property
    def n_parameters(self) -> int:
        """Number of n-grams of all orders that have a count."""
        return sum(int(np.count_nonzero(order.share)) for order in self.orders)

    def probabilities(self, text: Sequences) -> Array:
        """Return the probability of each word given the words before it in its sentence, (N,)."""
        tokens, places = _padded(text, self.n_words)
        found = np.full(len(tokens), 1.0 / self.n_words)
        context = np.zeros(len(tokens), dtype=np.int64)
        for size, order in enumerate(self.orders, start=1):
            known = context >= 0
            key = tokens if size == 1 else context * (self.n_words + 1) + tokens
            at = np.minimum(np.searchsorted(order.keys, key), len(order.keys) - 1)
            is_seen = known & (order.keys[at] == key)
            found[known] *= order.left[context[known]]
            found[is_seen] += order.share[at[is_seen]]
            number = np.where(is_seen, at, -1)
            context = np.full(len(tokens), -1)
            context[1:] = np.where(places[1:] >= size, number[:-1], -1)
        return found[places > 0]

    def perplexity(self, text: Sequences) -> float:
        """Return exp of the mean negative log probability of a word; words that end sentences count like others."""
        return float(np.exp(-np.log(self.probabilities(text)).mean()))


def _padded(text: Sequences, n_words: int) -> tuple[Index, Index]:
    """Return the words with a begin symbol before each sentence, and the place of each in its sentence, from 0."""
    lengths = text.lengths + 1
    begins = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) - np.repeat(begins, lengths)
    tokens = np.full(len(places), n_words, dtype=np.int64)
    tokens[places > 0] = np.asarray(text.values).reshape(-1)
    return tokens, places


def _continuations(counts: Index, number: Index, longer: Index, places: Index, size: int) -> Index:
    """Return the number of different words before each n-gram; of those that begin sentences the occurrences.

    `longer` are the first places of each n-gram that is one word longer.
    """
    found = np.bincount(number[longer], minlength=len(counts))
    at = np.flatnonzero(places == size - 1)
    begins = np.zeros(len(counts), dtype=np.bool_)
    begins[number[at][number[at] >= 0]] = size > 1
    return np.where(begins, counts, found)


def _order(keys: Index, counts: Index, context: Index, n_contexts: int) -> Order:
    """Return one order with discounts estimated from its counts."""
    discount = np.array([0.0, *_discounts(counts)])[np.minimum(counts, 3)]
    total = np.bincount(context, counts, minlength=n_contexts)
    left = np.bincount(context, discount, minlength=n_contexts)
    whole = np.where(total > 0.0, total, 1.0)
    share = (counts - discount) / whole[context]
    return Order(keys, share, np.where(total > 0.0, left / whole, 1.0))


def _discounts(counts: Index) -> tuple[float, float, float]:
    """Return the discounts of n-grams that are counted once, twice, and three times or more."""
    one, two, three, four = (int(np.count_nonzero(counts == n)) for n in range(1, 5))
    if not (one and two and three):
        return USUAL
    common = one / (one + 2.0 * two)
    found = (1.0 - 2.0 * common * two / one, 2.0 - 3.0 * common * three / two, 3.0 - 4.0 * common * four / three)
    return found if min(found) >= 0.0 else USUAL
