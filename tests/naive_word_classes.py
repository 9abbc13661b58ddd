"""Classes of words by brute force: mutual information from all bigrams, and the best class of one word at a time."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any


def class_information(sequences: Any, classes: Any) -> float:
    """Return the number of bigrams times the mutual information of the classes of neighbouring symbols."""
    pairs = Counter(
        (int(classes[a]), int(classes[b]))
        for sequence in sequences
        for a, b in itertools.pairwise(sequence)
        if a >= 0 and b >= 0
    )
    first: Counter[int] = Counter()
    second: Counter[int] = Counter()
    for (a, b), n in pairs.items():
        first[a] += n
        second[b] += n
    total = sum(pairs.values())
    return sum(n * math.log(n * total / (first[a] * second[b])) for (a, b), n in pairs.items())


def exchanged(sequences: Any, order: Any, classes: Any, n_classes: int, max_iter: int) -> list[int]:
    """Put one word after the other into the class that raises the information most; stop when none moves."""
    found = [int(of) for of in classes]
    for _ in range(max_iter):
        before = list(found)
        for word in order:
            best, most = found[word], class_information(sequences, found) + 1e-7
            for of in range(n_classes):
                risen = class_information(sequences, [*found[:word], of, *found[word + 1 :]])
                if risen > most:
                    best, most = of, risen
            found[word] = best
        if found == before:
            break
    return found
