"""Tag dictionaries as text: all tags on the first line, then a word, a tag and how often both were seen on each.

Fields are separated by tabs; nothing is quoted, and there are no comments, since ``#`` is a word and a tag.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from subchain.data.lines import numbered_lines
from subchain.errors import FileFormatError, InputError

#: The first field of the file; the names of all tags follow it.
HEADER = "tags"

Counts = Mapping[str, Mapping[str, int]]


def write_pairs(path: str | os.PathLike[str], counts: Counts, tags: Sequence[str]) -> None:
    """Write how often each word was seen with each tag."""
    rows = [(HEADER, *tags)]
    rows += [(word, tag, str(count)) for word, pairs in counts.items() for tag, count in pairs.items()]
    for row in rows:
        for name in row:
            if not name or any(mark in name for mark in "\t\n\r"):
                raise InputError(f"{name!r} cannot be written to a table: it is empty or holds a tab or a line end.")
    _write_text(path, "".join("\t".join(row) + "\n" for row in rows))


def read_pairs(path: str | os.PathLike[str]) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Read what `write_pairs` wrote: the counts and the tags."""
    lines = ((number, line.split("\t")) for number, line in numbered_lines(path))
    _, header = next(lines, (1, [""]))
    tags = header[1:]
    if header[0] != HEADER or len(set(tags)) < len(tags):
        raise FileFormatError(
            f"{str(path)!r} is no tag dictionary: its first line has to be {HEADER!r} and the tags, each once, "
            "separated by tabs."
        )
    counts: dict[str, dict[str, int]] = {}
    for number, fields in lines:
        word, tag, count = _pair(fields, number, tags)
        if tag in counts.setdefault(word, {}):
            raise FileFormatError(f"line {number} gives the tag {tag!r} to {word!r} for the second time.")
        counts[word][tag] = count
    return counts, tags


def _pair(fields: list[str], number: int, tags: list[str]) -> tuple[str, str, int]:
    """One line of a file."""
    if len(fields) != 3 or not fields[0]:
        raise FileFormatError(f"line {number} has {len(fields)} fields; a word, a tag and a count are needed.")
    word, tag, count = fields
    if tag not in tags:
        raise FileFormatError(f"line {number} gives {word!r} the tag {tag!r}, which the first line does not have.")
    if not (count.isascii() and count.isdecimal()) or not 0 < len(count) < 16 or int(count) < 1:
        raise FileFormatError(f"line {number} says that {word!r} was seen {count!r} times; give a number from 1 on.")
    return word, tag, int(count)


def _write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write beside the target, then replace it."""
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise InputError(f"cannot write {target}: give the name of a file in a folder that exists.")
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        unfinished.write_bytes(text.encode())
        os.replace(unfinished, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
