"""Files that may be compressed, with a limit on what they unpack to.

A few kilobytes can unpack to more than any memory holds. Reading stops with an error at the limit.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from subchain.errors import InputError

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
#: Suffixes of compressed files.
COMPRESSED = tuple(_OPENERS)
#: Environment variable with the limit in gigabytes, and its default.
VARIABLE, DEFAULT = "SUBCHAIN_UNPACK_LIMIT", 8.0


def is_compressed(path: Path) -> bool:
    """Return whether the name of a file ends as that of a compressed file does."""
    return path.suffix.lower() in _OPENERS


def open_unpacked(path: Path) -> BinaryIO:
    """Open a file in binary mode; one that is compressed is unpacked while it is read, up to the limit."""
    if not is_compressed(path):
        return open(path, "rb")
    return io.BufferedReader(_Limited(path), 1 << 20)


def check_unpacked(path: Path, size: int) -> None:
    """Raise an `InputError` if a file unpacks to more bytes than the limit."""
    text = os.environ.get(VARIABLE, str(DEFAULT))
    try:
        limit = float(text)
    except ValueError:
        raise InputError(f"{VARIABLE} must be a number of gigabytes, not {text!r}.") from None
    if size > limit * 1e9:
        raise InputError(
            f"{path.name!r} unpacks to more than {limit:g} GB, from {path.stat().st_size / 1e6:.3g} MB. If that is "
            f"meant, set the environment variable {VARIABLE} to a larger number of gigabytes; or unpack the file."
        )


class _Limited(io.RawIOBase):
    """A compressed file that counts what has been unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _OPENERS[path.suffix.lower()](path, "rb")
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            read = int(self._file.readinto(buffer))
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise OSError(str(error)) from error
        self._size += read
        check_unpacked(self._path, self._size)
        return read

    def close(self) -> None:
        self._file.close()
        super().close()
