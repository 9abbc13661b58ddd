"""How data are divided into shards, and the part of a shard as the process that holds it sees it.

A *shard* is a run of whole sequences, or a stretch of a long one. Shards depend on the data and the number of states
alone, never on the number of processes, and their statistics are added in a fixed order, so that any number of
processes gives the same bits.
"""

from __future__ import annotations

import dataclasses
import mmap
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.mapped import is_memory_mapped
from subchain.data.sequences import Sequences
from subchain.engines.cpu.engine import Cpu
from subchain.engines.part import Part
from subchain.errors import InputError

Index = NDArray[np.int64]

#: Positions times states of a shard that are worth a task, and fewest positions.
WORTH, LEAST = 1 << 22, 1 << 14
#: Most shards, unless single sequences need more.
MOST = 256
#: Positions beyond the ends of a stretch, from which the messages at its ends are estimated.
HALO = 512


class Shard(NamedTuple):
    """A run of sequences, or a stretch of one.

    Attributes
    ----------
    first, last : the sequences, without the last one
    start, stop : the positions, without the last one
    begins, ends : whether it begins, and ends, its sequence; both are true for whole sequences
    """

    first: int
    last: int
    start: int
    stop: int
    begins: bool
    ends: bool

    @property
    def is_stretch(self) -> bool:
        return not (self.begins and self.ends)


def divide(offsets: Index, n_states: int) -> list[Shard]:
    """Divide sequences into shards, in the order of the data.

    Examples
    --------
    >>> [shard.stop for shard in divide(np.array([0, 10, 50_000]), n_states=300)]
    [10, 16673, 33336, 50000]
    """
    size = max(WORTH // n_states, LEAST, -(-int(offsets[-1]) // MOST))
    lengths, shards, done = np.diff(offsets), list[Shard](), 0
    for sequence in [*np.flatnonzero(lengths > 2 * size).tolist(), len(lengths)]:
        shards += _whole(offsets, done, sequence, size)
        if sequence < len(lengths):
            shards += _stretches(offsets, sequence, size)
        done = sequence + 1
    return shards


def _whole(offsets: Index, first: int, last: int, size: int) -> list[Shard]:
    """Runs of whole sequences, each about as long as a shard should be."""
    if offsets[last] == offsets[first]:
        return []
    n = max(1, round(int(offsets[last] - offsets[first]) / size))
    wanted = offsets[first] + (offsets[last] - offsets[first]) * np.arange(1, n) // n
    edges = np.unique([first, *(first + np.searchsorted(offsets[first:last], wanted)), last])
    return [Shard(a, b, int(offsets[a]), int(offsets[b]), True, True) for a, b in pairwise(edges.tolist())]


def _stretches(offsets: Index, sequence: int, size: int) -> list[Shard]:
    """A long sequence, cut evenly."""
    begin, end = int(offsets[sequence]), int(offsets[sequence + 1])
    n = round((end - begin) / size)
    edges = [begin + (end - begin) * i // n for i in range(n + 1)]
    return [Shard(sequence, sequence + 1, a, b, a == begin, b == end) for a, b in pairwise(edges)]


# ---- where observations are found ------------------------------------------------------------------------------------


@dataclasses.dataclass
class MappedRows:
    """Rows of a file that every process can map by the same path.

    Attributes
    ----------
    path : of the file
    offset : bytes before the first row
    dtype, shape : of the rows
    size : bytes of the file
    """

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    size: int

    def open(self) -> NDArray[Any]:
        """Map the rows; an `InputError` if the file is not here, or another one."""
        try:
            with open(self.path, "rb") as file:
                found = file.seek(0, 2)
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be read by this process of the cluster ({error.strerror}); all processes need the "
                "file at the same path, or load the data so that they are sent: np.load(path) without mmap_mode."
            ) from None
        if found != self.size:
            raise InputError(
                f"{self.path} has {found} bytes for this process of the cluster, but {self.size} elsewhere."
            )
        return np.memmap(self.path, np.dtype(self.dtype), "r", self.offset, self.shape)


def rows_of(values: NDArray[Any], start: int, stop: int) -> MappedRows | NDArray[Any]:
    """Return rows of an array, as a file to map if the array is mapped from one that is not written to."""
    rows = values[start:stop]
    base: Any = values
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not (is_memory_mapped(values) and isinstance(base, np.memmap) and base.mode == "r" and rows.flags.c_contiguous):
        return np.array(rows)
    place: Any = base
    while isinstance(place.base, np.ndarray):
        place = place.base
    map_ = place.base
    assert isinstance(map_, mmap.mmap)
    mapped = np.frombuffer(map_, dtype=np.uint8)
    at = base.offset - base.offset % mmap.ALLOCATIONGRANULARITY
    at += rows.__array_interface__["data"][0] - mapped.__array_interface__["data"][0]
    return MappedRows(str(base.filename), at, rows.dtype.str, rows.shape, map_.size())


# ---- what a process holds --------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Held:
    """A shard's observations and what is known of them, as they are sent to the process that works on it.

    Attributes
    ----------
    shard : which part of the data
    rows : its observations, after up to `HALO` of those before it in its sequence, and before as many after it
    offsets : where its sequences begin, counted from its first position
    n_before : number of rows before it
    sees_begin, sees_end : whether the rows reach to the beginning, and to the end, of its sequence
    evidence : what is known of the states of all rows
    weights, hidden : as in `Part`, without the rows before and after it
    """

    shard: Shard
    rows: MappedRows | NDArray[Any]
    offsets: Index
    n_before: int
    sees_begin: bool
    sees_end: bool
    evidence: Evidence | None
    weights: NDArray[np.float64] | None
    hidden: NDArray[np.bool_] | None

    @classmethod
    def of(cls, part: Part, shard: Shard) -> Held:
        """Return what a process needs to work on a shard."""
        offsets, start, stop = part.data.offsets, shard.start, shard.stop
        begin, end = int(offsets[shard.first]), int(offsets[shard.last])
        low, high = max(start - HALO, begin), min(stop + HALO, end)
        own = np.array([0, stop - start]) if shard.is_stretch else offsets[shard.first : shard.last + 1] - start
        return cls(
            shard, rows_of(part.data.values, low, high), own, start - low, low == begin, high == end,
            None if part.evidence is None else part.evidence.between(low, high),
            None if part.weights is None else part.weights[shard.first : shard.last],
            None if part.hidden is None else part.hidden[low:high],
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def engine(self, n_jobs: int) -> Cpu:
        """Return the engine that works on this shard, which remembers how it was cut."""
        return self._engine.with_jobs(n_jobs)

    @cached_property
    def _engine(self) -> Cpu:
        return Cpu()

    @cached_property
    def around(self) -> Part:
        """All rows, as one sequence."""
        values = self.rows.open() if isinstance(self.rows, MappedRows) else self.rows
        return Part(Sequences(values), self.evidence, None, self.hidden)

    @cached_property
    def part(self) -> Part:
        """The shard's own rows."""
        first, last = self.n_before, self.n_before + int(self.offsets[-1])
        data = Sequences(self.around.data.values[first:last], self.offsets)
        evidence = None if self.evidence is None else self.evidence.between(first, last)
        return Part(data, evidence, self.weights, None if self.hidden is None else self.hidden[first:last])
