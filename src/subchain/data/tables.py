"""Conversion of tables to sequences: Parquet files, pandas, polars and Arrow objects, all through Arrow.

The chosen columns become the columns of one array. Strings become codes with a vocabulary. Nulls become missing values,
-1 for codes and nan for numbers. A table has nulls, so -1 in a column of integers is a number: such a column becomes
floating-point numbers.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.arrow import ArrowColumn, first_null, is_list, require_pyarrow, side_by_side
from subchain.data.columns import Columns, first_repeated, resolve_columns
from subchain.data.index_columns import places_of, warn_of_sequence_names, without_index
from subchain.data.large_parquet import unpack_large
from subchain.data.lines import existing_file
from subchain.data.missing import check_finite
from subchain.data.sequences import Sequences, Vocabularies, require_observations
from subchain.data.unpacking import is_compressed, open_unpacked
from subchain.errors import FileFormatError, InputError, SubchainError

_TABLE_LIBRARIES = ("pandas", "polars", "pyarrow")

ArrowTable = Any


class _Rows(NamedTuple):
    """Grouping of the rows of a table into sequences.

    Attributes
    ----------
    offsets : (n_sequences + 1,) index of the first row of each sequence, after sorting
    order : (N,) permutation that sorts the rows by sequence; None if they are sorted
    names : names of the sequences, or None
    """

    offsets: NDArray[np.int64]
    order: NDArray[np.int64] | None
    names: list[str | int] | None


def read_parquet(
    path: str | PathLike[str],
    columns: Columns | None = None,
    sequence: str | int | None = None,
    vocabulary: Vocabularies = None,
) -> Sequences:
    """Read columns of a Parquet file as sequences; other columns are not loaded.

    One sequence of numbers that is larger than half a gibibyte is unpacked to a temporary file and memory-mapped.

    Parameters
    ----------
    path : path
    columns : str, int or list of them, optional
        The observations; all columns but ``sequence`` if not given. A column of lists holds one sequence per row.
    sequence : str or int, optional
        The column with the name of the sequence that a row belongs to. Rows of one sequence keep their order;
        sequences are ordered by first appearance.
    vocabulary : Vocabulary, or one Vocabulary or None per column, optional
        Existing vocabularies to use instead of new ones.

    Returns
    -------
    Sequences

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow, pyarrow.parquet
    >>> from subchain.data import read_parquet
    >>> table = pyarrow.table({"patient": [7, 7, 8], "pulse": [61.0, None, 72.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "pulse.parquet"
    ...     pyarrow.parquet.write_table(table, path)
    ...     data = read_parquet(path, columns="pulse", sequence="patient")
    >>> list(data)
    [array([61., nan]), array([72.])]
    """
    require_pyarrow()
    from pyarrow import parquet

    found = existing_file(path)
    with blaming_file(path, "Parquet"):
        file = parquet.ParquetFile(io.BytesIO(open_unpacked(found).read()) if is_compressed(found) else found)
        names = file.schema_arrow.names
    observed, sequence = chosen_columns(names, columns, sequence)
    with blaming_file(path, "Parquet"):
        large = unpack_large(file, observed) if sequence is None else None
        if large is not None:
            return Sequences(large, columns=observed)
        table = file.read(columns=observed if sequence is None else [*observed, sequence])
        table.validate(full=True)
    return from_table(table, None if columns is None else observed, sequence, vocabulary)


def is_table(x: object) -> bool:
    """Return whether an object is a table or column of pandas, polars, Arrow or a library with Arrow's C interface."""
    library = type(x).__module__.partition(".")[0]
    return library in _TABLE_LIBRARIES or hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")


def to_arrow(x: Any) -> ArrowTable:
    """Return a table or a column of any library as an Arrow table."""
    require_pyarrow()
    import pyarrow

    library = type(x).__module__.partition(".")[0]
    try:
        if isinstance(x, (pyarrow.Array, pyarrow.ChunkedArray)):
            return pyarrow.table({"values": x})
        if library == "polars" and hasattr(x, "collect"):
            x = x.collect()
        if library in ("pandas", "polars") and hasattr(x, "to_frame"):
            x = x.to_frame("values" if x.name in (None, "") else x.name)
        if library == "pandas":
            return pyarrow.Table.from_pandas(x, preserve_index=False)
        return pyarrow.table(x)
    except (pyarrow.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"a {type(x).__module__}.{type(x).__name__} cannot be read as a table: {error}") from error


def from_table(
    table: ArrowTable,
    columns: Columns | None = None,
    sequence: str | int | None = None,
    vocabulary: Vocabularies = None,
    lengths: NDArray[np.int64] | None = None,
) -> Sequences:
    """Convert columns of an Arrow table to sequences; the arguments are those of :func:`read_parquet`.

    Columns of dates, and columns that number the rows, are left out, with a warning, unless they are chosen. `lengths`
    (n_sequences,) divide the rows if no column does.
    """
    observed, sequence = chosen_columns(table.column_names, columns, sequence)
    if columns is None and vocabulary is None:
        observed = without_index(table, observed, sequence)
        if sequence is None and lengths is None:
            warn_of_sequence_names(table, observed)
    places = places_of(table)
    cells = [_combined(table.column(places[name])) for name in observed]
    ids = None if sequence is None else _combined(table.column(places[sequence]))
    if any(is_list(column.type) for column in cells):
        rows = _rows_of_lists(cells, observed, ids)
        cells = [column.flatten() for column in cells]
    else:
        rows = _rows_of_ids(ids, table.num_rows, lengths)
    values, vocabularies = side_by_side(cells, observed, vocabulary)
    values = values if rows.order is None else values[rows.order]
    found = Sequences(
        values, rows.offsets, columns=observed, names=rows.names, vocabulary=vocabularies, grouped_by=sequence
    )
    return checked_table(found)


def checked_table(found: Sequences) -> Sequences:
    """Return the sequences of a table; raise an `InputError` if there are none, or for infinite values."""
    check_finite(found.values, found.describe)
    return require_observations(found)


@contextmanager
def blaming_file(path: str | PathLike[str], kind: str) -> Iterator[None]:
    """Replace errors of Arrow and of the system by a `FileFormatError` that names the file."""
    import pyarrow

    try:
        yield
    except SubchainError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise FileFormatError(
            f"{str(path)!r} cannot be read as {kind}; it may be damaged or of another kind: {error}"
        ) from error


def chosen_columns(
    names: list[str], columns: Columns | None, sequence: str | int | None
) -> tuple[list[str], str | None]:
    """Return the names of the observed columns and of the column of sequence names."""
    repeated = first_repeated(names)
    if repeated is not None:
        raise InputError(f"several columns of the table are called {names[repeated]!r}; rename them.")
    id_name = None if sequence is None else names[resolve_columns(sequence, names, len(names))[0]]
    observed = [names[i] for i in resolve_columns(columns, names, len(names))]
    if columns is None:
        observed = [name for name in observed if name != id_name]
    if not observed:
        raise InputError(
            f"the table has no column of observations; its columns are: {', '.join(map(repr, names)) or 'none'}."
        )
    if id_name in observed:
        raise InputError(
            f"column {id_name!r} was chosen both as an observation and as sequence=; choose it for one of them."
        )
    return observed, id_name


def _combined(column: ArrowColumn) -> ArrowColumn:
    """Return the column as one chunk; strings get 64-bit offsets, so that long texts fit."""
    import pyarrow

    if pyarrow.types.is_string(column.type) or pyarrow.types.is_string_view(column.type):
        column = column.cast(pyarrow.large_string())
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _rows_of_ids(ids: ArrowColumn | None, n_rows: int, lengths: NDArray[np.int64] | None) -> _Rows:
    """Group rows with the same id into one sequence, in order of first appearance; without ids by lengths, or all."""
    if ids is None:
        return _Rows(np.concatenate([[0], np.cumsum([n_rows] if lengths is None else lengths)]), None, None)
    codes, names = _coded_ids(ids)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
    grouped = bool((np.diff(codes) >= 0).all())
    return _Rows(offsets, None if grouped else np.argsort(codes, kind="stable"), names)


def _rows_of_lists(cells: list[ArrowColumn], columns: list[str], ids: ArrowColumn | None) -> _Rows:
    """Make every row one sequence; the lists of a row need the same length in all columns."""
    from pyarrow import compute

    lengths: list[NDArray[np.int64]] = []
    for cell, name in zip(cells, columns, strict=True):
        if not is_list(cell.type):
            raise InputError(
                f"column {name!r} holds single values ({cell.type}), but another column holds lists; choose columns of "
                "one kind."
            )
        if cell.null_count:
            raise InputError(
                f"row {first_null(cell)} of column {name!r} is null; give an empty list for an empty sequence."
            )
        lengths.append(compute.list_value_length(cell).to_numpy(zero_copy_only=False).astype(np.int64))
        unequal = np.flatnonzero(lengths[-1] != lengths[0])
        if unequal.size:
            row = unequal[0]
            raise InputError(
                f"row {row} has {lengths[0][row]} values in column {columns[0]!r} but {lengths[-1][row]} in column "
                f"{name!r}; the lists of a row need the same length."
            )
    codes, names = (None, None) if ids is None else _coded_ids(ids)
    if codes is not None and names is not None and len(names) < len(codes):
        row = int(np.flatnonzero(np.bincount(codes)[codes] > 1)[0])
        raise InputError(
            f"several rows have the sequence name {names[codes[row]]!r}, but every row of lists is one sequence; give "
            "each row its own name."
        )
    return _Rows(np.concatenate([[0], np.cumsum(lengths[0])]), None, names)


def _coded_ids(ids: ArrowColumn) -> tuple[NDArray[np.int64], list[str | int]]:
    """Return the number of each row's id, by first appearance, and the distinct ids."""
    import pyarrow

    if ids.null_count:
        raise InputError(f"row {first_null(ids)} has no sequence name; fill the column or drop the row.")
    try:
        plain = ids.dictionary_decode() if pyarrow.types.is_dictionary(ids.type) else ids
        encoded = plain.dictionary_encode()
    except pyarrow.ArrowException as error:
        raise InputError(f"a column of type {ids.type} cannot name the sequences: {error}") from error
    names = [name if isinstance(name, (str, int)) else str(name) for name in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy().astype(np.int64), names
