"""Which columns of a table belong to which part of a product of families."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import WHOLE_NUMBERS, Range
from subchain.core.records import Record, array, number
from subchain.emissions.base import Values
from subchain.emissions.checks import as_matrix


@dataclasses.dataclass
class Layout(Record):
    """Assignment of the columns of a table to parts.

    Attributes
    ----------
    columns : indices of the first part's columns, then the second's, …
    widths : number of columns of each part
    n_columns : number of columns of the table
    """

    columns: NDArray[np.int64] = array("A", WHOLE_NUMBERS)
    widths: NDArray[np.int64] = array("P", Range("int64", least=1))
    n_columns: int = number(Range(least=1), 1)

    def check_fields(self) -> None:
        if self.widths.sum() != len(self.columns) or self.columns.max() >= self.n_columns:
            raise ValueError("columns of the parts do not fit the table")

    def check_parts(self, parts: Mapping[str, Any]) -> None:
        """Raise a ValueError unless there are columns for each of these parts."""
        if len(parts) != len(self.widths):
            raise ValueError(f"there are columns for {len(self.widths)} parts, but there are {len(parts)}")

    @classmethod
    def of(cls, columns: Iterable[NDArray[np.int64]], n_columns: int) -> Layout:
        """Build the layout in which each part has the given columns."""
        parts = list(columns)
        return cls(np.concatenate(parts), np.array([len(part) for part in parts], dtype=np.int64), n_columns)

    def slots(self) -> list[NDArray[np.int64]]:
        """List the columns of each part."""
        return np.split(self.columns, np.cumsum(self.widths)[:-1])

    def take_apart(self, values: Values) -> list[Values]:
        """Split a block of rows into the columns of each part."""
        table = as_matrix(values)
        return [table[:, columns] for columns in self.slots()]

    def views(self, values: Values) -> list[Values] | None:
        """Split a table into the columns of each part without a copy; None if those of a part are at odd distances."""
        slices = [even_slice(columns) for columns in self.slots()]
        known = [columns for columns in slices if columns is not None]
        return [as_matrix(values)[:, columns] for columns in known] if len(known) == len(slices) else None

    def put_together(self, blocks: Iterable[Values]) -> Values:
        """Merge the parts' columns into one table; columns of no part are filled with missing values."""
        parts = [as_matrix(block) for block in blocks]
        kind = np.result_type(*parts)
        table = np.full((len(parts[0]), self.n_columns), np.nan if kind.kind == "f" else -1, dtype=kind)
        for columns, part in zip(self.slots(), parts, strict=True):
            table[:, columns] = part
        return table


def even_slice(columns: NDArray[np.int64]) -> slice | None:
    """Return a slice that means the same as these indices; None if there is none.

    Examples
    --------
    >>> even_slice(np.array([3])), even_slice(np.array([1, 3, 5])), even_slice(np.array([4, 1, 2]))
    (slice(3, 4, 1), slice(1, 6, 2), None)
    """
    steps = np.diff(columns)
    step = int(steps[0]) if len(steps) else 1
    if step < 1 or (steps != step).any():
        return None
    return slice(int(columns[0]), int(columns[-1]) + 1, step)
