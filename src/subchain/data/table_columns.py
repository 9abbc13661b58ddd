"""Names of the columns of tables and of table files, without reading their rows."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from subchain.data.arrow import require_pyarrow
from subchain.data.delimited import layout_of
from subchain.data.lines import existing_file
from subchain.data.tables import blaming_file, is_table
from subchain.data.unpacking import COMPRESSED


def columns_of_table(x: object, separator: str | None = None, header: bool | None = None) -> list[str]:
    """Return the names of the columns of a table or of a table file; an empty list for everything else."""
    if is_table(x):
        return _names_in_memory(x)
    if not isinstance(x, (str, PathLike)):
        return []
    suffixes = [suffix.lower() for suffix in Path(x).suffixes if suffix.lower() not in COMPRESSED]
    kind = suffixes[-1] if suffixes else ""
    if kind in (".csv", ".tsv"):
        return layout_of(existing_file(x), separator, header).names
    if kind in (".parquet", ".pq"):
        require_pyarrow()
        from pyarrow import parquet

        with blaming_file(x, "Parquet"):
            return list(parquet.read_schema(existing_file(x)).names)
    return []


def _names_in_memory(x: Any) -> list[str]:
    """Return the names of the columns of a table without reading rows, as some tables can be read only once."""
    if hasattr(x, "collect_schema"):  # a lazy frame
        return list(x.collect_schema().names())
    names = getattr(x, "columns", None) if not hasattr(x, "schema") else getattr(x.schema, "names", None)
    if callable(names):
        names = names()
    return [] if names is None else [str(name) for name in names]
