"""Reader of text tables (CSV, TSV): names of columns on the first line or none, blank lines between sequences.

Cells are missing if they are empty, NA or nan; -1 is a number like any other. The layout is found in the first lines,
see :mod:`subchain.data.sniffing`.
"""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.arrow import ArrowColumn, require_pyarrow
from subchain.data.columns import Columns
from subchain.data.lines import existing_file, numbered_lines
from subchain.data.sequences import Sequences, Vocabularies
from subchain.data.sniffing import MISSING_CELLS, TableLayout, sniff
from subchain.data.tables import ArrowTable, blaming_file, checked_table, chosen_columns, from_table
from subchain.data.unpacking import COMPRESSED, is_compressed, open_unpacked
from subchain.data.wide_csv import is_wide, read_numbers, read_words

_CSV_BLOCK = 1 << 26
_LARGEST_CSV_BLOCK = (1 << 31) - 1
#: Number of lines and of characters that the layout is found in.
FIRST_LINES, FIRST_CHARACTERS = 1000, 1 << 20
#: Number of bytes per block in which blank lines are looked for.
SEARCH_BLOCK = 1 << 24
_BLANK = (b"\n", b"\r\n")


def read_csv(
    path: str | PathLike[str],
    columns: Columns | None = None,
    sequence: str | int | None = None,
    vocabulary: Vocabularies = None,
    *,
    header: bool | None = None,
    separator: str | None = None,
) -> Sequences:
    """Read columns of a CSV or TSV file as sequences; .gz, .xz and .bz2 files are decompressed.

    Cells are missing if they are empty, NA or nan. A blank line ends a sequence (in a file with one column of numbers
    it is a missing number). Columns of dates, and columns that number the rows, are left out unless they are chosen.

    Parameters
    ----------
    path : path
    columns, sequence, vocabulary
        As in :func:`read_parquet`.
    header : bool, optional
        Whether the first line holds the names of the columns; by default it does if it is unlike the others. Columns
        without names are called "column_0", "column_1", …
    separator : str, optional
        Character between the fields; by default a tab for .tsv files, else the one of ``, ; |`` and tab that fits.

    Returns
    -------
    Sequences

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from subchain.data import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "walks.csv"
    ...     _ = path.write_text("day,weather\\n1,rain\\n1,sun\\n2,sun\\n")
    ...     data = read_csv(path, columns="weather", sequence="day")
    >>> list(data), data.vocabulary.symbols
    ([array([1, 0], dtype=int32), array([0], dtype=int32)], ('sun', 'rain'))
    """
    require_pyarrow()
    found = existing_file(path)
    layout = layout_of(found, separator, header)
    if header is None and not layout.has_header:
        warnings.warn(
            f"the first line of {found.name!r} ({', '.join(layout.first[:3])}) was read as observations, because it "
            "looks like the other lines; with header=True it gives the names of the columns.",
            stacklevel=4,
        )
    names = layout.names
    chosen: list[str] | None = None
    if is_wide(names):
        is_whole = columns is None and sequence is None and vocabulary is None
        columns, sequence = chosen_columns(names, columns, sequence)
        chosen = columns if sequence is None else [*columns, sequence]
        numbers = read_numbers(found, len(names), layout.separator, layout.has_header) if is_whole else None
        if numbers is not None:
            return checked_table(Sequences(_with_minus_one(numbers), columns=names))
        words = read_words(found, len(names), layout.separator, layout.has_header) if is_whole else None
        if words is not None:
            return checked_table(Sequences(words[0], columns=names, vocabulary=words[1]))
    table = _arrow_table(found, layout, chosen, skip_blank=True)
    lengths = _lengths_between_blanks(found, layout)
    if lengths is not None and len(names) == 1 and not _is_text(table.column(0)):
        table, lengths = _without_end(_arrow_table(found, layout, chosen, skip_blank=False)), None
    return from_table(table, columns, sequence, vocabulary, lengths)


def layout_of(path: Path, separator: str | None = None, header: bool | None = None) -> TableLayout:
    """Return the layout of a text table; fields of .tsv files are separated by tabs unless a separator is given."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    if separator is None and suffixes and suffixes[-1] == ".tsv":
        separator = "\t"
    return sniff(_first_lines(path), separator, header)


def _first_lines(path: Path) -> list[str]:
    """Return the first lines that are not blank, at least two, of limited length in all."""
    lines, size = [], 0
    for _, line in numbered_lines(path):
        if line:
            lines.append(line)
            size += len(line)
        if len(lines) >= FIRST_LINES or (len(lines) >= 2 and size > FIRST_CHARACTERS):
            break
    return lines


def _arrow_table(path: Path, layout: TableLayout, chosen: list[str] | None, *, skip_blank: bool) -> ArrowTable:
    """Return the table with missing cells as nulls."""
    import pyarrow
    import pyarrow.csv

    # Arrow infers types from the first block only, so the file is one block if possible: otherwise a column that begins
    # with integers and continues with fractions would be read as integers.
    packed = is_compressed(path)
    block = _CSV_BLOCK if packed else min(path.stat().st_size + 1, _LARGEST_CSV_BLOCK)
    with blaming_file(path, "CSV"), open_unpacked(path) as file:
        table = pyarrow.csv.read_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(
                block_size=max(block, 1 << 16),
                column_names=None if layout.has_header else layout.names,
                use_threads=not packed,  # where unpacking fails, Arrow's threads would keep the process from ending
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=layout.separator, ignore_empty_lines=skip_blank),
            convert_options=pyarrow.csv.ConvertOptions(include_columns=chosen, decimal_point=layout.decimal_point),
        )
        cells = [_missing_to_null(column) for column in table.columns]
        return pyarrow.Table.from_arrays(cells, names=table.column_names)


def _is_text(column: ArrowColumn) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_string(column.type))


def _missing_to_null(column: ArrowColumn) -> ArrowColumn:
    import pyarrow
    from pyarrow import compute

    if not _is_text(column):
        return column
    is_missing = compute.is_in(column, value_set=pyarrow.array(MISSING_CELLS))
    return compute.if_else(is_missing, pyarrow.scalar(None, column.type), column)


def _without_end(table: ArrowTable) -> ArrowTable:
    """Return a table of one column without the nulls of blank lines at its end."""
    known = np.flatnonzero(table.column(0).is_valid().to_numpy())
    return table.slice(0, int(known[-1]) + 1 if len(known) else 0)


def _with_minus_one(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as floats if one is -1, which means missing in an array of integers."""
    return numbers.astype(np.float64) if numbers.dtype.kind == "i" and (numbers == -1).any() else numbers


def _lengths_between_blanks(path: Path, layout: TableLayout) -> NDArray[np.int64] | None:
    """Return the number of rows between blank lines; None if no blank line divides the rows."""
    if not _may_have_blank_lines(path):
        return None
    lengths, rows = [], -1 if layout.has_header else 0
    with open_unpacked(path) as file:
        for line in file:
            if line not in _BLANK:
                rows += 1
            elif rows > 0:
                lengths.append(rows)
                rows = 0
    if rows > 0:
        lengths.append(rows)
    return np.array(lengths, dtype=np.int64) if len(lengths) > 1 else None


def _may_have_blank_lines(path: Path) -> bool:
    """Return whether a file has two line ends in a row; it is searched block by block."""
    end = b""
    with open_unpacked(path) as file:
        while block := file.read(SEARCH_BLOCK):
            piece = (end + block).replace(b"\r", b"")
            if b"\n\n" in piece:
                return True
            end = piece[-1:]
    return False
