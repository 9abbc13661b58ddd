"""Segments as lines of a BED file: whole bases from 0, ends exclusive, a chromosome for each sequence.

BED knows a place by chromosome and base alone, so that two sequences may share a chromosome only where they do not
overlap: parts of it, with an offset each, but not the same chromosome of two cell lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.files import checked_target, writing
from subchain.errors import InputError, unknown_name
from subchain.tasks.colours import red_green_blue

if TYPE_CHECKING:
    from subchain.tasks.segments import Segments

Index = NDArray[np.int64]


def write(
    segments: Segments,
    path: str | os.PathLike[str],
    chrom: str | Sequence[str] | None,
    step: int,
    offset: int | Sequence[int],
    colours: bool | Mapping[str, str],
    track: str | None,
) -> None:
    """Write a file; what the arguments mean is said in `Segments.to_bed`."""
    checked_target(path)
    if not isinstance(step, (int, np.integer)) or step < 1:
        raise InputError(f"step is the number of bases of a position, a whole number of at least 1, not {step!r}.")
    chroms, offsets = _chromosomes(segments, chrom), _offsets(segments, offset)
    starts = offsets[segments.sequence] + segments.start * step
    ends = offsets[segments.sequence] + segments.stop * step
    _check_apart(segments, chroms, starts, ends)
    names = [_field(name) for name in segments.state_names]
    looks = None if colours is False else _looks(segments, {} if colours is True else colours)
    scores = np.round(1000 * segments.probability).astype(np.int64)
    columns = (column.tolist() for column in (segments.sequence, starts, ends, segments.state, scores))
    with writing(path) as file:
        if track is not None:
            file.write(f'track name="{_quoted(track)}" description="{_quoted(track)}" visibility=1 itemRgb="On"\n')
        for sequence, start, end, state, score in zip(*columns, strict=True):
            line = f"{chroms[sequence]}\t{start}\t{end}\t{names[state]}"
            file.write(f"{line}\n" if looks is None else f"{line}\t{score}\t.\t{start}\t{end}\t{looks[state]}\n")


def _chromosomes(segments: Segments, chrom: str | Sequence[str] | None) -> list[str]:
    """The chromosome of each sequence."""
    n_sequences = segments.n_sequences
    if isinstance(chrom, str):
        return [_field(chrom)] * n_sequences
    if chrom is None:
        names = segments.sequence_names
        chrom = [f"sequence_{number}" for number in range(n_sequences)] if names is None else [str(n) for n in names]
    if len(chrom) != n_sequences or not all(isinstance(name, str) for name in chrom):
        raise InputError(f"chrom needs one name for each of {n_sequences} sequences, but is {list(chrom)!r}.")
    return [_field(name) for name in chrom]


def _offsets(segments: Segments, offset: int | Sequence[int]) -> Index:
    """The base at which each sequence begins."""
    given: NDArray[Any] = np.asarray(offset)
    if given.dtype.kind not in "iu" or given.shape not in ((), (segments.n_sequences,)) or (given < 0).any():
        raise InputError(
            f"offset is a whole number of bases from 0 on, or one for each of {segments.n_sequences} sequences, not "
            f"{offset!r}."
        )
    return np.broadcast_to(given, segments.n_sequences).astype(np.int64)


def _check_apart(segments: Segments, chroms: Sequence[str], starts: Index, ends: Index) -> None:
    """Refuse two sequences at the same place."""
    first, last = np.full(segments.n_sequences, np.iinfo(np.int64).max), np.zeros(segments.n_sequences, dtype=np.int64)
    np.minimum.at(first, segments.sequence, starts)
    np.maximum.at(last, segments.sequence, ends)
    spans = sorted((chroms[i], first[i], last[i], i) for i in np.unique(segments.sequence).tolist())
    for (chrom, _, end, one), (other, start, _, another) in pairwise(spans):
        if chrom == other and start < end:
            raise InputError(
                f"{_label(segments, one)} and {_label(segments, another)} would lie upon each other on {chrom}; give "
                "each sequence its chromosome, chrom=['chr1', 'chr2'], or write a file for each, "
                "segments.of(name).to_bed(path)."
            )


def _label(segments: Segments, sequence: int) -> str:
    names = segments.sequence_names
    return f"sequence {sequence}" if names is None else f"sequence {names[sequence]!r}"


def _looks(segments: Segments, own: Mapping[str, str]) -> list[str]:
    """The colour of each state as browsers read it."""
    for name in own:
        if name not in segments.state_names:
            raise unknown_name("state", name, segments.state_names)
    known = zip(segments.state_names, segments.colours, strict=True)
    return [",".join(map(str, red_green_blue(own.get(name, colour)))) for name, colour in known]


def _field(name: str) -> str:
    """A name as one field: programs may split lines at any blank."""
    return re.sub(r"\s", "_", name) or "_"


def _quoted(name: str) -> str:
    return re.sub(r"[\"\s]", lambda found: "'" if found[0] == '"' else " ", name)
