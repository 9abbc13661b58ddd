"""Conversion of new data with the vocabularies and the columns of the training data."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subchain.data.convert import as_sequences
from subchain.data.missing import is_missing
from subchain.data.number_symbols import as_texts, holds_numbers
from subchain.data.sequences import Sequences
from subchain.data.table_columns import columns_of_table
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError

Vocabularies = Sequence[Vocabulary | None]
#: Maximum number of unknown symbols that a warning names.
SHOWN = 5


def as_sequences_like(
    x: object, vocabularies: Sequence[Vocabulary | None], columns: Sequence[str] | None = None,
    grouped_by: str | None = None,
) -> Sequences:  # fmt: skip
    """Convert data of any supported form, with the codes and the order of columns of earlier data.

    Symbols that the vocabularies do not have become their unknown symbol; without one they are missing, with a warning.

    Parameters
    ----------
    x : as in `as_sequences`
    vocabularies : vocabulary or None of each column of the earlier data; empty if these had no vocabularies
    columns : names of the columns of the earlier data, if they had any
    grouped_by : column that divided the earlier table into sequences; it divides `x` too if `x` has this column

    Examples
    --------
    >>> from subchain.data import Vocabulary
    >>> as_sequences_like(["b", "a"], [Vocabulary(["a", "b"])]).values
    array([1, 0], dtype=int32)
    """
    data = read_like(x, columns, grouped_by)
    known = tuple(vocabularies) or (None,) * data.n_features
    for column, (ours, theirs) in enumerate(zip(data.vocabularies, known, strict=False)):
        if ours is not None and theirs is None:
            name = "" if data.columns is None else f" (in column {data.columns[column]!r})"
            raise InputError(
                f"the data hold symbols such as {ours.to_list()[0]!r}{name}, but the model was fitted to plain numbers "
                "and does not know their codes; give it codes, or fit it with the symbols."
            )
    if not any(known) or len(known) != data.n_features:
        return data
    return _without_unknown(_with_symbols(data, known), known).recode(known)


def read_like(x: object, columns: Sequence[str] | None = None, grouped_by: str | None = None) -> Sequences:
    """Convert data of any supported form, with their own codes and the order of columns of earlier data."""
    names = columns_of_table(x)
    sequence = grouped_by if grouped_by is not None and grouped_by in names else None
    if columns is not None and set(columns) <= set(names):
        return as_sequences(x, columns=list(columns), sequence=sequence)
    data = as_sequences(x, sequence=sequence)
    if columns is not None and data.columns is not None and tuple(columns) != data.columns:
        return _in_order(data, columns)
    return data


def _with_symbols(data: Sequences, known: Vocabularies) -> Sequences:
    """Return the data with numbers converted to symbols where symbols are expected and numbers are not codes.

    In arrays they are codes, unless the known symbols are numbers themselves. In tables they are symbols.
    """
    for column, (ours, theirs) in enumerate(zip(data.vocabularies, known, strict=True)):
        if ours is None and theirs is not None and (data.columns is not None or holds_numbers(theirs)):
            codes, texts = as_texts(data.select([column])[:, 0])
            data = _with_column(data, column, codes, Vocabulary(texts))
    return data


def _without_unknown(data: Sequences, known: Vocabularies) -> Sequences:
    """Return the data with symbols made missing that a known vocabulary neither has nor replaces; warn of them."""
    strangers, total = [], 0
    for column, (ours, theirs) in enumerate(zip(data.vocabularies, known, strict=True)):
        if ours is None or theirs is None or ours == theirs or theirs.unknown is not None:
            continue
        values = data.select([column])[:, 0]
        codes = np.where(is_missing(values), -1, values).astype(np.int64)
        is_stranger = np.array([symbol not in theirs for symbol in ours] + [False])[codes]
        if is_stranger.any():
            strangers += [ours.to_list()[code] for code in np.unique(codes[is_stranger])]
            total += int(is_stranger.sum())
            data = _with_column(data, column, np.where(is_stranger, -1, codes), ours)
    if total:
        shown = ", ".join(map(repr, strangers[:SHOWN])) + (", …" if len(strangers) > SHOWN else "")
        warnings.warn(
            f"{total} of {data.n_observations} observations hold symbols that the training data did not have "
            f"({shown}); they are treated as missing.",
            stacklevel=5,
        )
    return data


def _with_column(data: Sequences, column: int, codes: NDArray[np.int64], vocabulary: Vocabulary) -> Sequences:
    """Return the data with one column replaced by codes, -1 where they are missing."""
    is_float = data.values.dtype.kind == "f"
    table = data.select(None).astype(np.float64 if is_float else np.int64)
    table[:, column] = np.where(codes < 0, np.nan, codes) if is_float else codes
    vocabularies = list(data.vocabularies)
    vocabularies[column] = vocabulary
    return data.with_values(table.reshape(data.values.shape), vocabularies)


def _in_order(data: Sequences, columns: Sequence[str]) -> Sequences:
    """Return the data with the named columns only, in this order."""
    index = data.column_indices(list(columns))
    vocabularies = tuple(data.vocabularies[column] for column in index)
    return Sequences(
        data.select(list(columns)), data.offsets, columns=columns, names=data.names, vocabulary=vocabularies,
        grouped_by=data.grouped_by,
    )  # fmt: skip
