"""Conversion of Arrow columns to arrays: strings and categories become codes, nulls become missing values."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.dtypes import cast, joined
from subchain.data.sequences import Vocabularies, one_per_column
from subchain.data.vocabulary import MISSING, Vocabulary, code_symbols, recode
from subchain.errors import InputError

ArrowColumn = Any


def require_pyarrow() -> None:
    """Raise an ImportError that says how to install pyarrow if it is not installed."""
    if find_spec("pyarrow") is None:
        raise ImportError('tables are read with pyarrow, which is not installed: pip install "subchain[tables]".')


def first_null(column: ArrowColumn) -> int:
    """Return the index of the first null."""
    return int(np.flatnonzero(_nulls(column))[0])


def is_list(kind: Any) -> bool:
    """Return whether columns of this Arrow type hold lists."""
    from pyarrow import types

    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(test(kind) for test in tests)


def side_by_side(
    cells: list[ArrowColumn], names: list[str], vocabulary: Vocabularies
) -> tuple[NDArray[Any], list[Vocabulary | None]]:
    """Return the columns as one array, (N,) or (N, D), with the vocabulary of each column, None for numbers."""
    given = one_per_column(vocabulary, len(cells))
    parts = [_values(*column) for column in zip(cells, names, given, strict=True)]
    vocabularies = [part[1] for part in parts]
    if len(parts) == 1:
        return parts[0][0], vocabularies
    dtype = joined(part[0].dtype for part in parts)
    table = np.empty((len(cells[0]), len(cells)), dtype=dtype)
    for j, (cell, (values, _)) in enumerate(zip(cells, parts, strict=True)):
        table[:, j] = cast(values, dtype, f"column {names[j]!r}")
        if dtype.kind == "f" and cell.null_count:
            table[_nulls(cell), j] = np.nan
    return table, vocabularies


def _values(cells: ArrowColumn, name: str, vocabulary: Vocabulary | None) -> tuple[NDArray[Any], Vocabulary | None]:
    """Return one column as numbers or codes, (N,), with its vocabulary, None for numbers."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(cells.type):
        if not is_text(cells.type.value_type):
            return _values(cells.dictionary_decode(), name, vocabulary)
        symbols = cells.dictionary.to_pylist()
        vocabulary = Vocabulary(symbols) if vocabulary is None else vocabulary
        return recode(_codes(cells.indices), symbols, vocabulary), vocabulary
    if is_text(cells.type):
        encoded = cells.cast(pyarrow.large_string()).dictionary_encode()
        return code_symbols(encoded.dictionary.to_pylist(), _codes(encoded.indices), vocabulary)
    return _numbers(cells, name), vocabulary


def is_text(kind: Any) -> bool:
    """Return whether columns of this Arrow type hold strings."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _codes(indices: ArrowColumn) -> NDArray[np.int64]:
    import pyarrow

    return np.asarray(indices.cast(pyarrow.int64()).fill_null(MISSING).to_numpy(zero_copy_only=False))


def _numbers(cells: ArrowColumn, name: str) -> NDArray[Any]:
    import pyarrow
    from pyarrow import types

    kind = cells.type
    if types.is_boolean(kind):
        cells = cells.cast(pyarrow.uint8())
    elif types.is_decimal(kind) or types.is_null(kind):
        cells = cells.cast(pyarrow.float64())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        raise InputError(
            f"column {name!r} is of type {kind}, which observations cannot have; choose other columns with "
            "columns=..., or convert it to numbers or strings."
        )
    if not types.is_integer(cells.type):
        return np.asarray(cells.to_numpy(zero_copy_only=False))
    if not cells.null_count:
        whole = np.asarray(cells.to_numpy())
        # -1 is a number here, but would mean missing in an array of integers
        return whole.astype(np.float64) if whole.dtype.kind == "i" and (whole == -1).any() else whole
    return np.where(_nulls(cells), np.nan, cells.fill_null(0).to_numpy().astype(np.float64))


def _nulls(cells: ArrowColumn) -> NDArray[np.bool_]:
    return np.asarray(cells.is_null().to_numpy(zero_copy_only=False))
