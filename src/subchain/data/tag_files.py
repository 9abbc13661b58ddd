"""Text files of tag dictionaries: all tags on the first line, then a word, a tag and their count on each line.

Fields are separated by tabs. There are no quotes and no comments, since ``#`` is a word and a tag.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from subchain.core.files import replace_file
from subchain.data.lines import numbered_lines
from subchain.errors import FileFormatError, InputError

#: First field of the file, before the names of all tags.
HEADER = "tags"

Counts = Mapping[str, Mapping[str, int]]


def write_pairs(path: str | os.PathLike[str], counts: Counts, tags: Sequence[str]) -> None:
    """Write the counts of words with tags, atomically."""
    rows = [(HEADER, *tags)]
    rows += [(word, tag, str(count)) for word, pairs in counts.items() for tag, count in pairs.items()]
    for row in rows:
        for name in row:
            if not name or any(mark in name for mark in "\t\n\r"):
                raise InputError(f"{name!r} cannot be written to a table: it is empty or holds a tab or a line end.")
    replace_file(path, "".join("\t".join(row) + "\n" for row in rows).encode())


def read_pairs(path: str | os.PathLike[str]) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Return the counts and the tags of a file by `write_pairs`."""
    lines = ((number, line.split("\t")) for number, line in numbered_lines(path))
    _, header = next(lines, (1, [""]))
    tags = header[1:]
    if header[0] != HEADER or len(set(tags)) < len(tags):
        raise FileFormatError(
            f"{str(path)!r} is not a tag dictionary: its first line must be {HEADER!r} and the tags, each once, "
            "separated by tabs."
        )
    counts: dict[str, dict[str, int]] = {}
    for number, fields in lines:
        word, tag, count = _pair(fields, number, tags)
        if tag in counts.setdefault(word, {}):
            raise FileFormatError(f"line {number} repeats the tag {tag!r} of {word!r}; each pair needs one line.")
        counts[word][tag] = count
    return counts, tags


def _pair(fields: list[str], number: int, tags: list[str]) -> tuple[str, str, int]:
    """Return word, tag and count of one line."""
    if len(fields) != 3 or not fields[0]:
        raise FileFormatError(f"line {number} has {len(fields)} fields; a word, a tag and a count are needed.")
    word, tag, count = fields
    if tag not in tags:
        raise FileFormatError(f"line {number} gives {word!r} the tag {tag!r}, which the first line does not have.")
    if not (count.isascii() and count.isdecimal()) or not 0 < len(count) < 16 or int(count) < 1:
        raise FileFormatError(f"line {number} gives {word!r} the count {count!r}; counts are integers from 1 on.")
    return word, tag, int(count)
