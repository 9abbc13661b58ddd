"""Numbered lines of text files, which may be compressed."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import IO, Any

from subchain.data.unpacking import open_unpacked, refuse_bomb
from subchain.errors import FileFormatError, InputError

TextSource = str | PathLike[str] | IO[str] | IO[bytes]


def existing_file(path: str | PathLike[str]) -> Path:
    """Return `path` as a `Path`, with ~ expanded; raise an `InputError` unless it is an existing file."""
    found = Path(path).expanduser()
    try:
        exists, is_folder = found.exists(), found.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} is not a usable path: {error}.") from error
    if not exists:
        raise InputError(f"the file {str(path)!r} does not exist; check the path (the current folder is {Path.cwd()}).")
    if is_folder:
        raise InputError(f"{str(path)!r} is a folder; give the path of one file.")
    return found


def numbered_lines(source: TextSource) -> Iterator[tuple[int, str]]:
    """Yield line numbers, from 1, and lines without line ends, of a path or an open file.

    Files that end in .gz, .xz or .bz2 are decompressed. Bytes are decoded as UTF-8.
    """
    number = 0
    try:
        with _opened(source) as file:
            for number, line in enumerate(file, start=1):
                text = _decoded(line, number, source) if isinstance(line, bytes) else line
                yield number, text.rstrip("\r\n")
    except (UnicodeDecodeError, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise FileFormatError(f"{name_of_source(source)} cannot be read after line {number}: {error}.") from error


def _decoded(line: bytes, number: int, source: TextSource) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"line {number} of {name_of_source(source)} is not UTF-8 text (byte {line[error.start]:#04x}); "
            "convert the file to UTF-8 first."
        ) from error


def _opened(source: TextSource) -> Any:
    """Open a path in binary mode, so that errors can name the line of an invalid byte; return open files unchanged."""
    if not isinstance(source, (str, PathLike)):
        if not hasattr(source, "read"):
            raise InputError(f"text is read from a path or an open file, not from a {type(source).__name__}.")
        return nullcontext(source)
    found = existing_file(source)
    refuse_bomb(found)
    return open_unpacked(found)


def name_of_source(source: TextSource) -> str:
    """Return the path of a source in quotes, or the name of an open file, for messages."""
    return repr(str(source)) if isinstance(source, (str, PathLike)) else str(getattr(source, "name", "the open file"))
