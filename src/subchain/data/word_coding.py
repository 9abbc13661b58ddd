"""Coding of the words of text files in compiled code: bytes in, codes and line ends out.

Words are what `str.split` gives: stretches without white space, of Unicode, in UTF-8. Each is looked up in a hash table
by its bytes; a new one gets the next code. Only the distinct words become strings.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from itertools import pairwise
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.lines import existing_file
from subchain.data.unpacking import open_unpacked, refuse_bomb
from subchain.numerics.linking import linked

#: Bytes that are read at a time.
CHUNK = 1 << 24
NEWLINE, SPACE, FIRST_LEAD = 10, 32, 0xC2
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Numbers of the hash function FNV-1a.
OFFSET, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


class CodedFile(NamedTuple):
    """Codes of the words of a file, (N,), offsets of its lines, (n_lines + 1,), and the words in order of codes."""

    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    words: list[str]


class _Words(NamedTuple):
    """A hash table of words.

    Attributes
    ----------
    slots : (a power of two,) code of the word in each slot, −1 for none
    hashes : (words,) hash of each word
    starts : (words + 1,) where the bytes of each word begin
    letters : bytes of all words
    """

    slots: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    letters: NDArray[np.uint8]


class _Place(NamedTuple):
    """How far a chunk was coded: bytes, words of the table, words of the text, lines."""

    byte: int = 0
    n_words: int = 0
    n_codes: int = 0
    n_lines: int = 0


def code_file(path: str | PathLike[str]) -> CodedFile:
    """Return the words of a text file, one sentence a line; files that end in .gz, .xz or .bz2 are decompressed.

    Whatever is wrong with the file raises an error of Python; `data.lines.numbered_lines` gives errors that name lines.
    """
    found = existing_file(path)
    refuse_bomb(found)
    words, n_words = _empty(1 << 14, 1 << 17), 0
    codes, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
    with open_unpacked(found) as file:
        while chunk := file.read(CHUNK) + file.readline():
            is_open = not chunk.endswith(b"\n")
            if len(codes) == 1:
                chunk = chunk.removeprefix(BYTE_ORDER_MARK)
            if not chunk.isascii():
                chunk.decode()  # raises an error for bytes that are not UTF-8
            text = np.frombuffer(chunk, dtype=np.uint8)
            coded = np.empty(len(text) // 2 + 1, dtype=np.int32)
            ends = np.empty(chunk.count(b"\n") + is_open, dtype=np.int64)
            place = _Place(n_words=n_words)
            while True:
                place = _Place(*code_chunk(text, words, place, coded, ends))
                if place.byte == len(text):
                    break
                words = _grown(words, place.n_words, len(text))
            ends[place.n_lines :] = place.n_codes
            n_words = place.n_words
            codes.append(coded[: place.n_codes].copy())
            counts.append(np.diff(ends, prepend=0))
    starts, letters = words.starts[: n_words + 1].tolist(), words.letters.tobytes()
    spelled = [letters[first:last].decode() for first, last in pairwise(starts)]
    return CodedFile(np.concatenate(codes), np.cumsum(np.concatenate(counts)), spelled)


def _empty(n_words: int, n_letters: int) -> _Words:
    """Return a table with room for so many words."""
    slots = np.full(4 * n_words, -1, dtype=np.int32)
    hashes, starts = np.empty(n_words, dtype=np.uint64), np.zeros(n_words + 1, dtype=np.int64)
    return _Words(slots, hashes, starts, np.empty(n_letters, dtype=np.uint8))


def _grown(words: _Words, n_words: int, longest: int) -> _Words:
    """Return the table with twice the room, and that for one word as long as a chunk."""
    found = _empty(2 * len(words.hashes), 2 * len(words.letters) + longest)
    n_letters = words.starts[n_words]
    found.hashes[:n_words], found.starts[: n_words + 1] = words.hashes[:n_words], words.starts[: n_words + 1]
    found.letters[:n_letters] = words.letters[:n_letters]
    enter_all(found, n_words)
    return found


@linked(_nrt=False)
def enter_all(words, n_words):
    """Enter words with known hashes into empty slots."""
    mask = np.uint64(words.slots.shape[0] - 1)
    for code in range(n_words):
        slot = words.hashes[code] & mask
        while words.slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        words.slots[slot] = code


@linked(_nrt=False)
def white_space(text, at):
    """Return how many bytes of white space begin at a byte; 0 for none."""
    byte = text[at]
    if byte <= SPACE:
        return 1 if byte == SPACE or 9 <= byte <= 13 or 28 <= byte <= 31 else 0
    if byte < FIRST_LEAD or byte > 0xE3:
        return 0
    if byte == 0xC2:
        return 2 if text[at + 1] == 0x85 or text[at + 1] == 0xA0 else 0
    if byte < 0xE1:
        return 0
    second, third = text[at + 1], text[at + 2]
    if byte == 0xE1:
        return 3 if second == 0x9A and third == 0x80 else 0
    if byte == 0xE3:
        return 3 if second == 0x80 and third == 0x80 else 0
    if second == 0x80:
        return 3 if third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF else 0
    return 3 if second == 0x81 and third == 0x9F else 0


@linked(_nrt=False)
def code_of(text, begin, end, hashed, words, n_words):
    """Return the code of a word, that of a new one is `n_words`; the new one is entered into the table."""
    mask = np.uint64(words.slots.shape[0] - 1)
    slot = hashed & mask
    while words.slots[slot] >= 0:
        code = words.slots[slot]
        if words.hashes[code] == hashed and words.starts[code + 1] - words.starts[code] == end - begin:
            first, same = words.starts[code], 0
            while same < end - begin and words.letters[first + same] == text[begin + same]:
                same += 1
            if same == end - begin:
                return code
        slot = (slot + np.uint64(1)) & mask
    words.slots[slot], words.hashes[n_words] = n_words, hashed
    first = words.starts[n_words]
    for at in range(end - begin):
        words.letters[first + at] = text[begin + at]
    words.starts[n_words + 1] = first + end - begin
    return n_words


@linked(_nrt=False)
def code_chunk(text, words, place, codes, ends):
    """Code bytes from `place` on, until they end or the table is full; return the place that was reached."""
    at, n_words, n_codes, n_lines = place.byte, place.n_words, place.n_codes, place.n_lines
    while at < text.shape[0]:
        byte = text[at]
        if byte == NEWLINE:
            ends[n_lines] = n_codes
            n_lines += 1
        if byte <= SPACE or byte >= FIRST_LEAD:
            skipped = white_space(text, at)
            at += skipped
            if skipped:
                continue
        begin, hashed = at, OFFSET
        while at < text.shape[0]:
            byte = text[at]
            if (byte <= SPACE or byte >= FIRST_LEAD) and white_space(text, at):
                break
            hashed = (hashed ^ np.uint64(byte)) * PRIME
            at += 1
        if n_words == words.hashes.shape[0] or words.starts[n_words] + at - begin > words.letters.shape[0]:
            return begin, n_words, n_codes, n_lines
        code = code_of(text, begin, at, hashed, words, n_words)
        n_words += code == n_words
        codes[n_codes] = code
        n_codes += 1
    return at, n_words, n_codes, n_lines
