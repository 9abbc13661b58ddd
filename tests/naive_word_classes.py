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


def merged(sequences: Any, order: Any, n_classes: int) -> list[int]:
    """Let words come one by one, and merge the two classes that lower F least; every F is computed from scratch."""
    places: list[list[int] | None] = []
    for word in order:
        if None in places:
            places[places.index(None)] = [int(word)]
        else:
            places.append([int(word)])
        if len(places) <= n_classes:
            continue
        best, least = (0, 0), math.inf
        now = class_terms(sequences, places)
        for x, y in itertools.combinations(range(len(places)), 2):
            joined = [*places]
            joined[x], joined[y] = [*(places[x] or ()), *(places[y] or ())], None
            loss = now - class_terms(sequences, joined)
            if loss < least - 1e-7:
                best, least = (x, y), loss
        x, y = best
        places[x], places[y] = [*(places[x] or ()), *(places[y] or ())], None
    kept = [members for members in places if members is not None]
    return [next(number for number, members in enumerate(kept) if word in members) for word in sorted(order)]


def class_terms(sequences: Any, places: Any) -> float:
    """Return F of the classes in places; sums of classes have bigrams with words of no class, too."""
    of = {word: place for place, members in enumerate(places) for word in members or ()}
    pairs: Counter[tuple[int, int]] = Counter()
    first: Counter[int] = Counter()
    second: Counter[int] = Counter()
    for sequence in sequences:
        for a, b in itertools.pairwise(sequence):
            if a < 0 or b < 0:
                continue
            if a in of:
                first[of[a]] += 1
            if b in of:
                second[of[b]] += 1
            if a in of and b in of:
                pairs[of[a], of[b]] += 1
    return sum(n * math.log(n) for n in pairs.values()) - sum(
        n * math.log(n) for sums in (first, second) for n in sums.values()
    )
