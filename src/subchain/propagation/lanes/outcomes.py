"""What a compiled pass does with the messages of a tile, beside sums: fill tables, or draw paths.

A named tuple says which (`Outputs`, `Draws`), and the verb `take` is chosen by its class when the pass is compiled. All
of them have `totals` (n,), the log likelihood of each piece, in the order of the data, and `losses` (n, 4), what each
may have lost to underflow (the fields of `Growth`); (0, 4) where nothing that is lost can matter.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation.backward_sampling import draw, enter
from subchain.propagation.layout import Walks
from subchain.propagation.verbs import implements, task

Array = NDArray[np.float64]


@task
def take(outputs, lanes, a, b, offsets, positions, marginals):
    """Take the smoothed or filtered marginals (K, n) of the lanes `a` to `b`, which are a tile.

    Parameters
    ----------
    outputs : what to do with them
    lanes : `groups.TiledPieces`
    offsets : (steps + 1,) first column of each step
    positions : (n or more,) position of the observation in each column
    marginals : (K, n)
    """


class Outputs(NamedTuple):
    """Tables to fill.

    Attributes
    ----------
    totals, losses : (n,), (n, 4)
    marginals, best : (N, K) and (N,), marginals and most probable states of all positions; those without rows are not
        filled
    """

    totals: Array
    losses: Array
    marginals: Array
    best: NDArray[np.int32]


#: For passes that want sums or log likelihoods alone.
NO_OUTPUTS = Outputs(np.empty(0), np.empty((0, 4)), np.empty((0, 0)), np.empty(0, dtype=np.int32))


@implements(take, Outputs)
def _fill(outputs, lanes, a, b, offsets, positions, marginals):
    n_states, columns = marginals.shape
    if outputs.marginals.shape[0] > 0:
        for column in range(columns):
            for k in range(n_states):
                outputs.marginals[positions[column], k] = marginals[k, column]
    if outputs.best.shape[0] > 0:
        for column in range(columns):
            best = 0
            for k in range(1, n_states):
                best = k if marginals[k, column] > marginals[best, column] else best
            outputs.best[positions[column]] = best


class Draws(NamedTuple):
    """Paths to draw from filtered marginals; see `propagation.backward_sampling`.

    Attributes
    ----------
    totals, losses : (n,), (n, 4)
    key : which random numbers to use
    into : (K, K) the transition matrix, transposed
    states : (n_paths, N) output
    first : (P, n_paths, K) output, the state that enters each piece of a cut sequence, given the state that follows it
    following : (P, n_paths) the state after each piece, −1 where nothing follows; (0, n_paths) where that is not known
        yet: then whole sequences are drawn and `first` is filled, else the pieces of cut sequences are drawn
    """

    totals: Array
    losses: Array
    key: NDArray[np.uint64]
    into: Array
    states: NDArray[np.int32]
    first: NDArray[Any]
    following: NDArray[np.int64]


@implements(take, Draws)
def _draw(outputs, lanes, a, b, offsets, positions, marginals):
    is_known, nothing, columns = outputs.following.shape[0] > 0, np.full(1, -1), np.arange(b - a)
    for lane in range(a, b):
        at, piece, is_whole = lane - a, lanes.pieces[lane], lanes.is_first[lane] and lanes.is_last[lane]
        walk = Walks(lanes.lengths[lane : lane + 1], columns[at : at + 1], offsets, lanes.starts[lane : lane + 1])
        for path in range(outputs.states.shape[0]):
            states = outputs.states[path]
            if is_whole and not is_known:
                draw(marginals, outputs.into, walk, nothing, outputs.key, path, states)
            elif not is_whole and is_known:
                after = outputs.following[piece, path : path + 1]
                draw(marginals, outputs.into, walk, after, outputs.key, path, states)
            elif not is_whole:
                is_last, entries = lanes.is_last[lane : lane + 1], outputs.first[piece : piece + 1, path]
                enter(marginals, outputs.into, walk, is_last, outputs.key, path, entries)
