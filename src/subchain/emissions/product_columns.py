"""Columns of a table as the data of a part of a product, and errors that name the part."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.emissions.base import Emission
from subchain.emissions.categorical import Categorical
from subchain.emissions.counts import PASS_ROWS, as_codes, check_counts
from subchain.errors import InputError


@contextlib.contextmanager
def in_part(name: str) -> Iterator[None]:
    """Prefix the messages of input errors with the name of the part."""
    try:
        yield
    except InputError as error:
        raise InputError(f"part {name!r} of the Product: {error}") from error


def check_families(families: Mapping[str, Emission]) -> None:
    """Raise an `InputError` unless these can be the parts of a product: families that say what they describe."""
    if not families:
        raise InputError("a Product needs at least one family: Product(a=Gaussian(columns=['x', 'y'])).")
    for name, family in families.items():
        if not isinstance(family, Emission) or hasattr(family, "families"):
            raise InputError(
                f"part {name!r} of a Product is {family!r}; expected a family such as Gaussian(columns=['x', 'y'])."
            )
        if "__" in name:
            raise InputError(
                f"part {name!r} of the Product has two underscores in a row in its name, which set_params cannot "
                "address; choose another name."
            )
        if family.columns is None and len(families) > 1:
            raise InputError(
                f"part {name!r} of the Product does not say which columns it describes; set "
                f"{name}={type(family).__name__}(columns=...) to names or indices of columns."
            )


def check_disjoint(slots: Mapping[str, NDArray[np.int64]]) -> None:
    """Raise an `InputError` if two parts share a column."""
    owner: dict[int, str] = {}
    for name, columns in slots.items():
        for column in columns.tolist():
            if column < 0:
                raise InputError(f"part {name!r} of the Product has column {column}; columns are numbered from 0.")
            if column in owner:
                raise InputError(
                    f"column {column} is given to part {owner[column]!r} and to part {name!r} of the Product; "
                    "a column can belong to one part only."
                )
            owner[column] = name


def view(data: Sequences, family: Emission, columns: NDArray[np.int64]) -> Sequences:
    """Return a part's columns as a data set; evenly spaced columns are a view, not a copy."""
    values = data.select(columns.tolist())
    view = Sequences(
        values,
        data.offsets,
        columns=[str(column) if data.columns is None else data.columns[column] for column in columns],
        names=data.names,
        vocabulary=[data.vocabularies[column] for column in columns],
    )
    return _coded(view) if isinstance(family, Categorical) and values.dtype.kind == "f" else view


def _coded(data: Sequences) -> Sequences:
    """Convert codes stored as floating-point numbers to integers, −1 where missing."""
    check_counts(data, "Categorical", "codes, which are whole numbers from 0")
    codes = np.empty(data.values.shape, dtype=np.int64)
    for start in range(0, len(codes), PASS_ROWS):
        rows = slice(start, start + PASS_ROWS)
        codes[rows] = as_codes(np.asarray(data.values[rows]))
    return Sequences(codes, data.offsets, columns=data.columns, names=data.names, vocabulary=data.vocabularies)
