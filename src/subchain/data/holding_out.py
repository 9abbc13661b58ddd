"""Single positions that a model does not see while it learns, to find out what it would have said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.data.sequences import Sequences
from subchain.errors import InputError
from subchain.numerics.seeds import seed_sequence


class HoldOut:
    """Positions to hold out of the training data: `model.fit(x, validation=HoldOut(0.05))`.

    What was observed there counts as missing while the model learns; the score is the mean log probability of it, given
    everything else. For `(N, D)` data whole rows are held out. The data are copied, and every score is a pass over all
    of them: for a file bigger than memory give validation data of their own.

    Parameters
    ----------
    what : float or array of bool, shape (N,)
        The share of positions, which are then drawn at random, or which ones.
    random_state : int
        Seed of the draw.

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
        """Flat positions, rising."""
        n = data.n_observations
        what = np.asarray(self.what)
        if what.dtype == np.bool_:
            if what.shape != (n,):
                raise InputError(f"HoldOut was given {what.shape} booleans, but there are {n} positions.")
            chosen = np.flatnonzero(what)
        else:
            if what.ndim or what.dtype.kind not in "iuf" or not 0.0 < float(what) < 1.0:
                raise InputError(f"HoldOut needs a share between 0 and 1, or {n} booleans, not {self.what!r}.")
            rng = np.random.default_rng(seed_sequence(self.random_state))
            chosen = np.sort(rng.choice(n, max(1, round(float(what) * n)), replace=False, shuffle=False))
        if not len(chosen) or len(chosen) == n:
            raise InputError(f"HoldOut holds {len(chosen)} of {n} positions; it takes some, and has to leave some.")
        return chosen


def without(data: Sequences, positions: NDArray[np.int64], *, codes: bool) -> Sequences:
    """A copy of the data in which the given positions are missing.

    With `codes` integers stay integers, of which −1 means missing; else they become floating numbers.
    """
    values: NDArray[Any] = np.array(data.values)
    if values.dtype.kind == "u" and codes:
        values = values.astype(np.int64)
    if values.dtype.kind != "f" and not codes:
        values = values.astype(np.float64)
    values[positions] = np.nan if values.dtype.kind == "f" else -1
    return Sequences(values, data.offsets, columns=data.columns, names=data.names, vocabulary=data.vocabularies)
