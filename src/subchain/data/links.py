"""Links between the words of sentence pairs, as flat arrays, and files of links.

A line of a file has the links of one sentence pair: `i-j` links source position *i* to target position *j*, both
counted from 0. Gold files write `i?j` (or `ipj`) for a link that is only possible. A pair without links is an empty
line.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.files import writing
from subchain.data.lines import TextSource, name_of_source, numbered_lines
from subchain.data.parallel_text import ParallelText
from subchain.errors import FileFormatError, InputError, unknown_name

_LINK = re.compile(r"(?<!\S)([0-9]{1,9})([-?p])([0-9]{1,9})(?!\S)")
#: Pairs that are formatted at a time.
BLOCK = 10_000
#: Formats of link files, and the side by which the links of a line are sorted first.
FORMATS: dict[str, Literal["source", "target"]] = {"pharaoh": "source", "moses": "target"}


@dataclass(frozen=True, eq=False, slots=True)
class Links:
    """Links of many sentence pairs as flat arrays.

    Attributes
    ----------
    source, target : array of int32, shape (number of links,)
        The positions that a link connects, counted from 0 within their sentences. No link occurs twice.
    offsets : array of int64, shape (n_pairs + 1,)
        Index of the first link of each pair, and the number of links.

    Examples
    --------
    >>> from subchain.data import Links
    >>> links = Links.from_pairs([[(1, 0), (0, 0)], [], [(2, 1)]])
    >>> len(links), links.source, links.offsets
    (3, array([0, 1, 2], dtype=int32), array([0, 2, 2, 3]))
    >>> links[0]
    array([[0, 0],
           [1, 0]], dtype=int32)
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @classmethod
    def from_pairs(cls, pairs: Iterable[ArrayLike | Iterable[tuple[int, int]]]) -> Links:
        """Return the links of a list with one entry per sentence pair, sorted by source position, without repeats.

        Parameters
        ----------
        pairs : iterable of arrays of int, shape (n, 2), or of sets of tuples
            Source position and target position of each link.

        Examples
        --------
        >>> from subchain.data import Links
        >>> Links.from_pairs([{(0, 1)}, {(2, 2), (0, 0)}]).target
        array([1, 0, 2], dtype=int32)
        """
        tables = [_table(pair, number) for number, pair in enumerate(pairs)]
        counts = np.fromiter(map(len, tables), dtype=np.int64, count=len(tables))
        flat = np.concatenate([np.empty((0, 2), np.int64), *tables], dtype=np.int64, casting="unsafe")
        outside = np.flatnonzero(((flat < 0) | (flat > np.iinfo(np.int32).max)).any(axis=1))
        if outside.size:
            number = int(np.searchsorted(np.cumsum(counts), outside[0], side="right"))
            link = tuple(flat[outside[0]].tolist())
            raise InputError(f"link {link} of sentence pair {number} has a position outside 0, 1, 2, …")
        return cls.from_flat(np.repeat(np.arange(len(tables)), counts), flat[:, 0], flat[:, 1], len(tables))

    @classmethod
    def from_flat(
        cls, pairs: NDArray[Any], source: NDArray[Any], target: NDArray[Any], n_pairs: int, by: str = "source"
    ) -> Links:
        """Return the distinct links given by sentence pair, in order, source and target position, (n,) each.

        The links of a pair are sorted `by` "source" position first, or by "target" position first.
        """
        major, minor = (source, target) if by == "source" else (target, source)
        packed = PackedLinks.sizes(major, minor)
        keys = sorted_distinct(packed.keys(pairs, major, minor))
        pairs, major, minor = packed.unpacked(keys)
        offsets = np.searchsorted(pairs, np.arange(n_pairs + 1))
        source, target = (major, minor) if by == "source" else (minor, major)
        return cls(source.astype(np.int32), target.astype(np.int32), offsets.astype(np.int64))

    @classmethod
    def joined(cls, parts: Iterable[Links]) -> Links:
        """Return the links of the sentence pairs of all parts, one part after the other.

        Examples
        --------
        >>> from subchain.data import Links
        >>> first, second = Links.from_pairs([[(0, 0)]]), Links.from_pairs([[], [(1, 2)]])
        >>> [pair.tolist() for pair in Links.joined([first, second])]
        [[[0, 0]], [], [[1, 2]]]
        """
        known = list(parts)
        counts = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in known)])
        source = np.concatenate([np.empty(0, np.int32), *(part.source for part in known)])
        target = np.concatenate([np.empty(0, np.int32), *(part.target for part in known)])
        return cls(source, target, np.cumsum(counts))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, pair: int) -> NDArray[np.int32]:
        if not -len(self) <= pair < len(self):
            raise IndexError(f"sentence pair {pair} does not exist; there are {len(self)} pairs.")
        pair %= len(self)
        inside = slice(self.offsets[pair], self.offsets[pair + 1])
        return np.column_stack([self.source[inside], self.target[inside]])

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        both = np.column_stack([self.source, self.target])
        return (both[start:end] for start, end in pairwise(self.offsets.tolist()))

    @property
    def pairs(self) -> NDArray[np.int64]:
        """Sentence pair of each link, (number of links,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def swapped(self) -> Links:
        """Return the links from target to source.

        Examples
        --------
        >>> from subchain.data import Links
        >>> Links.from_pairs([[(0, 5)]]).swapped()[0]
        array([[5, 0]], dtype=int32)
        """
        return self.from_flat(self.pairs, self.target, self.source, len(self))

    def sorted_by(self, side: Literal["source", "target"]) -> Links:
        """Return the same links sorted by source, or by target position first, within each pair."""
        return self.from_flat(self.pairs, self.source, self.target, len(self), side)

    def between(self, start: int, stop: int) -> Links:
        """Return the links of the sentence pairs from `start` to `stop`, which is not included.

        Examples
        --------
        >>> from subchain.data import Links
        >>> len(Links.from_pairs([[(0, 0)], [], [(1, 1)]]).between(1, 3))
        2
        """
        offsets = self.offsets[start : stop + 1]
        inside = slice(offsets[0], offsets[-1])
        return Links(self.source[inside], self.target[inside], offsets - offsets[0])

    def __repr__(self) -> str:
        return f"Links({len(self.source):,} links of {len(self):,} sentence pairs)"


class PackedLinks(NamedTuple):
    """Links as single whole numbers, which sort as pair, first position and second position do."""

    n_major: int
    n_minor: int

    @classmethod
    def sizes(cls, *positions: NDArray[Any]) -> PackedLinks:
        """Return the packing for first and second positions; arrays in turn, of several sets of links."""
        n_major, n_minor = (max((int(p.max()) + 1 for p in positions[i::2] if p.size), default=1) for i in (0, 1))
        return cls(n_major, n_minor)

    def keys(self, pairs: NDArray[Any], major: NDArray[Any], minor: NDArray[Any]) -> NDArray[np.int64]:
        """Return one number for each link; `pairs` are sorted."""
        last = int(pairs[-1]) if pairs.size else 0
        if (last + 1) * self.n_major * self.n_minor > np.iinfo(np.int64).max:
            raise InputError(
                f"positions up to {self.n_major - 1:,} and {self.n_minor - 1:,} in {last + 1:,} sentence pairs are too "
                "large; check the links."
            )
        found: NDArray[np.int64] = (pairs.astype(np.int64) * self.n_major + major) * self.n_minor + minor
        return found

    def unpacked(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs, first and second positions."""
        rest, minor = np.divmod(keys, self.n_minor)
        pairs, major = np.divmod(rest, self.n_major)
        return pairs, major, minor


def sorted_distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct ones of some numbers, in order; faster than `numpy.unique` for numbers nearly in order."""
    ordered = np.sort(keys)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


class GoldLinks(NamedTuple):
    """Links by annotators: `sure` ones, and `possible` ones, which include the sure.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_gold
    >>> gold = read_gold(io.StringIO("0-0 1?0\\n\\n"))
    >>> gold.sure[0].tolist(), gold.possible[0].tolist()
    ([[0, 0]], [[0, 0], [1, 0]])
    """

    sure: Links
    possible: Links


def read_links(source: TextSource, text: ParallelText | None = None) -> Links:
    """Read links, one sentence pair per line.

    Parameters
    ----------
    source : path or open file
        UTF-8 text; files that end in .gz, .xz or .bz2 are decompressed. `i-j` links source position i to target
        position j, counted from 0.
    text : ParallelText, optional
        The linked text. Its number of pairs and the lengths of its sentences are then checked.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_links
    >>> list(read_links(io.StringIO("0-0 2-1\\n\\n")))
    [array([[0, 0],
           [2, 1]], dtype=int32), array([], shape=(0, 2), dtype=int32)]
    """
    links = _read(source, swap=False).links("-")
    if text is not None:
        check_inside(links, text, name_of_source(source))
    return links


def read_gold(source: TextSource, text: ParallelText | None = None, swap: bool = False) -> GoldLinks:
    """Read gold links, sure and possible, one sentence pair per line.

    Parameters
    ----------
    source : path or open file
        As for :func:`read_links`; `i-j` is a sure link, `i?j` or `ipj` a possible one.
    text : ParallelText, optional
        The linked text. Its number of pairs and the lengths of its sentences are then checked.
    swap : bool
        Whether the file has the target position first.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_gold
    >>> read_gold(io.StringIO("0-3 1?3"), swap=True).possible[0].tolist()
    [[3, 0], [3, 1]]
    """
    found = _read(source, swap)
    gold = GoldLinks(found.links("-"), found.links("-?p"))
    if text is not None:
        check_inside(gold.possible, text, name_of_source(source))
    return gold


def write_links(path: str | PathLike[str], links: Links | Iterable[Links], format: str = "pharaoh") -> None:
    """Write links, one sentence pair per line; the file appears when it is complete.

    Parameters
    ----------
    path : path
    links : Links, or an iterable of them
        Several are written one after the other, as they come: those of `WordAligner.link_blocks`.
    format : {"pharaoh", "moses"}
        Both write `i-j` for source position i and target position j. The links of a line are sorted by source position
        in "pharaoh", and by target position, as Moses writes them, in "moses".
    """
    with writing(path) as file:
        write_lines(links, file.write, format)


def write_lines(
    links: Links | Iterable[Links], write: Callable[[str], object], format: str = "pharaoh"
) -> tuple[int, int]:
    """Pass the lines of a file of links to `write`, many at a time; return how many pairs and links there were."""
    from subchain.data.link_text import MOST_BYTES, format_lines  # compiled: not needed to read links

    if format not in FORMATS:
        raise unknown_name("format of links", format, FORMATS)
    n_pairs = n_links = 0
    for some in [links] if isinstance(links, Links) else links:
        ordered = some.sorted_by(FORMATS[format])
        for start in range(0, len(ordered), BLOCK):
            part = ordered.between(start, min(start + BLOCK, len(ordered)))
            out = np.empty(MOST_BYTES * len(part.source) + len(part), dtype=np.uint8)
            n_bytes = format_lines(part.offsets, part.source, part.target, out)
            write(out[:n_bytes].tobytes().decode("ascii"))
        n_pairs, n_links = n_pairs + len(some), n_links + len(some.source)
    return n_pairs, n_links


def check_inside(links: Links, text: ParallelText, name: str, first_line: int = 1) -> None:
    """Raise an error unless `text` has as many sentence pairs as `links`, which are all inside their sentences.

    `name` is that of the file of the links, and `first_line` the line of the first pair, for messages.
    """
    if len(links) != len(text):
        raise InputError(f"{name} has {len(links):,} lines, but the text has {len(text):,} sentence pairs.")
    for side, positions, lengths in (
        ("source", links.source, text.source_lengths),
        ("target", links.target, text.target_lengths),
    ):
        outside = np.flatnonzero(positions >= lengths[links.pairs])
        if outside.size:
            pair = links.pairs[outside[0]]
            raise FileFormatError(
                f"line {pair + first_line} of {name} links {side} position {positions[outside[0]]}, but the {side} "
                f"sentence has {lengths[pair]} tokens, counted from 0. Check that text and links belong together, and "
                "which side comes first."
            )


class _Read(NamedTuple):
    """Links of a file: pair, positions and sign of each, (n,)."""

    pairs: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    signs: NDArray[np.str_]
    n_pairs: int

    def links(self, signs: str) -> Links:
        """Return the links with some of the signs."""
        chosen = np.isin(self.signs, list(signs))
        return Links.from_flat(self.pairs[chosen], self.source[chosen], self.target[chosen], self.n_pairs)


def _read(file: TextSource, swap: bool) -> _Read:
    found: list[tuple[str, str, str]] = []
    counts = array("q")
    for number, line in numbered_lines(file):
        links = _LINK.findall(line)
        if len(links) != len(line.split()):
            raise _no_link(line, number, name_of_source(file))
        found += links
        counts.append(len(links))
    first, signs, second = zip(*found, strict=True) if found else ((), (), ())
    positions = [np.fromiter(map(int, side), dtype=np.int64, count=len(found)) for side in (first, second)]
    source, target = reversed(positions) if swap else positions
    pairs = np.repeat(np.arange(len(counts)), np.frombuffer(counts, dtype=np.int64) if counts else 0)
    return _Read(pairs, source, target, np.array(signs, dtype="U1"), len(counts))


def _no_link(line: str, number: int, name: str) -> FileFormatError:
    word = next(word for word in line.split() if _LINK.fullmatch(word) is None)
    return FileFormatError(
        f"line {number} of {name} holds {word[:20]!r}; a link is written as in 3-4, or 3?4 in gold files for a link "
        "that is only possible."
    )


def _table(pair: Any, number: int) -> NDArray[Any]:
    """Return the links of a sentence pair as an array (n, 2)."""
    try:
        table = pair if isinstance(pair, np.ndarray) else np.asarray(list(pair))
    except (TypeError, ValueError):  # no iterable, or entries of different lengths
        raise InputError(
            f"links of sentence pair {number} must be pairs of whole numbers, source and target position; several "
            "sentence pairs are given to Links.from_pairs."
        ) from None
    if not table.size:
        return np.empty((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iu":
        raise InputError(
            f"links of sentence pair {number} must be whole numbers of shape (n, 2), source and target position, not "
            f"{table.dtype} of shape {table.shape}."
        )
    return table
