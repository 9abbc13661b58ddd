"""Checks of data and hyperparameters that several families share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.checks import real_numbers
from subchain.data.sequences import Sequences
from subchain.errors import InputError


def as_vector(values: NDArray[Any]) -> NDArray[Any]:
    """Return the observations of one column as a vector (n,)."""
    return values if values.ndim == 1 else values[:, 0]


def as_matrix(values: NDArray[Any]) -> NDArray[Any]:
    """Return the observations as a matrix (n, D)."""
    return values if values.ndim == 2 else values[:, None]


def where_is(data: Sequences, position: int) -> str:
    """Name the sequence and the position within it of a flat position, for error messages."""
    sequence = int(np.searchsorted(data.offsets, position, side="right")) - 1
    return f"sequence {sequence}, position {position - int(data.offsets[sequence])}"


def integer_range(data: Sequences, family: str, *, trains: bool) -> tuple[int, int]:
    """Return the smallest and largest code of one column, or raise an `InputError` if it does not hold codes.

    Floating-point numbers are accepted if they are whole or missing (nan). If `trains`, some must be missing, since
    only that explains why codes are not integers; measurements that happen to be whole are refused.
    """
    if data.n_features != 1:
        raise InputError(
            f"{family} needs one column of codes, but the data have {data.n_features}; "
            "use a Product of families for several columns."
        )
    if data.values.dtype.kind not in "iuf":
        raise InputError(f"{family} needs integer codes, but the data are of type {data.values.dtype}.")
    smallest, largest = data.value_range()
    if data.values.dtype.kind == "f":
        fraction = first_where(data, lambda block: ~np.isnan(block) & (np.isinf(block) | (block != np.floor(block))))
        if fraction >= 0 or (trains and first_where(data, np.isnan) < 0):
            raise InputError(
                f"{family} needs integer codes, but the data are of type {data.values.dtype} "
                f"(from {smallest:g} to {largest:g}); convert codes with .astype(int), or choose a Gaussian family."
            )
    return int(smallest), int(largest)


def without_symbols(data: Sequences, family: str) -> None:
    """Raise an `InputError` if a column holds strings, whose codes are not numbers."""
    for column, vocabulary in enumerate(data.vocabularies):
        if vocabulary is not None:
            name = "the data hold" if data.columns is None else f"column {data.columns[column]!r} holds"
            raise InputError(
                f"{family} needs numbers, but {name} symbols such as {vocabulary.to_list()[0]!r}; "
                "choose the columns that are numbers, or a Categorical family for symbols."
            )


def real_columns(data: Sequences, family: str) -> None:
    """Raise an `InputError` unless the data are numbers and none is infinite."""
    without_symbols(data, family)
    if data.values.dtype.kind not in "iufb":
        raise InputError(f"{family} needs numbers, but the data are of type {data.values.dtype}.")
    smallest, largest = data.value_range()
    if not (np.isfinite(smallest) and np.isfinite(largest)):
        position = first_where(data, lambda block: np.isinf(block))
        raise InputError(
            f"{family} data hold an infinite value at {where_is(data, position)}; "
            "replace it by nan if it is missing, or remove it."
        )


def first_where(data: Sequences, test: Any) -> int:
    """Return the flat position of the first row for which `test` holds in any column, or −1."""
    block = 1 << 20
    for start in range(0, data.n_observations, block):
        hit = as_matrix(test(np.asarray(data.values[start : start + block]))).any(axis=1)
        if hit.any():
            return start + int(hit.argmax())
    return -1


def positive(name: str, given: Any) -> NDArray[np.float64]:
    """Return a hyperparameter as an array; raise an `InputError` unless it is positive and finite."""
    value = real_numbers(name, given)
    if not (np.isfinite(value).all() and (value > 0.0).all()):
        raise InputError(f"{name} must be positive and finite, not {given!r}.")
    return value


def check_probabilities(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """Return a table (K, W) of floats; raise an `InputError` unless each row is a probability distribution."""
    table = real_numbers(name, given)
    if table.ndim != 2:
        raise InputError(f"{name} must be a table with one row per state; got shape {table.shape}.")
    if not np.isfinite(table).all() or (table < 0.0).any():
        raise InputError(f"{name} must be finite and not negative.")
    off = np.abs(table.sum(axis=1) - 1.0)
    if (off > 1e-6).any():
        row = int(off.argmax())
        raise InputError(f"row {row} of {name} sums to {table[row].sum():.6g}, not to 1.")
    return table


def suits_kernels(values: NDArray[Any]) -> bool:
    """Return whether compiled passes can read an array as it is: of a type that Numba knows, in any layout.

    Examples
    --------
    >>> suits_kernels(np.arange(3)), suits_kernels(np.arange(6)[::2]), suits_kernels(np.ones(3, dtype=np.float16))
    (True, True, False)
    """
    dtype = values.dtype
    known = dtype.kind in "biu" or dtype in (np.float32, np.float64)
    return bool(known and dtype.isnative and values.flags.aligned)
