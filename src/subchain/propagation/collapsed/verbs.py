"""Verbs that kernels of collapsed inference ask of counts; see `propagation.verbs`.

A family of emissions has to implement `add` and `weigh`; everything else follows from these two. Verbs with an
implementation of their own for a kind of counts are there for speed.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from subchain.numerics.vectors import load
from subchain.propagation.compiled import ordered_part
from subchain.propagation.verbs import implements, verb

#: Logarithm of the smallest double above zero, and that double: what is possible stays so, however improbable.
LEAST_LOG, LEAST = -745.0, 5e-324


@ordered_part
def scaled_exponential(log, top):
    """exp(log − top), which is zero for log = −inf alone."""
    return max(np.exp(max(log - top, LEAST_LOG)), LEAST) if log > -np.inf else 0.0


# ---- what a family has to say ----------------------------------------------------------------------------------------


@verb
def add(counts, position, k, amount):
    """Count the observation at a position `amount` times for state k; a negative amount takes it out."""
    raise NotImplementedError


@verb
def weigh(counts, position, k):
    """Return the predictive weight of an observation in state k as (factor, log): the weight is factor · exp(log).

    Tables have factors and densities have logarithms; the other one is constant and costs nothing.
    """
    raise NotImplementedError


@verb
def has_logs(counts):
    """Whether the logarithms of weights are to be looked at; known when a kernel is compiled."""


@implements(has_logs)
def _has_logs(counts):
    return True


# ---- all states of neighbouring positions ----------------------------------------------------------------------------


@verb
def add_rows(counts, first, last, table, at, gain):
    """Count observations `first` … `last` − 1 by the amounts in rows `at`, `at` + 1, … of a table, times `gain`."""


@implements(add_rows)
def _add_rows(counts, first, last, table, at, gain):
    for position in range(first, last):
        row = at + position - first
        for k in range(table.shape[1]):
            if table[row, k] != 0.0:
                add(counts, position, k, gain * table[row, k])


@verb
def weigh_rows(counts, first, last, n_states, out):
    """Write predictive weights of observations in all states into rows of a table; return the log of their scale."""


@implements(weigh_rows)
def _weigh_rows(counts, first, last, n_states, out):
    log_scale = 0.0
    for position in range(first, last):
        row, top = position - first, -np.inf
        for k in range(n_states):
            factor, log = weigh(counts, position, k)
            out[row, k] = log + np.log(factor)
            top = max(top, out[row, k])
        for k in range(n_states):
            out[row, k] = scaled_exponential(out[row, k], top)
        log_scale += top if top > -np.inf else 0.0
    return log_scale


# ---- one position whose state is drawn -------------------------------------------------------------------------------


@verb
def locate(counts, position):
    """Return where the observation at a position is found, for the verbs below."""


@implements(locate)
def _locate(counts, position):
    return position


@verb
def depart(counts, seen, old):
    """Take the observation out of its state, or leave that to the verbs that weigh it."""


@implements(depart)
def _depart(counts, seen, old):
    add(counts, seen, old, -1.0)


@verb
def weigh_apart(counts, seen, k, old):
    """Return the weight of an observation that has departed from state `old`, as `weigh` does."""


@implements(weigh_apart)
def _weigh_apart(counts, seen, k, old):
    return weigh(counts, seen, k)


@verb
def fill(counts, position, n_states, room):
    """Prepare to weigh the observation in all states: row 0 of `room` gets the weights, in any scale."""


@implements(fill)
def _fill(counts, position, n_states, room):
    weigh_rows(counts, position, position + 1, n_states, room)


@verb
def weigh_vector(counts, seen, column, room):
    """Return the weights of `WIDTH` states from `column` on as a vector, as if the observation were in none of them."""


@implements(weigh_vector)
def _weigh_vector(counts, seen, column, room):
    return load(room, 0, column, None)


@verb
def weigh_scaled(counts, seen, k, old, room):
    """Return the weight of state k in the scale of `weigh_vector`, the observation having departed from `old`."""


@implements(weigh_scaled)
def _weigh_scaled(counts, seen, k, old, room):
    return room[0, k]


@verb
def arrive(counts, seen, old, new):
    """Count an observation that has departed from `old` for its new state."""


@implements(arrive)
def _arrive(counts, seen, old, new):
    add(counts, seen, new, 1.0)
