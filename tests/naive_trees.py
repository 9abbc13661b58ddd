"""The dependency model with valence by enumeration of all projective trees, and as a grammar in Chomsky normal form.

A tree is the tuple of heads of the words of a sentence, -1 for the root.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

LEFT, RIGHT = 0, 1
STOP, GO_ON = 0, 1


class Rules(NamedTuple):
    """root (T,), stop (T, 2 sides, 2 has a dependent, 2 stop or go on), attach (T heads, 2 sides, T dependents)."""

    root: Any
    stop: Any
    attach: Any


def is_projective_tree(heads: tuple[int, ...]) -> bool:
    """Return whether heads form one tree over all words, without crossing arcs."""
    n = len(heads)
    if sum(head == -1 for head in heads) != 1 or any(head == word for word, head in enumerate(heads)):
        return False

    def ancestors(word: int) -> set[int]:
        found: set[int] = set()
        while word >= 0 and word not in found:
            found.add(word)
            word = heads[word]
        return found

    if any(not any(heads[a] == -1 for a in ancestors(word)) for word in range(n)):
        return False
    for word, head in enumerate(heads):
        if head >= 0 and any(head not in ancestors(between) for between in range(min(word, head), max(word, head))):
            return False
    return True


def trees(n: int) -> list[tuple[int, ...]]:
    """Return all projective trees over n words with one root."""
    return [heads for heads in itertools.product(range(-1, n), repeat=n) if is_projective_tree(heads)]


def count_tree(tags: list[int], heads: tuple[int, ...], n_tags: int) -> Rules:
    """Return how often a tree uses each rule."""
    counts = Rules(np.zeros(n_tags), np.zeros((n_tags, 2, 2, 2)), np.zeros((n_tags, 2, n_tags)))
    for word, head in enumerate(heads):
        if head == -1:
            counts.root[tags[word]] += 1
        children = [child for child, of in enumerate(heads) if of == word]
        for side, own in ((LEFT, [c for c in children if c < word]), (RIGHT, [c for c in children if c > word])):
            for number, child in enumerate(own):
                counts.stop[tags[word], side, int(number > 0), GO_ON] += 1
                counts.attach[tags[word], side, tags[child]] += 1
            counts.stop[tags[word], side, int(len(own) > 0), STOP] += 1
    return counts


def probability(tags: list[int], heads: tuple[int, ...], rules: Rules) -> float:
    """Return the probability of a tree and its words."""
    counts = count_tree(tags, heads, len(rules.root))
    return float(np.prod([np.prod(weight**count) for weight, count in zip(rules, counts, strict=True)]))


class Enumerated(NamedTuple):
    """Likelihood, expected counts, posterior of each arc (n, n) with roots on the diagonal, best tree, entropy."""

    likelihood: float
    counts: Rules
    arcs: Any
    best: tuple[int, ...]
    best_probability: float
    entropy: float
    posterior: dict[tuple[int, ...], float]


def enumerate_trees(tags: list[int], rules: Rules) -> Enumerated:
    """Return everything about one sentence, from all of its trees."""
    joint = {heads: probability(tags, heads, rules) for heads in trees(len(tags))}
    total = sum(joint.values())
    posterior = {heads: p / total for heads, p in joint.items()}
    n_tags, n = len(rules.root), len(tags)
    counts = Rules(*(np.zeros_like(table) for table in rules))
    arcs = np.zeros((n, n))
    for heads, p in posterior.items():
        for table, own in zip(counts, count_tree(tags, heads, n_tags), strict=True):
            table += p * own
        for word, head in enumerate(heads):
            arcs[word if head == -1 else head, word] += p
    best = max(joint, key=lambda heads: joint[heads])
    entropy = -sum(p * np.log(p) for p in posterior.values() if p > 0)
    return Enumerated(total, counts, arcs, best, joint[best], float(entropy), posterior)


# ---- the same model as a grammar in Chomsky normal form --------------------------------------------------------------


def inside_of_grammar(tags: list[int], rules: Rules) -> float:
    """Return the probability of a sentence under the context-free grammar that the model expands into, by naive CKY.

    A word first takes its dependents to the right, from the nearest to the farthest, then those to the left. Symbols
    are (stage, tag, has a dependent on the present side): "R" may take dependents to the right, "L" to the left, "done"
    has stopped on both sides. Stages change by unary rules.
    """
    n, n_tags = len(tags), len(rules.root)
    chart: dict[tuple[int, int], dict[tuple[str, int, int], float]] = {}

    def close(cell: dict[tuple[str, int, int], float]) -> None:
        for tag, has in itertools.product(range(n_tags), range(2)):
            stopped = cell.get(("R", tag, has), 0.0) * rules.stop[tag, RIGHT, has, STOP]
            cell["L", tag, 0] = cell.get(("L", tag, 0), 0.0) + stopped

    def finish(cell: dict[tuple[str, int, int], float]) -> None:
        for tag, has in itertools.product(range(n_tags), range(2)):
            stopped = cell.get(("L", tag, has), 0.0) * rules.stop[tag, LEFT, has, STOP]
            cell["done", tag, 0] = cell.get(("done", tag, 0), 0.0) + stopped

    for start, end in sorted(itertools.combinations(range(n + 1), 2), key=lambda span: span[1] - span[0]):
        cell: dict[tuple[str, int, int], float] = {("R", tags[start], 0): 1.0} if end == start + 1 else {}
        for middle in range(start + 1, end):
            first, second = chart[start, middle], chart[middle, end]
            for head, child, has in itertools.product(range(n_tags), range(n_tags), range(2)):
                right = first.get(("R", head, has), 0.0) * second.get(("done", child, 0), 0.0)
                right *= rules.stop[head, RIGHT, has, GO_ON] * rules.attach[head, RIGHT, child]
                cell["R", head, 1] = cell.get(("R", head, 1), 0.0) + right
                left = first.get(("done", child, 0), 0.0) * second.get(("L", head, has), 0.0)
                left *= rules.stop[head, LEFT, has, GO_ON] * rules.attach[head, LEFT, child]
                cell["L", head, 1] = cell.get(("L", head, 1), 0.0) + left
        close(cell)
        finish(cell)
        chart[start, end] = cell
    return float(sum(rules.root[tag] * chart[0, n].get(("done", tag, 0), 0.0) for tag in range(n_tags)))


def picked(tags: list[int], n_tags: int, is_uniform: bool, preferences: Any = None) -> Rules:
    """Return the expected counts when every word of a sentence picks its head, and is the root with 1 / n."""
    n, expected = len(tags), Rules(np.zeros(n_tags), np.zeros((n_tags, 2, 2, 2)), np.zeros((n_tags, 2, n_tags)))
    arcs = np.zeros((n, n))
    for word in range(n):
        for head in range(n):
            if head != word:
                arcs[head, word] = 1.0 if is_uniform else 1.0 / abs(head - word)
                if preferences is not None:
                    arcs[head, word] *= preferences[RIGHT if word > head else LEFT, tags[head], tags[word]]
        if n > 1:
            arcs[:, word] *= (1.0 - 1.0 / n) / arcs[:, word].sum()
    for head in range(n):
        expected.root[tags[head]] += 1.0 / n
        for side, words in ((LEFT, range(head)), (RIGHT, range(head + 1, n))):
            none, number = np.prod([1.0 - arcs[head, word] for word in words]), sum(arcs[head, word] for word in words)
            for word in words:
                expected.attach[tags[head], side, tags[word]] += arcs[head, word]
            expected.stop[tags[head], side] += [[none, 1.0 - none], [1.0 - none, number - (1.0 - none)]]
    return expected
