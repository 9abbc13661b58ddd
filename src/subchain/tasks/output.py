"""Destinations of large results: new memory, a given array, or a file that need not fit into memory.

A file is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import path_of
from subchain.core.files import replacing, reserve
from subchain.data.mapped import MappedFile, intact
from subchain.errors import FileWriteError, InputError

Out = NDArray[Any] | str | os.PathLike[str] | None
#: Function that fills a table; its result is ignored.
Fill = Callable[[NDArray[Any]], object]


def write(out: Out, shape: tuple[int, ...], dtype: type, fill: Fill) -> NDArray[Any]:
    """Create a table at the destination `out`, fill it, and return it.

    Parameters
    ----------
    out : None for new memory; an array (also a memory-mapped one) of this shape; or the path of an .npy file
    shape, dtype : of the table
    fill : function that writes the table
    """
    if out is None:
        fresh: NDArray[Any] = np.empty(shape, dtype)
        fill(fresh)
        return fresh
    if isinstance(out, np.ndarray):
        _check(out, shape, dtype)
        with intact(MappedFile.of(out)):
            fill(out)
        return out
    return _write_file(Path(path_of("out", out) or ""), shape, dtype, fill)


def _check(out: NDArray[Any], shape: tuple[int, ...], dtype: type) -> None:
    if out.shape != shape:
        raise InputError(f"out has the shape {out.shape}, but the result has the shape {shape}.")
    kinds = "f" if np.dtype(dtype).kind == "f" else "iu"
    if out.dtype.kind not in kinds:
        raise InputError(f"out is of type {out.dtype}, but the result is of type {np.dtype(dtype)}.")
    if not out.flags.writeable:
        raise InputError("out is read-only; open a memory-mapped file with mode='r+'.")


def _write_file(path: Path, shape: tuple[int, ...], dtype: type, fill: Fill) -> NDArray[Any]:
    if path.suffix != ".npy":
        raise InputError(f"out is the path {str(path)!r}; results are written to files that end in .npy.")
    with replacing(path) as unfinished:
        try:
            table = np.lib.format.open_memmap(unfinished, mode="w+", dtype=dtype, shape=shape)
            reserve(unfinished)
        except OSError as error:
            size = math.prod(shape) * np.dtype(dtype).itemsize / 1e6
            raise FileWriteError(
                f"cannot write {path}: {size:.0f} MB are needed ({error.strerror}); choose a folder with room.",
                path,
                error,
            ) from None
        with intact(MappedFile.of(table, str(path))):
            fill(table)
            table.flush()
        del table
    return np.lib.format.open_memmap(path, mode="r")
