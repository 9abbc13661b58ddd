"""*Alice* in chunks of 200 characters, some of them held out, and what models of it have in common.

The sizes of the split are those of Zhang, Gultekin & Paisley (2016), 126 of 663 chunks held out; which ones, they do
not say: here they are drawn once and for all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.hierarchies import Concentrations
from subchain import Categorical
from subchain.data import Sequences
from subchain.datasets import load_alice

SPLIT = 0
SHARE = 126 / 663
LETTERS = 27
#: Concentrations of rows and top level; that of a finite model's transitions, divided among its states.
SETTINGS, TRANSITIONS = Concentrations(3.0, 5.0), 5.0


class Chunks(NamedTuple):
    """Chunks to learn from, and held-out ones."""

    train: Sequences
    test: Sequences


def letters() -> Categorical:
    """The prior of the letters."""
    return Categorical(1.0 / LETTERS, n_categories=LETTERS)


def whole_book() -> Chunks:
    """All chapters together."""
    data = load_alice().observations
    return _split(data, np.arange(len(data)))


def chapter(number: int) -> Chunks:
    """One chapter alone, counted from 1."""
    book = load_alice()
    return _split(book.observations, np.flatnonzero(book.chapters == number - 1))


def _split(data: Sequences, chunks: NDArray[np.int64]) -> Chunks:
    order = np.random.default_rng(SPLIT).permutation(chunks)
    n_test = round(SHARE * len(chunks))
    return Chunks(data[np.sort(order[n_test:])], data[np.sort(order[:n_test])])
