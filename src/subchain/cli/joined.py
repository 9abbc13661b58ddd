"""The columns of the input beside an answer: `predict --join`, `impute`.

The rows of a table are copied as they stand in the file, columns that the model does not look at included. Data of
other kinds have the columns that the model observes.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from subchain.cli.sample import decoded
from subchain.data import Sequences
from subchain.data.lines import numbered_lines
from subchain.data.unpacking import COMPRESSED
from subchain.models.hmm import HMM

#: Suffixes of tables whose rows are copied, and what separates their cells.
SEPARATORS = {".csv": ",", ".tsv": "\t"}


class Joined:
    """Cells of the input, in the order of the observations.

    Attributes
    ----------
    names : names of the columns
    places : for each observed column the number of its column here
    """

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[Any]], places: Sequence[int]) -> None:
        self.names = list(names)
        self.rows = rows
        self.places = list(places)

    @classmethod
    def of(cls, model: HMM, data: Sequences, paths: Sequence[Path]) -> Joined:
        """Return the cells of a table, where its rows are the observations; else those of the observed columns."""
        found = _rows_of_table(paths[0], data) if len(paths) == 1 else None
        width = data.n_features
        names = list(data.columns) if data.columns is not None else _default_names(data, width)
        if found is not None:
            header, rows = found
            if all(name in header for name in names):
                return cls(header, rows, [header.index(name) for name in names])
        values = decoded(model, np.asarray(data.values))
        cells = [row if isinstance(row, list) else [row] for row in values]
        where = _where(data)
        return cls(
            ["sequence", "position", *names],
            [[*at, *row] for at, row in zip(where, cells, strict=True)],
            range(2, 2 + width),
        )

    def columns(self, start: int, stop: int) -> dict[str, list[Any]]:
        """Return some rows as columns by name."""
        some = self.rows[start:stop]
        return {name: [row[number] for row in some] for number, name in enumerate(self.names)}

    def free_name(self, name: str) -> str:
        """Return a name for a further column that is not taken."""
        return name if name not in self.names else self.free_name(f"predicted_{name}")


def _default_names(data: Sequences, width: int) -> list[str]:
    if data.vocabulary is not None:
        return ["symbol"]
    return [f"column_{column}" for column in range(width)]


def _where(data: Sequences) -> list[tuple[Any, int]]:
    """Return sequence and position of every observation."""
    names = data.names or range(data.n_sequences)
    return [
        (name, position)
        for name, length in zip(names, data.lengths.tolist(), strict=True)
        for position in range(length)
    ]


def _rows_of_table(path: Path, data: Sequences) -> tuple[list[str], list[list[str]]] | None:
    """Return the header and the rows of a text table in the order of the observations; None if they do not agree."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    if not suffixes or suffixes[-1] not in SEPARATORS:
        return None
    text = (line + "\n" for _, line in numbered_lines(path))
    lines = csv.reader(text, delimiter=SEPARATORS[suffixes[-1]])
    header, *rows = [row for row in lines if any(cell.strip() for cell in row)] or [[]]
    if len(rows) != data.n_observations or any(len(row) != len(header) for row in rows):
        return None
    if data.grouped_by is None:
        return header, rows
    if data.grouped_by not in header or data.names is None:
        return None
    key, groups = header.index(data.grouped_by), {}  # type: ignore[var-annotated]
    for row in rows:
        groups.setdefault(row[key].strip(), []).append(row)
    ordered = [groups.get(str(name), []) for name in data.names]
    if [len(group) for group in ordered] != data.lengths.tolist():
        return None
    return header, [row for group in ordered for row in group]
