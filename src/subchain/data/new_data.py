"""Conversion of new data with the vocabularies and the columns of the training data."""

from __future__ import annotations

from collections.abc import Sequence

from subchain.data.convert import as_sequences
from subchain.data.sequences import Sequences
from subchain.data.table_columns import columns_of_table
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError


def as_sequences_like(
    x: object, vocabularies: Sequence[Vocabulary | None], columns: Sequence[str] | None = None,
    grouped_by: str | None = None,
) -> Sequences:  # fmt: skip
    """Convert data of any supported form, with the codes and the order of columns of earlier data.

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
    is_grouped = grouped_by is not None and grouped_by in columns_of_table(x)
    data = as_sequences(x, sequence=grouped_by if is_grouped else None)
    if columns is not None and data.columns is not None and tuple(columns) != data.columns:
        data = _in_order(data, columns)
    known = list(vocabularies) or [None] * data.n_features
    for column, (ours, theirs) in enumerate(zip(data.vocabularies, known, strict=False)):
        if ours is not None and theirs is None:
            name = "" if data.columns is None else f" (in column {data.columns[column]!r})"
            raise InputError(
                f"the data hold symbols such as {ours.to_list()[0]!r}{name}, but the model was fitted to plain numbers "
                "and does not know their codes; give it codes, or fit it with the symbols."
            )
    return data.recode(tuple(known)) if any(known) and len(known) == data.n_features else data


def _in_order(data: Sequences, columns: Sequence[str]) -> Sequences:
    """Return the data with the named columns only, in this order."""
    index = data.column_indices(list(columns))
    vocabularies = tuple(data.vocabularies[column] for column in index)
    return Sequences(
        data.select(list(columns)), data.offsets, columns=columns, names=data.names, vocabulary=vocabularies,
        grouped_by=data.grouped_by,
    )  # fmt: skip
