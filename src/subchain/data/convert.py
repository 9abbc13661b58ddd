"""Conversion of arrays, lists, dictionaries, tables and files to :class:`Sequences`.

All observations enter the package through :func:`as_sequences`. Arrays in C order are not copied, and .npy files are
memory-mapped.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from os import PathLike
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.data.coding import CodedLines
from subchain.data.columns import Columns
from subchain.data.delimited import read_csv
from subchain.data.dtypes import SUPPORTED, cast, is_supported, joined
from subchain.data.lines import existing_file
from subchain.data.mapped import files_of, intact, is_memory_mapped
from subchain.data.missing import check_finite
from subchain.data.sequences import (
    Sequences,
    Vocabularies,
    one_per_column,
    require_observations,
)
from subchain.data.tables import from_table, is_table, read_parquet, to_arrow
from subchain.data.unpacking import COMPRESSED, is_compressed, open_unpacked
from subchain.errors import FileFormatError, InputError, SubchainError

Symbols = list[str | None]
Piece = NDArray[Any] | Symbols


def as_sequences(
    x: object,
    lengths: ArrayLike | None = None,
    columns: Columns | None = None,
    sequence: str | int | None = None,
    vocabulary: Vocabularies = None,
    names: Iterable[str | int] | None = None,
) -> Sequences:
    """Convert data of any supported form to sequences of observations.

    Parameters
    ----------
    x : data
        - an array (N,) or (N, D): one sequence, or several if ``lengths`` is given. Masked entries become missing.
        - a list of arrays or lists: one sequence per item, so ``[[1, 2], [3, 4]]`` is two sequences. A list of
          single numbers or strings is one sequence; ``None`` in it is missing.
        - a dictionary of sequences by name, ``{"GM12878": x1, "K562": x2}``: one named sequence per entry. For a
          dictionary of *columns*, make a table first: ``pandas.DataFrame(x)`` or
          ``numpy.column_stack(list(x.values()))``.
        - a tuple ``(X, lengths)``: any tuple of two items of which the second is a flat array or list of integers. Put
          two sequences of integers in a list instead.
        - a path: ``.npy`` is memory-mapped; ``.parquet``, ``.csv`` and ``.tsv`` are read as tables. For text use
          :func:`read_text` or :func:`read_conllu`.
        - a table or column of pandas, polars or Arrow, or a list of tables (one sequence each).
        - :class:`Sequences`, which are returned unchanged.

        Missing observations are -1 in integer data and nan in floating data. Integers with masked or null entries
        become floats, so that no valid number means missing. Booleans become 0 and 1. Strings become codes with a
        vocabulary, the most frequent symbol first.
    lengths : array of int, shape (n_sequences,), optional
        Number of positions of each sequence, if x is one flat array, file or table.
    columns : str, int or list of them, optional
        For a table: the observed columns (all if not given). For arrays: names of the D columns.
    sequence : str or int, optional
        For a table: the column with the name of the sequence that a row belongs to.
    vocabulary : Vocabulary, or one Vocabulary or None per column, optional
        Existing vocabularies (of the training data) to use instead of new ones; data with other vocabularies are
        recoded.
    names : list of str or int, optional
        Names of the sequences, if the data have none. (Dictionaries and tables with ``sequence`` have names.)

    Returns
    -------
    Sequences

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import as_sequences
    >>> as_sequences([np.array([0, 1, 1]), np.array([2, 0])]).lengths
    array([3, 2])
    >>> as_sequences((np.zeros((5, 2)), [3, 2])).lengths
    array([3, 2])
    >>> as_sequences([["sun", "rain"], ["sun"]]).vocabulary.symbols
    ('sun', 'rain')
    >>> as_sequences({"GM12878": np.zeros((5, 2)), "K562": np.zeros((3, 2))}).names
    ('GM12878', 'K562')
    >>> as_sequences([[0, 1, 1], [2, 0]], names=["monday", "tuesday"]).label(1)
    "sequence 1 ('tuesday')"
    """
    if isinstance(x, Mapping) and not is_table(x):
        if lengths is not None or names is not None:
            raise InputError("a dictionary has named sequences; lengths and names cannot be given with it.")
        x, names = _entries(x)
    if lengths is None and isinstance(x, tuple) and _is_pair(x):
        x, lengths = x
    found = _read(x, columns, sequence, vocabulary)
    if lengths is not None:
        found = _divided(found, lengths)
    return require_observations(found if names is None else _named(found, names))


def _entries(x: Mapping[Any, Any]) -> tuple[list[Any], list[str | int]]:
    """Return the sequences of a dictionary and their names."""
    for name, sequence in x.items():
        if _is_scalar(sequence):
            raise InputError(f"x[{name!r}] is {sequence!r}, but the values of a dictionary must be sequences.")
        if not isinstance(name, (str, int)):
            raise InputError(f"{name!r} cannot be the name of a sequence; names are strings or integers.")
    return list(x.values()), list(x)


def _named(found: Sequences, names: Iterable[str | int]) -> Sequences:
    """Return the sequences with names; raise an `InputError` if they have names already."""
    if found.names is not None:
        raise InputError("names are given, but the sequences of the data have names already; leave names out.")
    return Sequences(
        found.values, found.offsets, columns=found.columns, names=names, vocabulary=found.vocabularies,
        grouped_by=found.grouped_by,
    )  # fmt: skip


def _read(x: Any, columns: Columns | None, sequence: str | int | None, vocabulary: Vocabularies) -> Sequences:
    """Convert data of any supported form except dictionaries and (X, lengths)."""
    if isinstance(x, (str, PathLike)):
        return _read_path(x, columns, sequence, vocabulary)
    if is_table(x):
        return from_table(to_arrow(x), columns, sequence, vocabulary)
    if sequence is not None:
        raise InputError(f"sequence={sequence!r} names a column of a table, but x is {_kind(x)}; use lengths instead.")
    if isinstance(x, Sequences):
        if columns is not None:
            raise InputError("columns cannot be given with Sequences, which have their own; leave columns out.")
        return x if vocabulary is None else x.recode(vocabulary)
    if isinstance(x, (list, tuple)) and x and is_table(x[0]):
        return _from_tables(x, columns, vocabulary)
    if isinstance(x, (list, tuple)) and _are_alike(x):
        pieces: list[Piece] = list(x)
    elif isinstance(x, (list, tuple)) and not (x and _is_scalar(x[0])):
        pieces = [_piece(item, f"sequence {i}") for i, item in enumerate(x)]
    else:
        pieces = [_piece(x, "x")]
    return _from_pieces(pieces, columns, vocabulary)


def _is_pair(x: tuple[Any, ...]) -> bool:
    """Return whether a tuple is (X, lengths)."""
    return len(x) == 2 and _are_whole_numbers(x[1])


def _are_whole_numbers(x: object) -> bool:
    if isinstance(x, (list, tuple)):
        return bool(x) and all(isinstance(item, (int, np.integer)) and not isinstance(item, bool) for item in x)
    return isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "iu"


def _divided(found: Sequences, lengths: ArrayLike) -> Sequences:
    """Return one flat sequence divided into several of the given lengths."""
    given = np.asarray(lengths)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"lengths must be a flat array of integers, not {given.dtype} of shape {given.shape}.")
    if found.n_sequences != 1:
        raise InputError(f"lengths are given, but the data are already divided into {found.n_sequences} sequences.")
    negative = np.flatnonzero(given < 0)
    if negative.size:
        raise InputError(f"the length of sequence {negative[0]} is {given[negative[0]]}; lengths must not be negative.")
    total = int(given.sum())
    if total != found.n_observations:
        raise InputError(f"the lengths add up to {total}, but there are {found.n_observations} observations.")
    offsets = np.concatenate([[0], np.cumsum(given, dtype=np.int64)])
    return Sequences(found.values, offsets, columns=found.columns, vocabulary=found.vocabularies)


def _read_path(
    path: str | PathLike[str], columns: Columns | None, sequence: str | int | None, vocabulary: Vocabularies
) -> Sequences:
    found = existing_file(path)
    suffixes = [suffix.lower() for suffix in found.suffixes]
    kind = next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")
    if kind in (".parquet", ".pq"):
        return read_parquet(found, columns, sequence, vocabulary)
    if kind in (".csv", ".tsv"):
        return read_csv(found, columns, sequence, vocabulary)
    if kind == ".npy":
        return _read(mapped_array(found), columns, sequence, vocabulary)
    reader = {".txt": "read_text", ".conllu": "read_conllu"}.get(kind)
    hint = f"; read it with subchain.data.{reader}(path) first" if reader else ""
    raise InputError(
        f"data are read from files that end in .npy, .parquet, .csv or .tsv, but the path is {str(path)!r}{hint}."
    )


def mapped_array(path: Path) -> NDArray[Any]:
    """Return the array of an .npy file, memory-mapped unless the file is compressed."""
    try:
        if is_compressed(path):
            return np.asarray(np.load(io.BytesIO(open_unpacked(path).read())))
        return np.lib.format.open_memmap(path, mode="r")
    except SubchainError:
        raise
    except (ValueError, OSError, EOFError, TypeError, OverflowError, MemoryError, TokenError) as error:
        raise FileFormatError(
            f"{str(path)!r} cannot be read as a NumPy array; it may be damaged or of another kind: {error}"
        ) from error


def _from_tables(tables: Iterable[Any], columns: Columns | None, vocabulary: Vocabularies) -> Sequences:
    """Convert a list of tables, one sequence each."""
    import pyarrow

    arrows = []
    for i, table in enumerate(tables):
        if not is_table(table):
            raise InputError(f"sequence {i} is {_kind(table)}, but sequence 0 is a table; give tables for all of them.")
        arrows.append(to_arrow(table))
    try:
        joint = pyarrow.concat_tables(arrows, promote_options="permissive")
    except pyarrow.ArrowException as error:
        raise InputError(f"the tables of the sequences do not fit together: {error}") from error
    return _divided(from_table(joint, columns, None, vocabulary), [len(arrow) for arrow in arrows])


def _from_pieces(pieces: list[Piece], columns: Columns | None, vocabulary: Vocabularies) -> Sequences:
    """Join sequences, each an array or a list of symbols; `columns` are the names of the columns."""
    if any(isinstance(piece, list) for piece in pieces):
        found = _from_symbols(pieces, vocabulary)
    else:
        arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
        values = _end_to_end(arrays)
        found = Sequences(values, _offsets(arrays), vocabulary=vocabulary)
        if not is_memory_mapped(values):
            check_finite(values, found.describe)
    if columns is None:
        return found
    names: Any = [columns] if isinstance(columns, str) else columns
    return Sequences(found.values, found.offsets, columns=names, vocabulary=found.vocabularies)


def _from_symbols(pieces: list[Piece], vocabulary: Vocabularies) -> Sequences:
    coded = CodedLines()
    for i, piece in enumerate(pieces):
        if isinstance(piece, np.ndarray) and piece.size:
            raise InputError(f"sequence {i} holds numbers ({piece.dtype}), but other sequences hold strings.")
        coded.append(piece if isinstance(piece, list) else [])
    known = one_per_column(vocabulary, 1)[0]
    return coded.as_lines(coded.build_vocabulary() if known is None else known)


def _end_to_end(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate arrays with the same columns, ignoring shape and type of empty ones; a single array is not copied."""
    filled = [(i, piece) for i, piece in enumerate(pieces) if len(piece)]
    if not filled:
        return pieces[0] if pieces else np.empty(0)
    first, model = filled[0]
    if len(filled) > 1 and _are_alike(pieces):
        return np.concatenate(pieces)
    for i, piece in filled:
        if piece.shape[1:] != model.shape[1:]:
            raise InputError(
                f"sequence {i} has {_columns_of(piece)}, but sequence {first} has {_columns_of(model)}; all sequences "
                "need the same columns."
            )
    if len(filled) == 1:
        return model
    dtype = joined(piece.dtype for _, piece in filled)
    with intact(*files_of(piece for _, piece in filled)):
        return np.concatenate([cast(piece, dtype, f"sequence {i}") for i, piece in filled])


def _are_alike(pieces: Sequence[Any]) -> bool:
    """Return whether these are plain arrays of one type and with the same columns, which can be joined as they are."""
    if not pieces or type(pieces[0]) is not np.ndarray or pieces[0].ndim not in (1, 2):
        return False
    dtype, columns = pieces[0].dtype, pieces[0].shape[1:]
    return is_supported(dtype) and all(
        type(piece) is np.ndarray and piece.dtype == dtype and piece.ndim and piece.shape[1:] == columns
        for piece in pieces
    )


def _offsets(pieces: list[NDArray[Any]]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, pieces)], dtype=np.int64)


def _columns_of(piece: NDArray[Any]) -> str:
    return "one number per position" if piece.ndim == 1 else f"{piece.shape[1]} columns (shape {piece.shape})"


def _piece(item: Any, where: str) -> Piece:
    """Convert one sequence to an array of numbers or a list of symbols; `where` names it in errors."""
    if isinstance(item, (list, tuple)) and item and _is_scalar(item[0]):
        return _from_scalars(item, where)
    if not isinstance(item, (list, tuple, np.ndarray)) and not hasattr(item, "__array__"):
        raise InputError(
            f"{where} is {_kind(item)}; give an array, a list of arrays, a dictionary of arrays, (X, lengths), "
            "Sequences, a path, or a table of pandas, polars or Arrow."
        )
    try:
        array = item if isinstance(item, np.ndarray) else np.asarray(item)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{where} cannot be turned into an array: {error}") from error
    return _from_array(array, where)


def _from_scalars(items: list[Any] | tuple[Any, ...], where: str) -> Piece:
    """Convert a list of numbers or of strings, in which None is missing."""
    if any(isinstance(item, str) for item in items):
        for position, item in enumerate(items):
            if not (item is None or isinstance(item, str)):
                raise InputError(f"{where}, position {position} holds {item!r}, but other positions hold strings.")
        return list(items)
    missing = [item is None for item in items]
    try:
        array = np.asarray([0 if item is None else item for item in items])
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{where} is not a list of single numbers: {error}") from error
    return _from_array(np.ma.masked_array(array, missing) if any(missing) else array, where)


def _from_array(array: NDArray[Any], where: str) -> Piece:
    """Check shape and type of one array and convert masked entries to missing values."""
    if array.ndim == 3:
        raise InputError(
            f"{where} has three dimensions, {array.shape}, but a sequence needs the shape (N,) or (N, D); if the first "
            "axis runs over sequences, give list(x)."
        )
    if array.ndim not in (1, 2):
        raise InputError(f"{where} has the shape {array.shape}, but a sequence needs the shape (N,) or (N, D).")
    if array.dtype.kind in "UT" and array.ndim == 1 and not isinstance(array, np.ma.MaskedArray):
        return [str(symbol) for symbol in array]
    if isinstance(array, np.ma.MaskedArray):
        array = _unmasked(array, where)
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if is_supported(array.dtype):
        return array
    if array.dtype.kind in "iuf" and not is_memory_mapped(array):
        return array.astype(f"{array.dtype.kind}{min(8, array.dtype.itemsize)}")
    raise InputError(f"{where} is of type {array.dtype}; observations may be {SUPPORTED}. {_advice(array)}")


def _unmasked(array: np.ma.MaskedArray[Any, Any], where: str) -> NDArray[Any]:
    if not np.ma.is_masked(array):
        return np.asarray(array.data)
    if array.dtype.kind == "f":
        return np.asarray(array.filled(np.nan))
    if array.dtype.kind not in "iub":
        return np.asarray(array.data)
    return np.asarray(np.ma.masked_array(array, dtype=np.float64).filled(np.nan))


def _advice(array: NDArray[Any]) -> str:
    if array.dtype.kind == "O":
        return "If it is a list of sequences, give list(x); otherwise convert it with astype."
    if array.dtype.kind in "UST":
        return "Give strings as a list, a flat array of str, or a column of a table."
    if array.dtype.kind in "iuf":
        return "Write the file again in this machine's byte order, with at most 64 bits."
    return "Convert it to numbers first."


def _is_scalar(item: object) -> bool:
    return item is None or isinstance(item, (str, bytes, Number, np.generic))


def _kind(x: object) -> str:
    return f"of type {type(x).__name__}"
