"""Whole numbers of a table as symbols, which may be negative: a code cannot be, because -1 means missing.

The vocabulary holds the numbers as text in increasing order. A vocabulary that begins with a negative number tells that
its symbols are numbers; numbers in new data are then looked up by their values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.missing import is_missing
from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary


def holds_numbers(vocabulary: Vocabulary) -> bool:
    """Return whether the symbols of a vocabulary are whole numbers that are looked up by their values.

    Examples
    --------
    >>> holds_numbers(Vocabulary(["-1", "0", "1"])), holds_numbers(Vocabulary(["a", "b"]))
    (True, False)
    """
    first = vocabulary.symbols[0] if len(vocabulary) else ""
    return first.startswith("-") and first[1:].isdecimal()


def numbers_as_symbols(data: Sequences, columns: Iterable[int]) -> Sequences:
    """Return the data of a table with whole numbers of some columns coded as symbols where some are negative.

    Columns with a vocabulary, without negative numbers, or with fractions are not coded. A single column of codes
    becomes integers.

    Examples
    --------
    >>> import numpy as np
    >>> data = Sequences(np.array([-1.0, 1.0, np.nan]), columns=["turn"])
    >>> coded = numbers_as_symbols(data, [0])
    >>> coded.values, coded.vocabulary.to_list()
    (array([ 0,  1, -1]), ['-1', '1'])
    """
    if data.columns is None or data.values.dtype.kind != "f":
        return data
    vocabularies, table, is_coded = list(data.vocabularies), data.select(None), False
    for column in columns:
        values = np.asarray(table[:, column])
        seen = np.unique(values[~np.isnan(values)])
        if vocabularies[column] is not None or not len(seen) or (np.floor(seen) != seen).any():
            continue
        if seen[0] < 0:
            vocabularies[column] = Vocabulary([str(int(number)) for number in seen])
            values = np.where(np.isnan(values), np.nan, np.searchsorted(seen, values))
        table = table if is_coded else table.copy()
        table[:, column], is_coded = values, True
    if is_coded and data.n_features == 1:
        table = np.where(np.isnan(table), -1, table).astype(np.int64)
    return data.with_values(table.reshape(data.values.shape), vocabularies) if is_coded else data


def as_texts(column: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Return numbers (n,) as indices of texts, -1 where they are missing, and the texts.

    Integers that are below -1 somewhere have no missing entries.

    Examples
    --------
    >>> import numpy as np
    >>> as_texts(np.array([7.0, np.nan, 2.5]))
    (array([ 1, -1,  0]), ['2.5', '7'])
    """
    missing = is_missing(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=np.bool_)
    seen, place = np.unique(column[~missing], return_inverse=True)
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[~missing] = place
    return codes, [str(int(number)) if number == int(number) else str(number) for number in seen.tolist()]
