"""SIMD vectors as values inside Numba kernels.

A kernel that loops over an array writes every intermediate result back to memory. A kernel that works with vectors
keeps its sums in registers from the first term to the last and comes near the processor's peak speed. A vector holds
neighbouring entries of a row of a table; it can be added and multiplied like a number and exists only inside a kernel.
With compilation switched off it is an array.

A vector has the floating type of the table that it was loaded from, and the size of a cache line: `WIDTH` doubles or
twice as many singles. Kernels that ask for the `width` of their tables are compiled for either from the same source.

A mask, as given by `first`, marks the entries of a vector that exist in memory; `None` means all of them and costs
nothing. Tables are C-contiguous, and indices are not checked.

`functions` defines what kernels call, in plain NumPy; `types` gives Numba the types and signatures; `lowering` and
`elementary` emit the LLVM code.
"""

from subchain.numerics.vectors import elementary, lowering
from subchain.numerics.vectors.functions import (
    LEAST_NORMAL,
    LOWEST_EXPONENT,
    LOWEST_SINGLE_EXPONENT,
    WIDTH,
    aligned,
    aligned_like,
    all_within,
    at_most,
    except_at,
    exponential,
    fetch,
    first,
    largest,
    load,
    load_doubles,
    logarithm,
    minus,
    reached,
    reciprocal,
    running,
    spread,
    store,
    times,
    total,
    turned,
    turned_doubles,
    width,
    zeros,
)
from subchain.numerics.vectors.types import Mask, Vector

__all__ = [
    "LEAST_NORMAL",
    "LOWEST_EXPONENT",
    "LOWEST_SINGLE_EXPONENT",
    "WIDTH",
    "Mask",
    "Vector",
    "aligned",
    "aligned_like",
    "all_within",
    "at_most",
    "except_at",
    "exponential",
    "fetch",
    "first",
    "largest",
    "load",
    "load_doubles",
    "logarithm",
    "minus",
    "reached",
    "reciprocal",
    "running",
    "spread",
    "store",
    "times",
    "total",
    "turned",
    "turned_doubles",
    "width",
    "zeros",
]

del elementary, lowering  # imported to register their code with Numba
