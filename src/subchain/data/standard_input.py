"""Data from standard input: kept in a temporary file whose suffix tells what was recognised in the first bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subchain.data.sniffing import is_number
from subchain.errors import InputError

#: Name that stands for standard input.
STANDARD_INPUT = "-"
#: First bytes of binary files, and their suffixes.
_MAGIC = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"PAR1": ".parquet"}
_PACKED: dict[bytes, tuple[str, Callable[..., Any]]] = {
    b"\x1f\x8b": (".gz", gzip.open), b"\xfd7zXZ\x00": (".xz", lzma.open), b"BZh": (".bz2", bz2.open)
}  # fmt: skip
#: Number of bytes by which the kind is recognised.
FIRST_BYTES = 1 << 16
#: Number of fields of a line in the CoNLL-U format.
TREEBANK_FIELDS = 10


def name_of(path: str | os.PathLike[str]) -> str:
    """Return the name of a file or folder without extensions; "stdin" for standard input.

    Examples
    --------
    >>> name_of("data/walks.csv.gz"), name_of("-")
    ('walks', 'stdin')
    """
    name = Path(path).name or Path(path).resolve().name
    return "stdin" if str(path) == STANDARD_INPUT else name.partition(".")[0] or name


@contextmanager
def kept_input(suffix: str | None = None) -> Iterator[Path]:
    """Copy standard input to a temporary file for the time of the block; the suffix is recognised if not given."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.isatty():
        raise InputError("standard input, '-', is a terminal; pipe data into the command, as in `cat x.csv | …`.")
    with tempfile.TemporaryDirectory(prefix="subchain-") as folder:
        raw = Path(folder) / "stdin"
        with open(raw, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield raw.rename(raw.with_name(f"stdin{_suffix(raw, suffix)}"))


def _suffix(path: Path, kind: str | None) -> str:
    """Return the suffixes for the contents of a file: the given or recognised one, and one for compression."""
    with open(path, "rb") as file:
        first = file.read(FIRST_BYTES)
    packed = next((found for magic, found in _PACKED.items() if first.startswith(magic)), None)
    if packed is not None:
        with packed[1](path, "rb") as unpacked:
            try:
                first = unpacked.read(FIRST_BYTES)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                raise InputError(f"standard input is compressed, but cannot be unpacked: {error}.") from error
    return (kind or recognised(first)) + (packed[0] if packed is not None else "")


def recognised(first: bytes) -> str:
    r"""Return the suffix for the kind of data that begin with these bytes.

    Text is a table if its lines have the same number of fields, more than one, or hold one number each.

    Examples
    --------
    >>> recognised(b"a,b\n1,2\n"), recognised(b"the\tDT\ncat\tNN\n\n"), recognised(b"the cat, a dog\nand\n")
    ('.csv', '.tsv', '.txt')
    """
    for magic, suffix in _MAGIC.items():
        if first.startswith(magic):
            return suffix
    text = first.decode("utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    lines = lines[:-1] if len(first) == FIRST_BYTES and len(lines) > 1 else lines
    tabs = {line.count("\t") for line in lines if not line.startswith("#")}
    if tabs == {TREEBANK_FIELDS - 1}:
        return ".conllu"
    if len(tabs) == 1 and tabs != {0}:
        return ".tsv"
    for separator in ",;|":
        counts = {line.count(separator) for line in lines if '"' not in line}
        if len(counts) == 1 and counts != {0}:
            return ".csv"
    single = [line.strip() for line in lines[1:]] or [line.strip() for line in lines]
    return ".csv" if single and all(is_number(cell) or cell in ("NA", '""') for cell in single) else ".txt"
