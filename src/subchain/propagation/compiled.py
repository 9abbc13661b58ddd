"""How kernels are compiled: without Python's lock, cached on disk, with arithmetic that may be reordered or not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import types
from numba.extending import overload

from subchain.numerics.linking import NO_C, called, linked

#: Rounding may be reordered and fused, but nan and infinity keep their meaning.
FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}

#: For functions that only kernels call: without what Python, or C, would need to call them.
INSIDE = NO_C | {"no_cpython_wrapper": True}

kernel = called(fastmath=FASTMATH, error_model="numpy")
#: A function of a few lines, which the compiler may put into the kernels that call it.
small_kernel = linked(fastmath=FASTMATH, error_model="numpy")
#: A piece of a kernel, compiled into it, so that vectors stay in registers.
part = linked(fastmath=FASTMATH, error_model="numpy", forceinline=True)
#: A piece that is copied into its caller before that is compiled, so that it costs no compilation of its own.
bare_part = njit(nogil=True, fastmath=FASTMATH, error_model="numpy", inline="always")
#: A large piece that allocates nothing and does not depend on the family of emissions: compiled once for all of them,
#: and called. It is given named tuples of arrays, which belong to the kernel, and counts no references to them.
bare_kernel = called(fastmath=FASTMATH, error_model="numpy", _nrt=False, **INSIDE)
#: A function that bare pieces call seldom, and that allocates.
rare = called(fastmath=FASTMATH, error_model="numpy", _nrt=True)

#: Products may be fused with sums, but sums are never reordered: exponentials and logarithms would lose their digits.
ordered_kernel = called(fastmath={"contract"}, error_model="numpy")
#: A piece of such a kernel; it counts no references either.
ordered_part = linked(fastmath={"contract"}, error_model="numpy", forceinline=True, _nrt=False)
#: A piece that is given counts of emissions. They may be of a class of the user's own, which other programs could not
#: find in a cache: only the kernels that it becomes part of are kept on disk (see `propagation.verbs.kernel_for`).
family_part = njit(  # type: ignore[call-overload]
    nogil=True, fastmath={"contract"}, error_model="numpy", forceinline=True, _nrt=False, **INSIDE
)
#: The same for a function that is called, and may allocate.
family_rare = njit(  # type: ignore[call-overload]
    nogil=True, fastmath=FASTMATH, error_model="numpy", _nrt=True, **INSIDE
)
#: A function that such pieces call now and then; being small, it may be compiled into them.
seldom = linked(fastmath={"contract"}, error_model="numpy", _nrt=False)


def by_kind(dense: Callable[..., Any], banded: Callable[..., Any], *, reorders: bool = True) -> Callable[..., Any]:
    """Return a piece of a kernel that becomes `dense` or `banded` by the type of its first argument.

    That is decided when the kernel is compiled: `dense` where the argument is an array, `banded` where it is a named
    tuple (`propagation.band.Band`). Both are plain functions with the same arguments. With `reorders=False` sums are
    taken as they are written, so that the same numbers give the same bits everywhere.
    """

    @functools.wraps(dense)
    def chosen(*arguments: Any) -> Any:
        return (banded if isinstance(arguments[0], tuple) else dense)(*arguments)

    @functools.wraps(dense)
    def choose(*kinds: Any) -> Callable[..., Any]:
        return banded if isinstance(kinds[0], types.BaseNamedTuple) else dense

    options: Any = {
        "nogil": True,
        "error_model": "numpy",
        "forceinline": True,
        "fastmath": FASTMATH if reorders else False,
    } | NO_C
    overload(chosen, jit_options=options)(choose)
    return chosen
