"""Verbs that kernels of collapsed inference ask of counts, and how they are dispatched.

A kernel is written once, for counts of any kind. What differs between kinds of counts (a table of words, Gaussian sums,
a product of families) is a handful of functions, the *verbs*. Counts are named tuples of arrays, so that Numba knows
their class when it compiles a kernel and puts the right functions into it: nothing is looked up while the kernel runs.

    @implements(add, PoissonCounts)
    def _add(counts, position, k, amount):
        ...

A family of emissions has to implement `add` and `weigh`; everything else follows from these two. Verbs with an
implementation of their own for a kind of counts are there for speed.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import jit
from numba.extending import overload

from subchain.numerics.vectors import load
from subchain.propagation.compiled import FASTMATH, INSIDE, ordered_part

#: Implementations are compiled into the kernels that call them. They never reorder sums, and count no references.
_INLINED = {"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True, "_nrt": False}
_STEP = _INLINED | {"fastmath": FASTMATH}
_STAGE = {"fastmath": FASTMATH, "error_model": "numpy", "_nrt": False} | INSIDE
_ROOM = {"fastmath": FASTMATH, "error_model": "numpy"}

#: Logarithm of the smallest double above zero, and that double: what is possible stays so, however improbable.
LEAST_LOG, LEAST = -745.0, 5e-324


def _declare(options: Any, stub: Callable[..., Any]) -> Any:
    known: dict[type | None, Callable[..., Any]] = {}

    @functools.wraps(stub)
    def dispatch(counts, *arguments):
        """The same without compilation."""
        return known.get(type(counts), known.get(None, stub))(counts, *arguments)

    def choose(counts, *arguments):
        return known.get(getattr(counts, "instance_class", None), known.get(None))

    overload(dispatch, jit_options=options, strict=False)(choose)
    dispatch.known = known  # type: ignore[attr-defined]
    return dispatch


def verb(stub: Callable[..., Any]) -> Any:
    """Declare a verb whose implementations are inlined; they are chosen by the class of the first argument."""
    return _declare(_INLINED, stub)


def step(stub: Callable[..., Any]) -> Any:
    """Declare a verb that is a whole step of a visit: the same, but sums may be reordered."""
    return _declare(_STEP, stub)


def stage(stub: Callable[..., Any]) -> Any:
    """Declare a verb that is a large step: the same, but called instead of inlined, which compiles much faster."""
    return _declare(_STAGE, stub)


def room(stub: Callable[..., Any]) -> Any:
    """Declare a verb that makes the tables which a visit works in."""
    return _declare(_ROOM, stub)


def implements(declared: Any, kind: type | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the implementation of a verb for a class of counts; for all others if it is None."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        declared.known[kind] = function
        return function

    return register


def kernel_for(kernel: Any, counts: Any) -> Any:
    """Return a kernel to call with such counts: itself, or a twin that Numba does not keep on disk.

    Numba does not notice that a function which was compiled into a kernel has changed. Within the package this happens
    with its versions, which bring new files; a family of the user's own may change from run to run.
    """
    if _is_own(counts):
        return kernel
    if kernel not in _TWINS:
        _TWINS[kernel] = jit(**kernel.targetoptions)(kernel.py_func)
    return _TWINS[kernel]


_TWINS: dict[Any, Any] = {}


def _is_own(counts: Any) -> bool:
    """Whether all named tuples that counts are made of are defined in this package."""
    if not isinstance(counts, tuple):
        return True
    return type(counts).__module__.partition(".")[0] == __name__.partition(".")[0] and all(map(_is_own, counts))


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
