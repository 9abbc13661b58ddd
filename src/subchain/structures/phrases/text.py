"""Sentences as edges: which spans of them are terminals of a grammar, and which spans no phrase may cross."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.phrases.charts import Text
from subchain.structures.phrases.rules import RuleSet, Tokens

Index = NDArray[np.int64]
Spans = Sequence[tuple[int, int]]


def edges_of(sentences: Sequence[Tokens], rules: RuleSet, brackets: Sequence[Spans] | None = None) -> Text:
    """Return sentences with the terminals that they can be made of; tokens that are no terminals have no edges."""
    codes = rules.codes
    longest = max(map(len, rules.terminals), default=1)
    edges: list[tuple[int, int, int]] = []
    ends: list[int] = []
    for sentence in sentences:
        if longest == 1:
            found = [codes.get((token,)) for token in sentence]
            edges += [(i, i + 1, code) for i, code in enumerate(found) if code is not None]
        else:
            for i in range(len(sentence)):
                for j in range(i + 1, min(i + longest, len(sentence)) + 1):
                    code = codes.get(sentence[i:j])
                    if code is not None:
                        edges.append((i, j, code))
        ends.append(len(edges))
    table = np.array(edges, dtype=np.int32).reshape(-1, 3)
    given = [[] for _ in sentences] if brackets is None else [list(spans) for spans in brackets]
    spans = np.array([span for own in given for span in own], dtype=np.int32).reshape(-1, 2)
    return Text(
        starts_of([len(sentence) for sentence in sentences]), np.array([0, *ends], dtype=np.int64),
        np.zeros(len(sentences) + 1, dtype=np.int64), starts_of([len(own) for own in given]), table, spans,
    )  # fmt: skip


def starts_of(lengths: Sequence[int] | Index) -> Index:
    """Return where items of these lengths begin, one after the other, (n + 1,)."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)
