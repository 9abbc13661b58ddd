"""Packed parallel text: word codes in one file, which is mapped into memory instead of read.

The file is made in one pass over the sentences, and has room in memory for nothing but the vocabulary. A line of JSON
says how many pairs, tokens and bytes of words follow: offsets and tokens of the source, those of the target, and the
words of both sides as JSON. Every array begins at a multiple of `ALIGNMENT` bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.files import check_version, writing
from subchain.data.lines import existing_file
from subchain.data.parallel_text import ParallelText
from subchain.data.vocabulary import SymbolTable
from subchain.errors import FileFormatError, InputError

KIND, VERSION = "packed parallel text", 1
#: Names of packed files end like this.
SUFFIX = ".pairs"
ALIGNMENT = 64
#: Sentence pairs that are coded before they are written.
PAIRS = 1 << 14
#: Numbers that are checked at a time when a file is opened.
CHECKED = 1 << 22

#: The tokens of a source sentence and of its translation.
Pair = tuple[Iterable[str], Iterable[str]]


class _Section(NamedTuple):
    """An array of a packed file."""

    name: str
    dtype: str
    size: int


class _Side:
    """One side of the text while it is packed."""

    def __init__(self, offsets: IO[bytes], tokens: IO[bytes]) -> None:
        self.table = SymbolTable()
        self.files = offsets, tokens
        self.n_tokens = 0
        self._codes: list[int] = []
        self._ends: list[int] = [0]

    def append(self, sentence: Iterable[str]) -> None:
        before = len(self._codes)
        self._codes.extend(map(self.table.__getitem__, sentence))
        self.n_tokens += len(self._codes) - before
        self._ends.append(self.n_tokens)

    def flush(self) -> None:
        for file, numbers, dtype in zip(self.files, (self._ends, self._codes), ("<i8", "<i4"), strict=True):
            np.array(numbers, dtype=dtype).tofile(file)
        self._codes, self._ends = [], []


def pack_pairs(path: str | os.PathLike[str], pairs: Iterable[Pair]) -> ParallelText:
    """Write sentence pairs to a packed file, which appears when it is complete, and return its text."""
    folder, n_pairs = Path(path).parent, 0
    with ExitStack() as stack:
        target = stack.enter_context(writing(path, "wb"))
        parts = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(4)]
        sides = _Side(parts[0], parts[1]), _Side(parts[2], parts[3])
        for pair in pairs:
            for side, sentence in zip(sides, pair, strict=True):
                side.append(sentence)
            n_pairs += 1
            if n_pairs % PAIRS == 0:
                for side in sides:
                    side.flush()
        for side in sides:
            side.flush()
        words = [json.dumps(side.table.symbols).encode() for side in sides]
        header = {
            "kind": KIND, "version": VERSION, "pairs": n_pairs,
            "tokens": [side.n_tokens for side in sides], "words": [len(text) for text in words],
        }  # fmt: skip
        target.write((json.dumps(header) + "\n").encode())
        for number, part in enumerate(parts):
            _pad(target)
            part.seek(0)
            shutil.copyfileobj(part, target, 1 << 24)
            if number % 2:
                _pad(target)
                target.write(words[number // 2])
    return open_packed(path)


def _pad(file: IO[bytes]) -> None:
    file.write(b"\0" * (-file.tell() % ALIGNMENT))


def open_packed(path: str | os.PathLike[str]) -> ParallelText:
    """Return the text of a packed file; its arrays are mapped, and read when they are used."""
    found = existing_file(path)
    with open(found, "rb") as file:
        header = _header(found, file.readline(1 << 12))
        place = file.tell()
    (n_source, n_target), (source_bytes, target_bytes) = header["tokens"], header["words"]
    n_pairs = header["pairs"]
    sections = (
        _Section("source offsets", "<i8", n_pairs + 1), _Section("source tokens", "<i4", n_source),
        _Section("source words", "|u1", source_bytes),
        _Section("target offsets", "<i8", n_pairs + 1), _Section("target tokens", "<i4", n_target),
        _Section("target words", "|u1", target_bytes),
    )  # fmt: skip
    arrays: list[NDArray[Any]] = []
    for section in sections:
        place += -place % ALIGNMENT
        n_bytes = section.size * np.dtype(section.dtype).itemsize
        if place + n_bytes > found.stat().st_size:
            raise FileFormatError(f"{found} is cut off: its {section.name} are not complete; pack the text again.")
        is_empty = not section.size
        arrays.append(
            np.zeros(0, section.dtype) if is_empty else np.memmap(found, section.dtype, "r", place, (section.size,))
        )
        place += n_bytes
    if place != found.stat().st_size:
        raise FileFormatError(f"{found} is damaged: it is longer than it says; pack the text again.")
    words = [_words(found, arrays[number]) for number in (2, 5)]
    for side, (offsets, tokens) in enumerate(((arrays[0], arrays[1]), (arrays[3], arrays[4]))):
        _check(found, offsets, tokens, len(words[side]))
    return ParallelText(arrays[1], arrays[0], arrays[4], arrays[3], *words)


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
        known = header["kind"] == KIND
        numbers = [header["pairs"], *header["tokens"], *header["words"]]
        fits = len(numbers) == 5 and all(type(number) is int and number >= 0 for number in numbers)
    except (ValueError, KeyError, TypeError, RecursionError):
        known = fits = False
    if not (known and fits):
        raise FileFormatError(f"{path} is damaged, or no packed parallel text; pack_parallel writes such files.")
    check_version(path, header, VERSION)
    return dict(header)


def _words(path: Path, text: NDArray[Any]) -> list[str]:
    try:
        words = json.loads(text.tobytes())
        fits = (
            isinstance(words, list) and all(isinstance(word, str) for word in words) and len(set(words)) == len(words)
        )
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise FileFormatError(f"{path} is damaged: its words are no list of distinct texts; pack the text again.")
    return list(words)


def _check(path: Path, offsets: NDArray[Any], tokens: NDArray[Any], n_words: int) -> None:
    """Raise a `FileFormatError` unless all sentences are inside the text, and all codes those of words.

    Kernels index by them without looking.
    """
    fits = offsets[0] == 0 and offsets[-1] == len(tokens)
    for start in range(0, len(offsets), CHECKED):
        fits = fits and bool((np.diff(offsets[start : start + CHECKED + 1]) >= 0).all())
    for start in range(0, len(tokens), CHECKED):
        some = tokens[start : start + CHECKED]
        fits = fits and bool(some.min() >= 0 and some.max() < n_words)
    if not fits:
        raise FileFormatError(f"{path} is damaged: it has words or sentences that do not exist; pack the text again.")


def checked_name(path: str | os.PathLike[str]) -> Path:
    """Return the name of a packed file; raise an `InputError` unless it ends as such names do."""
    if Path(path).suffix != SUFFIX:
        raise InputError(f"the name of a packed text ends in {SUFFIX}, so that it is known for one; not {str(path)!r}.")
    return Path(path)
