"""Files that may be compressed, with a limit on what they unpack to.

A few kilobytes can unpack to more than any memory holds. Reading stops with an error at the limit, which follows from
the machine's memory. A table in memory may be ten times as large as its text (two bytes, "0" and a line end, become a
number of eight bytes, and of that there are copies), and such text is what compresses best.
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
#: Environment variable with the limit in gigabytes.
VARIABLE = "SUBCHAIN_UNPACK_LIMIT"
#: Share of the machine's memory that a file may unpack to; and if it unpacks to more than `MANY` times its size.
SHARE, SMALL_SHARE, MANY = 1 / 4, 1 / 32, 50
#: Bytes that are unpacked to see how a file begins: far more than `MANY` times what is read of its packed form at once.
BEGINNING = 1 << 24
#: Bytes of memory where the system does not tell.
USUAL_MEMORY = 16e9


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
    packed = path.stat().st_size
    limit = _limit(suspicious=size > MANY * packed)
    if size > limit:
        raise InputError(
            f"{path.name!r} unpacks to more than {limit / 1e9:.3g} GB, from {packed / 1e6:.3g} MB, and may not "
            f"fit into memory. If that is meant, set the environment variable {VARIABLE} to a larger number of "
            "gigabytes; or unpack the file."
        )


def refuse_bomb(path: Path) -> None:
    """Raise the error of `check_unpacked` now if a file that begins like a bomb unpacks to more than the limit.

    Unpacking is much faster than reading lines, which other files need not wait for.
    """
    if is_compressed(path):
        with _Limited(path) as file:
            while file.read(BEGINNING) and file.is_dense:
                pass


def _limit(*, suspicious: bool) -> float:
    """Return the number of bytes that a file may unpack to."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return _memory() * (SMALL_SHARE if suspicious else SHARE)
    try:
        return float(text) * 1e9
    except ValueError:
        raise InputError(f"{VARIABLE} must be a number of gigabytes, not {text!r}.") from None


def _memory() -> float:
    """Return the bytes of memory of this machine."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return USUAL_MEMORY


class _Limited(io.RawIOBase):
    """A compressed file that counts what has been unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed = open(path, "rb")  # noqa: SIM115 (it is closed with this file)
        self._file = _OPENERS[path.suffix.lower()](self._packed, "rb")
        self._size = 0

    @property
    def is_dense(self) -> bool:
        """Whether what has been unpacked was `MANY` times as large as its packed form."""
        return self._size > MANY * self._packed.tell()

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
        self._packed.close()
        super().close()
