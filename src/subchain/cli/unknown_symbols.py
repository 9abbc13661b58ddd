"""Symbols of new data that a model does not know."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from subchain.data import Sequences, Vocabulary

#: Number of unknown symbols that are named.
NAMED = 3


def tell_unknown(data: Sequences, vocabularies: Sequence[Vocabulary | None]) -> None:
    """Warn of symbols that are read as unknown ones: how many observations, how many symbols, some of them.

    Parameters
    ----------
    data : the data as they were read, with vocabularies of their own
    vocabularies : vocabulary of the model for each column
    """
    table = data.values.reshape(len(data.values), -1)
    for column, (own, known) in enumerate(zip(data.vocabularies, vocabularies, strict=False)):
        if own is None or known is None or own is known or known.unknown is None:
            continue
        symbols = own.to_list()
        is_unknown = np.array([symbol not in known for symbol in symbols])
        codes = np.asarray(table[:, column])
        codes = codes[codes >= 0].astype(np.int64)
        counts = np.bincount(codes, minlength=len(symbols)) * is_unknown
        if not counts.any():
            continue
        frequent = [repr(symbols[code]) for code in np.argsort(-counts, kind="stable")[:NAMED] if counts[code]]
        where = "" if data.columns is None else f" in column {data.columns[column]!r}"
        n_symbols = int((counts > 0).sum())
        warnings.warn(
            f"{int(counts.sum()):,} of {len(codes):,} symbols{where} are not in the vocabulary of the model and are "
            f"read as {known.unknown}: {n_symbols:,} different, such as {', '.join(frequent)}.",
            stacklevel=2,
        )
