"""Word alignment by enumeration: sums over all alignments of one sentence pair in one direction."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np


def bucket_of(n_buckets: int, origin: int, goal: int, n_positions: int, has_ends: bool) -> int:
    """Return the bucket of a jump from `origin`, −1 for the start, to `goal`, `n_positions` for the end."""
    if not has_ends:
        reach = n_buckets // 2
        return int(np.clip(goal - origin, -reach, reach)) + reach
    reach = (n_buckets - 2) // 4
    names: list[Any] = list(range(-reach, reach + 1))
    names += [("start", width) for width in range(1, reach + 1)]
    names += [("end", width) for width in range(1, reach + 1)] + ["empty"]
    width = goal - origin
    if origin < 0:
        return names.index("empty" if goal == n_positions else ("start", min(width, reach)))
    return names.index(("end", min(width, reach)) if goal == n_positions else int(np.clip(width, -reach, reach)))


def jump_probability(jumps: Any, origin: int, goal: int, n_positions: int, has_ends: bool) -> float:
    """Return the probability of a jump among all those that are possible from `origin`."""
    goals = range(n_positions + 1 if has_ends else n_positions)
    reach = (len(jumps) - 2) // 4 if has_ends else len(jumps) // 2
    weights = []
    for one in goals:
        place = abs(one - origin) - reach  # among the widths from `reach` on, which share a weight
        is_shared = place >= 0 and not (has_ends and origin < 0 and one == n_positions)
        share = 1 / ((place + 1) * (place + 2)) if is_shared else 1.0
        weights.append(share * jumps[bucket_of(len(jumps), origin, one, n_positions, has_ends)])
    return float(weights[goal] / sum(weights))


def enumerate_alignments(
    weights: Any, null: Any, jumps: Any = None, null_probability: float = 0.0, has_ends: bool = False
) -> tuple[float, Any, Any]:
    """Return the log likelihood, the posterior of each link (words, positions), and the expected jumps of each width.

    `weights` (words, positions) and `null` (words,) are probabilities of the words. Without `jumps` the model is IBM
    model 1; with them, (2 D + 1,), the hidden Markov model, or (4 D + 2,), that with end jumps.
    """
    n_words, n_positions = weights.shape
    links, counts, total = np.zeros(weights.shape), np.zeros(0 if jumps is None else len(jumps)), 0.0
    for alignment in itertools.product(range(-1, n_positions), repeat=n_words):
        joint, last, seen = 1.0, -1, np.zeros_like(counts)
        for word, position in enumerate(alignment):
            joint *= null[word] if position < 0 else weights[word, position]
            if jumps is None:
                joint /= n_positions + 1
            elif position < 0:
                joint *= null_probability
            else:
                joint *= (1.0 - null_probability) * jump_probability(jumps, last, position, n_positions, has_ends)
                seen[bucket_of(len(jumps), last, position, n_positions, has_ends)] += 1
                last = position
        if has_ends:
            joint *= (1.0 - null_probability) * jump_probability(jumps, last, n_positions, n_positions, has_ends)
            seen[bucket_of(len(jumps), last, n_positions, n_positions, has_ends)] += 1
        total += joint
        counts += joint * seen
        for word, position in enumerate(alignment):
            if position >= 0:
                links[word, position] += joint
    return float(np.log(total)), links / total, counts / total


def distance_of(word: int, position: int, n_words: int, n_positions: int) -> int:
    """Return the bucket of a cell's distance from the diagonal, one of 40."""
    return int(40 * abs(Fraction(2 * position + 1, 2 * n_positions) - Fraction(2 * word + 1, 2 * n_words)))


def enumerate_diagonal(weights: Any, null: Any, jumps: Any, null_probability: float) -> tuple[float, Any, Any]:
    """Return the same of the diagonal model; `jumps` (40,) are weights of distances from the diagonal."""
    n_words, n_positions = weights.shape
    links, counts, total = np.zeros(weights.shape), np.zeros(len(jumps)), 0.0
    distances = [[distance_of(j, i, n_words, n_positions) for i in range(n_positions)] for j in range(n_words)]
    for alignment in itertools.product(range(-1, n_positions), repeat=n_words):
        joint, seen = 1.0, np.zeros_like(counts)
        for word, position in enumerate(alignment):
            if position < 0:
                joint *= null_probability * null[word]
                continue
            share = jumps[distances[word][position]] / sum(jumps[distance] for distance in distances[word])
            joint *= (1.0 - null_probability) * share * weights[word, position]
            seen[distances[word][position]] += 1
        total += joint
        counts += joint * seen
        for word, position in enumerate(alignment):
            if position >= 0:
                links[word, position] += joint
    return float(np.log(total)), links / total, counts / total


def expected_jumps(q: Any, n_buckets: int, has_ends: bool, without: int | None = None) -> Any:
    """Return expected jumps of each width under independent words, by enumeration.

    `q` (words, positions) are probabilities of links; NULL has the rest. Jumps to the word `without`, and from it or
    past it to the next position, are not counted.
    """
    n_words, n_positions = q.shape
    rows, counts = np.column_stack([q, 1.0 - q.sum(axis=1)]), np.zeros(n_buckets)
    for alignment in itertools.product(range(n_positions + 1), repeat=n_words):
        weight = np.prod([rows[word, position] for word, position in enumerate(alignment)])
        stops = [(-1, -1)] + [(word, i) for word, i in enumerate(alignment) if i < n_positions]
        if has_ends:
            stops.append((n_words, n_positions))
        for (begin, origin), (end, goal) in itertools.pairwise(stops):
            if without is None or not begin <= without <= end:
                counts[bucket_of(n_buckets, origin, goal, n_positions, has_ends)] += weight
    return counts


def expected_weights(
    q: Any, word: int, weights: Any, null: float, jumps: Any, null_probability: float, has_ends: bool
) -> Any:
    """Return the distribution of one word given independent others, (positions + 1,) with NULL last, by enumeration.

    `weights` (positions,) and `null` are probabilities of the word; `jumps` are weights of the widths.
    """
    n_words, n_positions = q.shape
    rows, found = np.column_stack([q, 1.0 - q.sum(axis=1)]), np.zeros(n_positions + 1)

    def onward(origin: int, goal: int | None) -> float:
        if goal is None:
            return 1.0
        return (1.0 - null_probability) * jump_probability(jumps, origin, goal, n_positions, has_ends)

    others = [one for one in range(n_words) if one != word]
    for alignment in itertools.product(range(n_positions + 1), repeat=len(others)):
        weight = np.prod([rows[one, position] for one, position in zip(others, alignment, strict=True)])
        linked = [(one, i) for one, i in zip(others, alignment, strict=True) if i < n_positions]
        last = next((i for one, i in reversed(linked) if one < word), -1)
        following = next((i for one, i in linked if one > word), n_positions if has_ends else None)
        for position in range(n_positions):
            joint = onward(last, position) * weights[position] * onward(position, following)
            found[position] += weight * joint
        found[-1] += weight * null_probability * null * onward(last, following)
    return found / found.sum()


def grown_product(posteriors: Any, threshold: float) -> set[tuple[int, int]]:
    """Return the links of `symmetrize="grow-product"`; `posteriors` (I, J) are geometric means of both directions."""
    kept = {(int(i), int(j)) for i, j in np.argwhere(posteriors > threshold)}
    added = set()
    for side, size in enumerate(posteriors.shape):
        for word in range(size):
            if any(link[side] == word for link in kept):
                continue
            beside = [list(link) for link in kept if abs(link[side] - word) == 1]
            for link in beside:
                link[side] = word
            among = [tuple(link) for link in beside if posteriors[tuple(link)] > threshold / 2]
            added |= {max(among, key=lambda link: posteriors[link])} if among else set()
    return kept | added
