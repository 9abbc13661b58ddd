"""Reader of .npz files: the observed arrays, the lengths of their sequences, the names of their columns."""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.columns import Columns
from subchain.data.convert import as_sequences
from subchain.data.sequences import Sequences
from subchain.data.unpacking import check_unpacked, is_compressed, open_unpacked
from subchain.errors import FileFormatError, InputError, SubchainError, unknown_name

#: Name of the array that holds the lengths of the sequences, alone or after the name of the divided array.
LENGTHS = "lengths"

Arrays = Mapping[str, NDArray[Any]]


def read_npz(
    file: Path, wanted: str | list[str] | None, columns: Columns | None, lengths: str | None
) -> tuple[Sequences, Columns | None]:
    """Return the observed arrays of a file, and the columns that remain to be chosen.

    Parameters
    ----------
    wanted : name of the observed array, or of several, which become one named sequence each; not needed if there is
        only one, or if all have the same columns
    columns : if no array is named, names of arrays of equal length, which become the columns
    lengths : name of the array with the lengths, or the offsets, of the sequences; by default "lengths", or the name
        of the observed array and "_lengths", if it fits
    """
    arrays = _load(file)
    observed = [key for key, found in arrays.items() if not _is_about_lengths(key) and _is_observable(found)]
    of_arrays = _arrays_named(columns, arrays)
    if wanted is None and of_arrays:
        return _as_columns(file, arrays, of_arrays, lengths), None
    if wanted is None and len(observed) == 1:
        wanted = observed[0]
    if wanted is None and _are_sequences(arrays, observed):
        wanted = observed
        warnings.warn(
            f"the arrays {', '.join(observed)} of {file.name!r} have the same columns and are read as one sequence "
            "each; choose one with array=.",
            stacklevel=5,
        )
    if wanted is None or not wanted:
        shown = ", ".join(f"{key} {arrays[key].shape}" for key in observed)
        raise InputError(
            f"{str(file)!r} holds several arrays; choose with array=, or with columns= several of the same length as "
            f"columns: {shown or 'none of numbers'}."
        )
    names = [wanted] if isinstance(wanted, str) else wanted
    for name in names:
        if name not in arrays:
            raise unknown_name(f"array of {file.name}", name, observed)
    if isinstance(wanted, str):
        values = arrays[wanted]
        found = _lengths_of(file, arrays, wanted, lengths)
        return as_sequences(values, lengths=found, columns=_column_names(arrays, values)), columns
    if lengths is not None:
        raise InputError(f"lengths={lengths!r} divides one array, but array= names {len(names)}; read one at a time.")
    return _side_by_side(file, arrays, names), columns


def _load(file: Path) -> Arrays:
    try:
        source = io.BytesIO(open_unpacked(file).read()) if is_compressed(file) else file
        with np.load(source) as opened:
            check_unpacked(file, sum(member.file_size for member in opened.zip.infolist()))
            return {key: opened[key] for key in opened.files}
    except SubchainError:
        raise
    except (ValueError, OSError, EOFError, KeyError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(
            f"{str(file)!r} cannot be read as NumPy arrays; it may be damaged or of another kind: {error}"
        ) from error


def _are_sequences(arrays: Arrays, observed: list[str]) -> bool:
    """Return whether several arrays have the same columns, more than one, and type, and nothing divides them."""
    kinds = {(arrays[name].ndim, arrays[name].shape[-1], arrays[name].dtype.kind) for name in observed}
    if len(kinds) != 1 or next(iter(kinds))[0] != 2:
        return False
    return not any(_is_about_lengths(name) for name in arrays)


def _arrays_named(columns: Columns | None, arrays: Arrays) -> list[str]:
    """Return the chosen columns if all are names of arrays; else an empty list."""
    given = [columns] if isinstance(columns, (str, int)) else list(columns or ())
    names = [name for name in given if isinstance(name, str) and name in arrays]
    return names if len(names) == len(given) else []


def _as_columns(file: Path, arrays: Arrays, names: Sequence[str], lengths: str | None) -> Sequences:
    """Return arrays of equal length as the columns of one table."""
    sizes = {name: arrays[name].shape for name in names}
    if any(len(shape) != 1 for shape in sizes.values()) or len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name} {shape}" for name, shape in sizes.items())
        raise InputError(f"arrays of {file.name} are columns if all have the same shape (N,); these have {shown}.")
    values = np.column_stack([arrays[name] for name in names]) if len(names) > 1 else arrays[names[0]]
    return as_sequences(values, lengths=_lengths_of(file, arrays, names[0], lengths), columns=list(names))


def _side_by_side(file: Path, arrays: Arrays, names: list[str]) -> Sequences:
    """Return several arrays as one named sequence each."""
    if len(set(names)) < len(names):
        raise InputError(f"array= names an array twice: {', '.join(names)}.")
    first = arrays[names[0]]
    for name in names:
        if arrays[name].shape[1:] != first.shape[1:]:
            raise InputError(
                f"arrays that are read together need the same columns, but in {file.name} {name!r} has the shape "
                f"{arrays[name].shape} and {names[0]!r} has {first.shape}."
            )
        if LENGTHS in arrays and _as_lengths(arrays[LENGTHS], arrays[name]) is not None:
            raise InputError(
                f"{file.name} divides {name!r} into sequences by {LENGTHS!r}, but several arrays are read as one "
                "sequence each; read one array at a time."
            )
    return as_sequences({name: arrays[name] for name in names}, columns=_column_names(arrays, first))


def _lengths_of(file: Path, arrays: Arrays, observed: str, given: str | None) -> NDArray[np.int64] | None:
    """Return the lengths of the sequences of an array; None if nothing divides it."""
    values = arrays[observed]
    if given is None:
        divided = (_as_lengths(arrays.get(name), values) for name in (LENGTHS, f"{observed}_{LENGTHS}"))
        return next((lengths for lengths in divided if lengths is not None), None)
    if given not in arrays:
        raise unknown_name(f"array of {file.name}", given, arrays)
    found = _as_lengths(arrays[given], values)
    if found is None:
        raise InputError(
            f"{given!r} of {file.name} does not divide {observed!r}: lengths are whole numbers that add up to "
            f"{len(values)}, or offsets that run from 0 to {len(values)}."
        )
    return found


def _as_lengths(given: NDArray[Any] | None, values: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return lengths, given as such or as offsets, if they divide the values; else None."""
    if given is None or given.dtype.kind not in "iu" or given.ndim != 1 or values.ndim == 0 or not len(given):
        return None
    whole = given.astype(np.int64)
    if (whole >= 0).all() and int(whole.sum()) == len(values):
        return whole
    steps = np.diff(whole)
    is_offsets = whole[0] == 0 and whole[-1] == len(values) and (steps >= 0).all()
    return steps if is_offsets else None


def _is_about_lengths(name: str) -> bool:
    return name == LENGTHS or name.endswith(f"_{LENGTHS}")


def _is_observable(array: NDArray[Any]) -> bool:
    return array.ndim in (1, 2) and array.dtype.kind in "biuf"


def _column_names(arrays: Arrays, values: NDArray[Any]) -> list[str] | None:
    """Return the names of the columns: the only array of strings with one entry per column; None if there is none."""
    if values.ndim != 2:
        return None
    names = [array for array in arrays.values() if array.dtype.kind == "U" and array.shape == values.shape[1:]]
    found = names[0].tolist() if len(names) == 1 else []
    return found if len(set(found)) == values.shape[1] else None
