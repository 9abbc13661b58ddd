"""Large Parquet files of numbers, unpacked to a temporary file that is mapped into memory.

Positions of a compressed file cannot be visited at random; those of a plain one can. Row groups are unpacked one after
the other, so memory holds one at a time. The temporary file has no name any more once it is mapped: it disappears with
the last array that looks at it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.arrow import side_by_side

#: Tables that need more bytes than this are not held in memory.
LARGE = 1 << 29


def unpack_large(file: Any, names: list[str]) -> NDArray[Any] | None:
    """The numbers of some columns of an open Parquet file, (N,) or (N, D), if they are many; None if they are few.

    None also where a column holds anything but numbers, or integers of which some are null.
    """
    dtype = _common_type(file, names)
    n_rows = file.metadata.num_rows
    if dtype is None or n_rows * len(names) * dtype.itemsize <= LARGE:
        return None
    shape = (n_rows,) if len(names) == 1 else (n_rows, len(names))
    handle, path = tempfile.mkstemp(prefix="subchain-", suffix=".bin")
    try:
        with os.fdopen(handle, "r+b") as spool:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=names)
                table.validate(full=True)
                cells = [table.column(name).combine_chunks() for name in names]
                values, _ = side_by_side(cells, names, None)
                spool.write(np.ascontiguousarray(values, dtype=dtype).tobytes())
            spool.flush()
            return np.memmap(spool, dtype=dtype, mode="r", shape=shape)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _common_type(file: Any, names: list[str]) -> np.dtype[Any] | None:
    """The type of all numbers; None where there are others than numbers, or integers that may be null."""
    from pyarrow import types

    kinds = []
    schema = file.schema_arrow
    for name in names:
        kind = schema.field(name).type
        if (types.is_integer(kind) and not _may_be_null(file, schema.get_field_index(name))) or types.is_floating(kind):
            kinds.append(np.dtype(kind.to_pandas_dtype()))
        else:
            return None
    found = np.result_type(*kinds)
    return None if found == np.float16 else found


def _may_be_null(file: Any, column: int) -> bool:
    """Whether a column has nulls, or nobody knows."""
    for group in range(file.num_row_groups):
        statistics = file.metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_null_count or statistics.null_count:
            return True
    return False
