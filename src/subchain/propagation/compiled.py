"""How kernels are compiled: without Python's lock, cached on disk, with arithmetic that may be reordered or not."""

from __future__ import annotations

from numba import njit

#: Rounding may be reordered and fused, but nan and infinity keep their meaning.
FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}

kernel = njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy")
#: A piece of a kernel, compiled into it, so that vectors stay in registers.
part = njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy", forceinline=True)
#: The same for pieces that allocate nothing and are given named tuples of arrays: counting references to these, which
#: belong to the kernel, would take longer than a short step.
bare_part = njit(  # type: ignore[call-overload]
    nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy", forceinline=True, _nrt=False
)
#: A function that bare pieces call seldom, and that allocates.
rare = njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy", _nrt=True)  # type: ignore[call-overload]

#: Products may be fused with sums, but sums are never reordered: exponentials and logarithms would lose their digits.
ordered_kernel = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
#: A piece of such a kernel; it counts no references either.
ordered_part = njit(  # type: ignore[call-overload]
    nogil=True, cache=True, fastmath={"contract"}, error_model="numpy", forceinline=True, _nrt=False
)
