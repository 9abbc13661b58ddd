"""Held-out positions: observations hidden during training, on which the model is scored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.data.sequences import Sequences
from subchain.errors import InputError
from subchain.numerics.seeds import seed_sequence


class HoldOut:
    """Positions to hold out of the training data: `model.fit(x, validation=HoldOut(0.05))`.

    The observations at these positions are missing during training; the score is their mean log probability given all
    other observations. For `(N, D)` data whole rows are held out. The data are copied, and every score is a pass over
    all of them; for data larger than memory, give a separate validation set instead.

    Parameters
    ----------
    what : float or array of bool, shape (N,)
        The fraction of positions to draw at random, or a mask of the positions.
    random_state : int
        Seed of the random draw.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import HoldOut, Sequences
    >>> HoldOut(0.4, random_state=1).positions(Sequences(np.arange(5))).size
    2
    """

    def __init__(self, what: float | ArrayLike = 0.05, random_state: int = 0) -> None:
        self.what = what
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"HoldOut({self.what!r}, random_state={self.random_state!r})"

    def positions(self, data: Sequences) -> NDArray[np.int64]:
        """Return the held-out flat positions in increasing order, (n,)."""
        n = data.n_observations
        what = np.asarray(self.what)
        if what.dtype == np.bool_:
            if what.shape != (n,):
                raise InputError(f"HoldOut was given booleans of shape {what.shape}, but there are {n} positions.")
            chosen = np.flatnonzero(what)
        else:
            if what.ndim or what.dtype.kind not in "iuf" or not 0.0 < float(what) < 1.0:
                raise InputError(f"HoldOut needs a fraction between 0 and 1, or {n} booleans, not {self.what!r}.")
            rng = np.random.default_rng(seed_sequence(self.random_state))
            chosen = np.sort(rng.choice(n, max(1, round(float(what) * n)), replace=False, shuffle=False))
        if not len(chosen) or len(chosen) == n:
            raise InputError(
                f"HoldOut would hold out {len(chosen)} of {n} positions; hold out at least one, and leave at least one."
            )
        return chosen

    def take(self, data: Sequences, chosen: NDArray[np.bool_]) -> HoldOut:
        """Return what to hold out of the chosen sequences, (n_sequences,), of `data`."""
        if np.asarray(self.what).dtype != np.bool_:
            return self
        held = np.zeros(data.n_observations, dtype=np.bool_)
        held[self.positions(data)] = True
        return HoldOut(held[np.repeat(chosen, data.lengths)], self.random_state)


def with_missing(data: Sequences, positions: NDArray[np.int64], *, codes: bool) -> Sequences:
    """Return a copy of the data in which the given flat positions are missing.

    If the values are `codes`, integers stay integers, with −1 for missing; otherwise they become floats, with nan.
    """
    values: NDArray[Any] = np.array(data.values)
    if values.dtype.kind == "u" and codes:
        values = values.astype(np.int64)
    if values.dtype.kind != "f" and not codes:
        values = values.astype(np.float64)
    values[positions] = np.nan if values.dtype.kind == "f" else -1
    return Sequences(values, data.offsets, columns=data.columns, names=data.names, vocabulary=data.vocabularies)
