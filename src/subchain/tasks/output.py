"""Where a large answer goes: new memory, an array of the user's, or a file that need not fit into memory.

A file is written under another name and takes its own only when it is complete.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

Out = NDArray[Any] | str | os.PathLike[str] | None
#: Fills a table; what it returns does not matter.
Fill = Callable[[NDArray[Any]], object]


def write(out: Out, shape: tuple[int, ...], dtype: type, fill: Fill) -> NDArray[Any]:
    """Have a table of the given shape filled where the user wants it, and return it.

    Parameters
    ----------
    out : None for new memory; an array (also a memory-mapped one) of this shape; or the path of an .npy file
    """
    if out is None:
        fresh: NDArray[Any] = np.empty(shape, dtype)
        fill(fresh)
        return fresh
    if isinstance(out, np.ndarray):
        _check(out, shape, dtype)
        fill(out)
        return out
    return _write_file(_checked_path(out), shape, dtype, fill)


def _check(out: NDArray[Any], shape: tuple[int, ...], dtype: type) -> None:
    if out.shape != shape:
        raise InputError(f"out has the shape {out.shape}, but the answer has the shape {shape}.")
    kinds = "f" if np.dtype(dtype).kind == "f" else "iu"
    if out.dtype.kind not in kinds:
        raise InputError(f"out is of type {out.dtype}, but the answer is of type {np.dtype(dtype)}.")
    if not out.flags.writeable:
        raise InputError("out cannot be written to; open a memory-mapped file with mode='r+'.")


def _checked_path(out: str | os.PathLike[str]) -> Path:
    path = Path(out)
    if path.suffix != ".npy":
        raise InputError(f"out names the file {str(path)!r}; answers are written to files that end in .npy.")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {path.parent} does not exist.")
    return path


def _write_file(path: Path, shape: tuple[int, ...], dtype: type, fill: Fill) -> NDArray[Any]:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        table = np.lib.format.open_memmap(unfinished, mode="w+", dtype=dtype, shape=shape)
        fill(table)
        table.flush()
        del table
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()
        raise
    return np.lib.format.open_memmap(path, mode="r")
