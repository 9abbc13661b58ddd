"""Text cut into the stretches of updates: pieces of streams, with marginals carried on, or whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from subchain.neural.chain import Stretch

Index = NDArray[np.int64]


class Text(NamedTuple):
    """Words one after the other, and where chains begin.

    Attributes
    ----------
    words : (N,) codes
    begins : (N,) of bool, where the state is drawn from the distribution of first states
    """

    words: Index
    begins: NDArray[np.bool_]

    @classmethod
    def of(cls, words: Index, offsets: Index, *, joined: bool) -> Text:
        """Return sequences as text: one chain if `joined`, else a chain for each."""
        begins = np.zeros(len(words), dtype=np.bool_)
        starts = offsets[:-1][np.diff(offsets) > 0]
        begins[starts[:1] if joined else starts] = True
        return cls(words.astype(np.int64), begins)

    def chains(self) -> Index:
        """Return where chains begin and end, (C + 1,)."""
        return np.append(np.flatnonzero(self.begins), len(self.words))


class Batch(NamedTuple):
    """One stretch for each stream, and whether it continues the batch before."""

    stretch: Stretch
    continues: bool


def pieces(text: Text, n_streams: int, length: int, device: torch.device) -> list[Batch]:
    """Return the text in streams, cut into pieces of a length; each batch continues the one before.

    Streams begin where chains begin, as near as possible to equal parts of the text. A text that is one chain is cut
    anywhere, and streams begin with first states.
    """
    edges = _edges(text, n_streams)
    longest = int(np.diff(edges).max(initial=0))
    width = -(-longest // length) * length
    places = edges[:-1, None] + np.arange(width)
    known: NDArray[np.bool_] = np.asarray(places < edges[1:, None])
    places = np.where(known, places, 0)
    resets: NDArray[np.bool_] = np.asarray(text.begins[places] & known)
    resets[:, 0] |= known[:, 0]
    whole = _stretch(text, places, resets, known, device)
    full: NDArray[np.bool_] = np.asarray(known.all(axis=0))
    found = []
    for at in range(0, width, length):
        piece = whole.between(at, at + length)._replace(is_full=bool(full[at : at + length].all()))
        found.append(Batch(piece, at > 0))
    return found


def _edges(text: Text, n_streams: int) -> Index:
    """Return where streams begin and end, (n + 1,)."""
    n = len(text.words)
    targets = np.linspace(0, n, max(1, min(n_streams, n)) + 1)
    chains = text.chains()
    if len(chains) <= 2:
        return np.unique(targets.astype(np.int64))
    nearest = np.clip(np.searchsorted(chains, targets), 1, len(chains) - 1)
    lower = chains[nearest - 1]
    return np.unique(np.where(targets - lower < chains[nearest] - targets, lower, chains[nearest]))


def sentences(text: Text, size: int, device: torch.device, order: Index | None = None) -> Iterator[Batch]:
    """Yield batches of whole chains of similar lengths with about `size` words each, in an order of the batches."""
    groups = sentence_groups(text, size)
    for number in range(len(groups)) if order is None else order:
        yield Batch(of_chains(text, groups[number], device), False)


def sentence_groups(text: Text, size: int) -> list[Index]:
    """Return the chains of each batch: sorted by length, at most `size` words with the padding, at least one chain."""
    lengths = np.diff(text.chains())
    order = np.argsort(lengths, kind="stable")
    groups: list[Index] = []
    first = 0
    for place in range(1, len(order) + 1):
        if place == len(order) or (place + 1 - first) * lengths[order[place]] > size:
            groups.append(order[first:place])
            first = place
    return groups


def of_chains(text: Text, chosen: Index, device: torch.device) -> Stretch:
    """Return whole chains side by side."""
    chains = text.chains()
    starts, lengths = chains[chosen], np.diff(chains)[chosen]
    columns = np.arange(lengths.max(initial=0))
    known = columns < lengths[:, None]
    places = np.where(known, starts[:, None] + columns, 0)
    return _stretch(text, places, known & (columns == 0), known, device)


def _stretch(
    text: Text, places: Index, resets: NDArray[np.bool_], known: NDArray[np.bool_], device: torch.device
) -> Stretch:
    tables = (text.words[places], resets, known)
    words, begins, there = (torch.from_numpy(np.ascontiguousarray(table)).to(device) for table in tables)
    return Stretch(words, begins, there, bool(known.all()))
