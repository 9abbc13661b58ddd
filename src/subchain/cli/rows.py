"""Tables that commands write: to a .csv or .tsv file, or as .csv to standard output."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from subchain.core.files import writing
from subchain.errors import InputError

#: Separators of cells by the suffix of a file.
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def check_suffix(path: Path | None, what: str) -> None:
    """Raise an `InputError` if a file has no suffix of a table."""
    if path is not None and path.suffix.lower() not in SEPARATORS:
        raise InputError(
            f"-o {str(path)!r} has an unsupported suffix; {what} are written to {' and '.join(SEPARATORS)}."
        )


def write_table(path: Path | None, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table to a file, or to standard output without one."""
    if path is None:
        write_rows(sys.stdout, ",", heads, rows)
        return
    with writing(path) as file:
        write_rows(file, SEPARATORS[path.suffix.lower()], heads, rows)


def write_rows(file: IO[str], separator: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as text; missing numbers are empty cells."""
    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(["" if cell != cell else cell for cell in row] for row in rows)
