"""Number types that observations may have, and common types of several arrays, missing values included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

SUPPORTED = "integers of 8 to 64 bits, floating numbers of 16 to 64 bits, and booleans"
_LARGEST = np.iinfo(np.int64).max


def is_supported(dtype: np.dtype[Any]) -> bool:
    """Return whether observations may have this type without conversion."""
    return dtype.kind in "iuf" and dtype.itemsize <= 8 and dtype.isnative


def signed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the smallest integer type that holds the values of an integer type and -1; for 64 bits it is int64."""
    if dtype.itemsize == 8:
        return np.dtype(np.int64)
    return np.promote_types(dtype, np.int8)


def joined(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return a type that holds the values of all given types; for integers an integer type."""
    found = list(dtypes)
    result = np.result_type(*found)
    return np.dtype(np.int64) if result.kind == "f" and all(d.kind in "iu" for d in found) else result


def cast(values: NDArray[Any], dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    """Return the values converted to a type found by :func:`signed` or :func:`joined`.

    Raises an `InputError` for integers that do not fit into 64 signed bits.
    """
    if values.dtype == np.uint64 and dtype == np.int64 and values.size and values.max() > _LARGEST:
        raise InputError(f"{where} holds the integer {values.max()}, which is too large for 64 signed bits.")
    return values.astype(dtype, copy=False)
