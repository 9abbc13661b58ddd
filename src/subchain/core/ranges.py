"""Ranges of stored arrays: what a file must hold for its contents to be used.

Kernels index without bounds checks, so nothing from a file may reach them unchecked. Records declare a range for each
field (`core/records.py`), and the states of runs read each entry of a checkpoint with one (`stored`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import FileFormatError

#: Largest distance of a sum of probabilities from one.
SUM_TOLERANCE = 1e-6
#: Rounding, relative to the largest entry, that may take a count below zero or make a matrix uneven.
ROUNDING = 1e-8
#: Share of a variance that is nothing but rounding: a matrix that leaves no more is singular.
SINGULAR = 1e-15
#: Largest whole number.
MOST = float(1 << 63)


@dataclasses.dataclass(frozen=True)
class Range:
    """What the entries of an array must be; nan and infinity are out of range unless they are allowed.

    Attributes
    ----------
    dtype : type of the entries; None for any kind of numbers
    least, most : bounds
    is_open : whether `least` itself is out of range
    slack : distance below `least`, relative to the largest entry, that is rounding
    below : entries are indices of an axis of this length, or of the axis with this name
    axis : axis along which entries are probabilities that sum to one
    is_permutation : whether entries are the numbers 0 … n − 1 in some order
    is_definite : whether the last two axes hold symmetric matrices without eigenvalues below `least`
    allows_nan : whether nan stands for entries that do not exist
    allows_infinity : whether entries may be infinite
    """

    dtype: str | None = "float64"
    least: float = -math.inf
    most: float = math.inf
    is_open: bool = False
    slack: float = 0.0
    below: int | str | None = None
    axis: int | None = None
    is_permutation: bool = False
    is_definite: bool = False
    allows_nan: bool = False
    allows_infinity: bool = False

    def fault(self, array: NDArray[Any], sizes: Mapping[str, int]) -> str | None:
        """Return what is wrong with an array, None if nothing is; `sizes` are lengths of axes by name."""
        if array.dtype.kind not in "fiub" or (self.dtype is not None and array.dtype != self.dtype):
            return f"holds entries of type {array.dtype}, not {self.dtype or 'numbers'}"
        entries = array[~np.isnan(array)] if self.allows_nan else array
        if not entries.size:
            return None if self.axis is None else "is empty"
        low, high = entries.min(), entries.max()
        if math.isnan(low) or not (self.allows_infinity or (math.isfinite(low) and math.isfinite(high))):
            return _at(array, ~np.isfinite(array), "a finite number")
        least, most = self.least, self.most
        if self.below is not None:
            least, most = 0, (sizes[self.below] if isinstance(self.below, str) else self.below) - 1
        slack = self.slack * max(1.0, high) if self.slack else 0.0
        if not self.is_definite and (low <= least if self.is_open else low < least - slack):
            return _at(array, array == low, f"{'above' if self.is_open else 'at least'} {least:g}")
        if high > most:
            return _at(array, array == high, f"at most {most:g}")
        return self._structural_fault(array)

    def _structural_fault(self, array: NDArray[Any]) -> str | None:
        if self.axis is not None:
            sums = np.nansum(array, axis=self.axis) if self.allows_nan else array.sum(axis=self.axis)
            wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
            if self.allows_nan:
                wrong &= ~np.isnan(array).all(axis=self.axis)
            if wrong.any():
                return f"holds probabilities that sum to {sums[wrong].flat[0]:.6g}, not to 1"
        if self.is_permutation and not np.array_equal(np.sort(array), np.arange(len(array))):
            return f"does not hold the numbers 0 … {len(array) - 1} in some order"
        return self._indefinite(array) if self.is_definite else None

    def _indefinite(self, matrices: NDArray[Any]) -> str | None:
        largest = float(np.abs(matrices).max())
        if np.abs(matrices - np.swapaxes(matrices, -1, -2)).max() > ROUNDING * largest:
            return "holds a matrix that is not symmetric"
        try:
            if self.is_open:
                pivots = np.diagonal(np.linalg.cholesky(matrices), axis1=-2, axis2=-1) ** 2
                is_regular = (pivots > SINGULAR * np.diagonal(matrices, axis1=-2, axis2=-1)).all()
                return None if is_regular else "holds a singular matrix"
            smallest = np.linalg.eigvalsh(matrices).min()
        except np.linalg.LinAlgError:
            return "holds a matrix that is not positive definite"
        return None if smallest >= self.least - self.slack * largest else "holds a matrix with a negative eigenvalue"


def _at(array: NDArray[Any], wrong: NDArray[np.bool_], needed: str) -> str:
    """Say which entry of an array is the first wrong one."""
    place = tuple(np.argwhere(wrong)[0].tolist())
    where = f" at {place if len(place) > 1 else place[0]}" if place else ""
    return f"holds {array[place]}{where}, but must be {needed}"


ANYTHING = Range(dtype=None)
FINITE = Range()
POSITIVE = Range(least=0.0, is_open=True)
NOT_NEGATIVE = Range(least=0.0)
#: Expected counts, from which rounding may have taken a little too much.
COUNTS = Range(least=0.0, slack=ROUNDING)
#: Numbers between 0 and 1.
FRACTIONS = Range(least=0.0, most=1.0 + ROUNDING)
FLAGS = Range("bool")
WHOLE_NUMBERS = Range("int64", least=0.0, most=MOST)
#: Indices of states.
STATES = Range("int64", below="K")
#: A rank for each state, from 0.
RANKS = Range(is_permutation=True)
#: Real numbers whose squares can be added up.
LARGEST = 1e140
REAL = Range(least=-LARGEST, most=LARGEST)
#: Symmetric matrices without negative eigenvalues, and those with positive eigenvalues only.
SCATTERS = Range(least=0.0, slack=ROUNDING, is_definite=True)
COVARIANCES = Range(least=0.0, is_open=True, is_definite=True)


#: Sums since the last report, nan where they are not known.
SINCE = Range(allows_nan=True)


def probabilities(axis: int = -1, **settings: Any) -> Range:
    """Return the range of probabilities that sum to one along an axis."""
    return Range(least=0.0, axis=axis, **settings)


def stored(
    memory: Mapping[str, NDArray[Any]], name: str, holds: Range = FINITE, shape: tuple[int | None, ...] = ()
) -> NDArray[Any]:
    """Return one entry of what a run has stored; raise a `FileFormatError` if it is missing or out of range.

    Parameters
    ----------
    memory : entries by name
    name : the entry to read
    holds : its range
    shape : its shape, None for axes of any length
    """
    if name not in memory:
        raise FileFormatError(f"the entry {name} is missing")
    array = np.asarray(memory[name])
    if array.ndim != len(shape) or any(
        size not in (None, found) for size, found in zip(shape, array.shape, strict=True)
    ):
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise FileFormatError(f"{name} has the shape {array.shape}, not ({expected})")
    fault = holds.fault(array, {})
    if fault is not None:
        raise FileFormatError(f"{name} {fault}")
    return array


def header_number(header: Mapping[str, Any], name: str, most: float = MOST) -> int:
    """Return a whole number, of at least 0, of a header; raise a `FileFormatError` if it is none."""
    value = header.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise FileFormatError(f"{name} is {value!r:.60}, not a whole number of at least 0")
    return value


def stored_number(memory: Mapping[str, NDArray[Any]], name: str, least: int = 0, most: float = MOST) -> int:
    """Return a whole number that a run has stored; see `stored`."""
    return int(stored(memory, name, Range("int64", least=least, most=most)))


def stored_cursor(memory: Mapping[str, NDArray[Any]], size: int) -> tuple[int, int]:
    """Return how many of `size` clusters the present pass has visited, and the number of passes; see `stored`."""
    cursor, iteration = stored(memory, "cursor", WHOLE_NUMBERS, (2,)).tolist()
    if cursor >= max(size, 1):
        raise FileFormatError(f"cursor holds {cursor}, but there are {size} clusters")
    return cursor, iteration
