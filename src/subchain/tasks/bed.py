"""Writing segments as a BED file: chromosome, start and end in bases (from 0, end exclusive), state.

BED identifies a place by chromosome and base only. Two sequences may therefore share a chromosome if they do not
overlap (parts of it, each with its offset), but not if they are the same chromosome of two cell lines.
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
    """Write segments to a BED file; `Segments.to_bed` describes the parameters."""
    checked_target(path)
    if not isinstance(step, (int, np.integer)) or step < 1:
        raise InputError(f"step, the number of bases per position, must be a whole number of at least 1; got {step!r}.")
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
    """Return the chromosome of each sequence."""
    n_sequences = segments.n_sequences
    if isinstance(chrom, str):
        return [_field(chrom)] * n_sequences
    if chrom is None:
        names = segments.sequence_names
        chrom = [f"sequence_{number}" for number in range(n_sequences)] if names is None else [str(n) for n in names]
    if len(chrom) != n_sequences or not all(isinstance(name, str) for name in chrom):
        raise InputError(f"chrom must have one name for each of {n_sequences} sequences; got {list(chrom)!r}.")
    return [_field(name) for name in chrom]


def _offsets(segments: Segments, offset: int | Sequence[int]) -> Index:
    """Return the first base of each sequence, (n_sequences,)."""
    given: NDArray[Any] = np.asarray(offset)
    if given.dtype.kind not in "iu" or given.shape not in ((), (segments.n_sequences,)) or (given < 0).any():
        raise InputError(
            f"offset must be a whole number of bases, not negative, or one for each of {segments.n_sequences} "
            f"sequences; got {offset!r}."
        )
    return np.broadcast_to(given, segments.n_sequences).astype(np.int64)


def _check_apart(segments: Segments, chroms: Sequence[str], starts: Index, ends: Index) -> None:
    """Raise an `InputError` if two sequences overlap on a chromosome."""
    first, last = np.full(segments.n_sequences, np.iinfo(np.int64).max), np.zeros(segments.n_sequences, dtype=np.int64)
    np.minimum.at(first, segments.sequence, starts)
    np.maximum.at(last, segments.sequence, ends)
    spans = sorted((chroms[i], first[i], last[i], i) for i in np.unique(segments.sequence).tolist())
    for (chrom, _, end, one), (other, start, _, another) in pairwise(spans):
        if chrom == other and start < end:
            raise InputError(
                f"{_label(segments, one)} and {_label(segments, another)} overlap on {chrom}; give each sequence its "
                "own chromosome, chrom=['chr1', 'chr2'], or write one file per sequence, "
                "segments.of(name).to_bed(path)."
            )


def _label(segments: Segments, sequence: int) -> str:
    names = segments.sequence_names
    return f"sequence {sequence}" if names is None else f"sequence {names[sequence]!r}"


def _looks(segments: Segments, own: Mapping[str, str]) -> list[str]:
    """Return the colour of each state as "r,g,b"; `own` maps names of states to colours that replace the default."""
    for name in own:
        if name not in segments.state_names:
            raise unknown_name("state", name, segments.state_names)
    known = zip(segments.state_names, segments.colours, strict=True)
    return [",".join(map(str, red_green_blue(own.get(name, colour)))) for name, colour in known]


def _field(name: str) -> str:
    """Return a name as one field: blanks become underscores, because programs may split lines at any blank."""
    return re.sub(r"\s", "_", name) or "_"


def _quoted(name: str) -> str:
    return re.sub(r"[\"\s]", lambda found: "'" if found[0] == '"' else " ", name)
