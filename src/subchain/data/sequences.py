"""Observations of many sequences as one flat array and the offsets of the sequences.

Nothing is padded: sequence *i* is the view ``values[offsets[i]:offsets[i + 1]]``. The flat array may be a
memory-mapped file (``numpy.memmap``), of which only the parts that are used are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.data.columns import Columns, as_slice, resolve_columns
from subchain.data.dtypes import SUPPORTED, is_supported
from subchain.data.mapped import MappedFile, intact, is_memory_mapped
from subchain.data.missing import count_missing
from subchain.data.vocabulary import Vocabulary, recode
from subchain.errors import InputError

FINGERPRINT_VALUES = 4096
RANGE_BLOCK = 1 << 17

Vocabularies = Vocabulary | Sequence[Vocabulary | None] | None


class Sequences:
    """Observation sequences of any lengths in one flat array.

    Use :func:`as_sequences` to convert lists, tables and files; use this class if the data are flat already.

    Parameters
    ----------
    values : array, shape (N,) or (N, D)
        All observations, one sequence after the other. Missing: -1 in integer data, nan in floating data. Booleans are
        viewed as 0 and 1. Arrays in C order and memory-mapped files are not copied; others are, once.
    offsets : array of int, shape (n_sequences + 1,), optional
        Index of the first position of each sequence, and N. One sequence if not given. Sequences may be empty.
    columns : sequence of str, optional
        Names of the D columns.
    names : sequence of str or int, optional
        Names of the sequences.
    vocabulary : Vocabulary, or one Vocabulary or None per column, optional
        Symbols of the integer codes.
    grouped_by : str, optional
        The column of the source table by which rows were grouped into sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import Sequences
    >>> data = Sequences(np.array([5, 6, 7, 8, 9]), offsets=[0, 3, 3, 5])
    >>> data.n_sequences, data.n_observations, data.lengths
    (3, 5, array([3, 0, 2]))
    >>> data[2]
    array([8, 9])
    """

    __slots__ = ("_range", "_values", "columns", "file", "grouped_by", "names", "offsets", "vocabularies")

    def __init__(
        self,
        values: NDArray[Any],
        offsets: ArrayLike | None = None,
        *,
        columns: Iterable[str] | None = None,
        names: Iterable[str | int] | None = None,
        vocabulary: Vocabularies = None,
        grouped_by: str | None = None,
    ) -> None:
        self._values: Final[NDArray[Any]] = _checked_values(values)
        self.file: Final[MappedFile | None] = MappedFile.of(self._values)
        self.offsets: Final[NDArray[np.int64]] = _checked_offsets(offsets, len(self._values))
        self.columns: Final[tuple[str, ...] | None] = _checked_columns(columns, self.n_features)
        self.names: Final[tuple[str | int, ...] | None] = _checked_names(names, self.n_sequences)
        self.vocabularies: Final[tuple[Vocabulary | None, ...]] = one_per_column(vocabulary, self.n_features)
        self.grouped_by: Final[str | None] = grouped_by
        self._range: tuple[float, float] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        settings: dict[str, Any] = {"columns": self.columns, "names": self.names, "vocabulary": self.vocabularies}
        return partial(Sequences, **settings, grouped_by=self.grouped_by), (self.values, self.offsets)

    @property
    def values(self) -> NDArray[Any]:
        """All observations, (N,) or (N, D); an `InputError` if the file that they are mapped from has changed."""
        self.check_file()
        return self._values

    def at(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return the observations at flat positions (n,), all of which exist, as an array (n,) or (n, D)."""
        values = self.values
        if values.flags.c_contiguous:
            return np.take(values, positions, axis=0, mode="clip")  # no position is out of range
        return np.asarray(values[positions])  # of a mapped file in Fortran order `take` would copy all

    def check_file(self) -> None:
        """Raise an `InputError` if the observations are mapped from a file that has changed."""
        if self.file is not None:
            self.file.check()

    def intact(self) -> AbstractContextManager[None]:
        """Return a context at whose end `check_file` is called, also in the place of an error inside."""
        return intact(self.file)

    @property
    def n_sequences(self) -> int:
        """Number of sequences, including empty ones."""
        return len(self.offsets) - 1

    @property
    def n_observations(self) -> int:
        """Total number of positions, N."""
        return len(self._values)

    @property
    def n_features(self) -> int:
        """Number of columns, D; 1 for a flat array."""
        return 1 if self._values.ndim == 1 else int(self._values.shape[1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of positions of each sequence, shape (n_sequences,)."""
        return np.diff(self.offsets)

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Vocabulary of single-column data, or None."""
        return self.vocabularies[0] if self.n_features == 1 else None

    def __len__(self) -> int:
        return self.n_sequences

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(self.n_sequences))

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | NDArray[Any]) -> Sequences: ...
    def __getitem__(
        self, which: int | np.integer[Any] | slice | Sequence[int] | NDArray[Any]
    ) -> NDArray[Any] | Sequences:
        if isinstance(which, (int, np.integer)):
            return self._one(int(which))
        if isinstance(which, slice):
            return self._several(np.arange(self.n_sequences)[which])
        return self._several(self._chosen(np.asarray(which)))

    def _one(self, index: int) -> NDArray[Any]:
        if not -self.n_sequences <= index < self.n_sequences:
            raise IndexError(f"sequence {index} does not exist; there are {self.n_sequences} sequences.")
        index %= self.n_sequences
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def _chosen(self, which: NDArray[Any]) -> NDArray[np.int64]:
        if which.dtype == np.bool_ and which.shape == (self.n_sequences,):
            return np.flatnonzero(which)
        if which.ndim != 1 or (which.size and which.dtype.kind not in "iu"):
            raise IndexError(
                f"sequences are chosen by a number, a slice, an array of numbers or {self.n_sequences} booleans, "
                f"not by {which.dtype} of shape {which.shape}."
            )
        chosen = which.astype(np.int64)
        outside = chosen[(chosen < -self.n_sequences) | (chosen >= self.n_sequences)]
        if outside.size:
            raise IndexError(f"sequence {outside[0]} does not exist; there are {self.n_sequences} sequences.")
        return np.asarray(chosen % max(1, self.n_sequences))

    def _several(self, chosen: NDArray[np.int64]) -> Sequences:
        offsets = np.concatenate([[0], np.cumsum(self.lengths[chosen])])
        if len(chosen) and np.array_equal(chosen, np.arange(chosen[0], chosen[0] + len(chosen))):
            values = self.values[self.offsets[chosen[0]] : self.offsets[chosen[-1] + 1]]  # neighbours: still a view
        else:
            starts = np.repeat(self.offsets[chosen] - offsets[:-1], np.diff(offsets))
            values = np.asarray(self.values[starts + np.arange(offsets[-1])])
        names = None if self.names is None else [self.names[i] for i in chosen]
        return Sequences(
            values, offsets, columns=self.columns, names=names, vocabulary=self.vocabularies, grouped_by=self.grouped_by
        )

    def split(self, table: NDArray[Any]) -> list[NDArray[Any]]:
        """Split a table with one row per position into one view per sequence.

        Parameters
        ----------
        table : array, shape (N, ...)

        Returns
        -------
        list of n_sequences arrays

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> Sequences(np.zeros(3), [0, 1, 3]).split(np.array([7, 8, 9]))
        [array([7]), array([8, 9])]
        """
        if len(table) != self.n_observations:
            raise InputError(f"the table has {len(table)} rows, but the data have {self.n_observations} positions.")
        return [table[start:end] for start, end in pairwise(self.offsets.tolist())]

    def column_indices(self, columns: Columns | None) -> NDArray[np.int64]:
        """Return the numbers of columns given by name or number, (n,); None means all columns.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> Sequences(np.zeros((4, 2)), columns=["speed", "angle"]).column_indices("angle")
        array([1])
        """
        return resolve_columns(columns, self.columns, self.n_features)

    def select(self, columns: Columns | None) -> NDArray[Any]:
        """Return the values of some columns, given by name or number, shape (N, number of columns).

        Equally spaced columns are returned as a view; others are copied.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> Sequences(np.array([[1, 2], [3, 4]]), columns=["a", "b"]).select("b")
        array([[2],
               [4]])
        """
        indices = self.column_indices(columns)
        table = self.values.reshape(-1, 1) if self.values.ndim == 1 else self.values
        return table[:, as_slice(indices)]

    def locate(self, position: int) -> tuple[int, int]:
        """Return the sequence of a flat position and the position within this sequence.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> Sequences(np.zeros(5), [0, 3, 3, 5]).locate(4)
        (2, 1)
        """
        sequence = int(np.searchsorted(self.offsets, position, side="right")) - 1
        return sequence, position - int(self.offsets[sequence])

    def label(self, sequence: int) -> str:
        """Return the number and the name of a sequence as text for messages.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> Sequences(np.zeros(5), names=["p7"]).label(0)
        "sequence 0 ('p7')"
        """
        return f"sequence {sequence}" + ("" if self.names is None else f" ({self.names[sequence]!r})")

    def describe(self, position: int) -> str:
        """Return the sequence and the position within it of a flat position, as text for messages.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> Sequences(np.zeros(5), [0, 3, 5]).describe(4)
        'sequence 1, position 1'
        """
        sequence, inside = self.locate(position)
        return f"{self.label(sequence)}, position {inside}"

    def recode(self, vocabulary: Vocabularies) -> Sequences:
        """Return the data recoded to other vocabularies, such as those of the training data.

        A column without a vocabulary keeps its codes and gets the new vocabulary. Nothing is copied if the
        vocabularies agree.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences, Vocabulary
        >>> data = Sequences(np.array([0, 1, 1]), vocabulary=Vocabulary(["no", "yes"]))
        >>> data.recode(Vocabulary(["yes", "no"])).values
        array([1, 0, 0], dtype=int32)
        """
        pairs = list(zip(self.vocabularies, one_per_column(vocabulary, self.n_features), strict=True))
        values = self.values
        if any(old is not None and new is not None and old != new for old, new in pairs):
            columns = [_recoded(column, *pair) for column, pair in zip(self.select(None).T, pairs, strict=True)]
            values = columns[0] if self.values.ndim == 1 else np.column_stack(columns)
        kept = [old if new is None else new for old, new in pairs]
        return self.with_values(values, kept)

    def with_values(self, values: NDArray[Any], vocabulary: Vocabularies) -> Sequences:
        """Return the same sequences with other values, of the same shape, and their vocabularies.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> Sequences(np.array([3, 4]), names=["p7"]).with_values(np.array([0, 1]), None).names
        ('p7',)
        """
        return Sequences(
            values, self.offsets, columns=self.columns, names=self.names, vocabulary=vocabulary,
            grouped_by=self.grouped_by,
        )  # fmt: skip

    def value_range(self) -> tuple[float, float]:
        """Return the smallest and the largest value, ignoring nan; (0, 0) if there are no values.

        The data are read once, block by block, and the result is cached.

        Examples
        --------
        >>> import numpy as np
        >>> Sequences(np.array([2.0, np.nan, -1.5])).value_range()
        (-1.5, 2.0)
        """
        if self._range is None:
            smallest, largest = np.inf, -np.inf
            for start in range(0, self.n_observations, RANGE_BLOCK):
                block = np.asarray(self.values[start : start + RANGE_BLOCK])
                if block.size:
                    smallest = min(smallest, float(np.fmin.reduce(block, axis=None)))
                    largest = max(largest, float(np.fmax.reduce(block, axis=None)))
            self._range = (smallest, largest) if smallest <= largest else (0.0, 0.0)
        return self._range

    def fingerprint(self) -> str:
        """Return a hash of shape, type, offsets and a fixed sample of at most 4096 values.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Sequences
        >>> a, b = Sequences(np.arange(6)), Sequences(np.arange(6), [0, 2, 6])
        >>> a.fingerprint() == b.fingerprint()
        False
        """
        table = self.select(None)
        columns = _spread(table.shape[1], FINGERPRINT_VALUES)
        rows = _spread(len(table), FINGERPRINT_VALUES // len(columns))
        state = hashlib.blake2b(digest_size=8)
        state.update(f"{self.values.shape} {self.values.dtype.str}".encode())
        state.update(self.offsets.tobytes())
        state.update(table[rows[:, None], columns].tobytes())
        return state.hexdigest()

    def __repr__(self) -> str:
        parts = [f"{self.n_sequences} sequences", f"{self.n_observations} positions", f"{self.n_features} columns"]
        if not is_memory_mapped(self._values) and (n_missing := count_missing(self._values)):
            parts.append(f"{n_missing} missing entries")
        return f"Sequences({', '.join(parts)}, {self.values.dtype})"


def one_per_column(vocabulary: Vocabularies, n_features: int) -> tuple[Vocabulary | None, ...]:
    """Return the vocabulary, or None, of each column."""
    if vocabulary is None:
        return (None,) * n_features
    checked = (vocabulary,) if isinstance(vocabulary, Vocabulary) else tuple(vocabulary)
    if len(checked) != n_features:
        raise InputError(
            f"one vocabulary (or None) is needed for each of {n_features} columns, but {len(checked)} are given."
        )
    return checked


def require_observations(sequences: Sequences) -> Sequences:
    """Return the sequences; raise an `InputError` if they have no positions."""
    if sequences.n_observations == 0:
        raise InputError(f"the data hold no observations ({sequences.n_sequences} sequences, all empty).")
    return sequences


def _spread(n: int, at_most: int) -> NDArray[np.int64]:
    """Return at most `at_most` of the numbers 0 … n − 1, evenly spaced from the first to the last."""
    count = min(n, at_most)
    return np.arange(count) * (n - 1) // max(1, count - 1)


def _recoded(column: NDArray[Any], old: Vocabulary | None, new: Vocabulary | None) -> NDArray[Any]:
    if old is None or new is None or old == new:
        return column
    if column.dtype.kind != "f":
        return recode(column, old.symbols, new)
    codes = recode(np.where(np.isnan(column), -1, column).astype(np.int64), old.symbols, new)
    return np.where(codes == -1, np.nan, codes)


def _checked_values(values: NDArray[Any]) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise InputError("Sequences takes plain arrays; as_sequences turns masked entries into missing values.")
    values = values if isinstance(values, np.memmap) else np.asarray(values)
    if values.dtype == np.bool_:
        values = values.view(np.uint8)
    if not is_supported(values.dtype):
        raise InputError(f"observations of type {values.dtype} cannot be used; they may be {SUPPORTED}.")
    if values.ndim not in (1, 2):
        raise InputError(f"observations need the shape (N,) or (N, D), but have the shape {values.shape}.")
    if values.ndim == 2 and values.shape[1] == 0:
        raise InputError(f"observations of shape {values.shape} have no columns.")
    # Every pass gathers rows, for which NumPy would copy an array that is not in C order as a whole, block after block.
    return values if values.flags.c_contiguous or is_memory_mapped(values) else np.ascontiguousarray(values)


def _checked_offsets(offsets: ArrayLike | None, n_observations: int) -> NDArray[np.int64]:
    given = np.asarray([0, n_observations] if offsets is None else offsets)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
        raise InputError(f"offsets must be a flat array of integers, not {given.dtype} of shape {given.shape}.")
    checked = given.astype(np.int64)
    if checked[0] != 0 or checked[-1] != n_observations:
        raise InputError(
            f"offsets must run from 0 to the number of observations, {n_observations}, but run from {checked[0]} to "
            f"{checked[-1]}."
        )
    falls = checked[1:] < checked[:-1]
    if falls.any():
        i = int(falls.argmax())
        raise InputError(
            f"offsets must not decrease, but sequence {i} would run from {checked[i]} to {checked[i + 1]}."
        )
    checked.flags.writeable = False
    return checked


def _checked_columns(columns: Iterable[str] | None, n_features: int) -> tuple[str, ...] | None:
    if columns is None:
        return None
    checked = (columns,) if isinstance(columns, str) else tuple(columns)
    if len(checked) != n_features or not all(isinstance(name, str) for name in checked):
        raise InputError(f"one name (a string) is needed for each of {n_features} columns, but columns is {checked!r}.")
    if len(set(checked)) < len(checked):
        raise InputError(f"the names of the columns must differ, but are {', '.join(map(repr, checked))}.")
    return checked


def _checked_names(names: Iterable[str | int] | None, n_sequences: int) -> tuple[str | int, ...] | None:
    if names is None:
        return None
    checked = (names,) if isinstance(names, str) else tuple(names)
    if len(checked) != n_sequences:
        raise InputError(f"one name is needed for each of {n_sequences} sequences, but there are {len(checked)} names.")
    return checked
