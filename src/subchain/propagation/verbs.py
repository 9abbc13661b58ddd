"""Verbs: functions that kernels ask of what they are given, chosen by its class when a kernel is compiled.

A kernel is written once, for emissions or counts of any kind. What differs between kinds (a table of words, Gaussian
sums, a product of families) is a handful of functions, the *verbs*. Their first argument is a named tuple of arrays, so
that Numba knows its class when it compiles a kernel and puts the right functions into it: nothing is looked up while
the kernel runs.

    @implements(add, PoissonCounts)
    def _add(counts, position, k, amount):
        ...
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import jit
from numba.extending import overload

from subchain.propagation.compiled import FASTMATH, INSIDE

#: Implementations are compiled into the kernels that call them. They never reorder sums, and count no references.
_INLINED = {"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True, "_nrt": False} | INSIDE
_STEP = _INLINED | {"fastmath": FASTMATH}
_STAGE = {"fastmath": FASTMATH, "error_model": "numpy", "_nrt": False} | INSIDE
_TASK = {"fastmath": FASTMATH, "error_model": "numpy"} | INSIDE


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


def task(stub: Callable[..., Any]) -> Any:
    """Declare a verb that is a large step and may allocate."""
    return _declare(_TASK, stub)


def room(stub: Callable[..., Any]) -> Any:
    """Declare a verb that makes the tables which a visit works in."""
    return _declare(_TASK, stub)


def implements(declared: Any, kind: type | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the implementation of a verb for a class of counts; for all others if it is None."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        declared.known[kind] = function
        return function

    return register


def kernel_for(kernel: Any, counts: Any) -> Any:
    """Return a kernel to call with such counts: itself, or a twin that Numba does not keep on disk.

    Numba does not notice that a function which was compiled into a kernel has changed. The package's own files are part
    of what kept kernels must agree with (`numerics.kernel_cache`); a family of the user's own may change unnoticed.
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
