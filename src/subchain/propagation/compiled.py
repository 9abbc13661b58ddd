"""How kernels are compiled: without Python's lock, cached on disk, with arithmetic that may be reordered."""

from __future__ import annotations

from numba import njit

#: Rounding may be reordered and fused, but nan and infinity keep their meaning.
FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}

kernel = njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy")
#: A piece of a kernel, compiled into it, so that vectors stay in registers.
part = njit(nogil=True, cache=True, fastmath=FASTMATH, error_model="numpy", forceinline=True)
