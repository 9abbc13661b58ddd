"""Large Parquet files of numbers, unpacked to a temporary file that is memory-mapped.

A compressed file has no random access; the unpacked one has. Row groups are unpacked one after the other, so that
memory holds one at a time. The temporary file is unlinked once it is mapped: it is deleted with the last array that
refers to it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.arrow import side_by_side

#: Tables of more bytes than this are memory-mapped instead of loaded.
LARGE = 1 << 29
#: Bytes of the largest number.
LARGEST_NUMBER = 8


def unpack_large(file: Any, names: list[str]) -> NDArray[Any] | None:
    """Return columns of an open Parquet file as a memory-mapped array, (N,) or (N, D); None if they are at most LARGE.

    None also if a column holds anything but numbers, or integers with nulls.
    """
    n_rows = file.metadata.num_rows
    if n_rows * len(names) * LARGEST_NUMBER <= LARGE:
        return None  # before statistics are read: damaged ones can end the process inside pyarrow
    dtype = _common_type(file, names)
    if dtype is None or n_rows * len(names) * dtype.itemsize <= LARGE:
        return None
    shape = (n_rows,) if len(names) == 1 else (n_rows, len(names))
    handle, path = tempfile.mkstemp(prefix="subchain-", suffix=".bin")
    try:
        with os.fdopen(handle, "r+b") as unpacked:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=names)
                table.validate(full=True)
                cells = [table.column(name).combine_chunks() for name in names]
                values, _ = side_by_side(cells, names, None)
                unpacked.write(np.ascontiguousarray(values, dtype=dtype).tobytes())
            unpacked.flush()
            return np.memmap(unpacked, dtype=dtype, mode="r", shape=shape)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _common_type(file: Any, names: list[str]) -> np.dtype[Any] | None:
    """Return the common type of the columns; None if one holds other things than numbers, or integers with nulls."""
    from pyarrow import types

    kinds = []
    schema = file.schema_arrow
    for name in names:
        kind = schema.field(name).type
        if (types.is_integer(kind) and not _may_be_null(file, schema.get_field_index(name))) or types.is_floating(kind):
            kinds.append(np.dtype(kind.to_pandas_dtype()))
            if types.is_signed_integer(kind) and _may_be_negative(file, schema.get_field_index(name)):
                kinds.append(np.dtype(np.float64))  # -1 is a number here, but would mean missing among integers
        else:
            return None
    found = np.result_type(*kinds)
    return None if found == np.float16 else found


def _may_be_null(file: Any, column: int) -> bool:
    """Return whether a column has nulls, or its metadata do not give their number."""
    for group in range(file.num_row_groups):
        statistics = file.metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count:
            return True
    return False


def _may_be_negative(file: Any, column: int) -> bool:
    """Return whether a column has negative numbers, or its metadata do not give the smallest."""
    for group in range(file.num_row_groups):
        statistics = file.metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_min_max or statistics.min < 0:
            return True
    return False
