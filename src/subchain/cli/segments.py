"""Predicted states as BED files: which chromosome each sequence lies on, and which file its segments go to."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from subchain.errors import InputError

if TYPE_CHECKING:
    from subchain.data import Sequences
    from subchain.tasks.segments import Segments

#: What stands for the name of a sequence in the name of a file.
PLACE = "{sequence}"


@dataclasses.dataclass(frozen=True)
class BedFile:
    """How segments are written.

    Attributes
    ----------
    chrom : chromosomes, with commas between them; None for the names of the sequences
    bin_size : bases of a position
    offset : base at which the first position begins
    colours : whether there are scores and colours
    track : name of a track, or None
    """

    chrom: str | None = None
    bin_size: int = 1
    offset: int = 0
    colours: bool = True
    track: str | None = None

    def check(self) -> None:
        """Look for mistakes before any data are read."""
        if self.bin_size < 1:
            raise InputError(f"--bin must be at least 1, not {self.bin_size}.")
        if self.offset < 0:
            raise InputError(f"--offset must be at least 0, not {self.offset}.")
        if self.chrom is not None and not all(self._chroms()):
            raise InputError(f"--chrom {self.chrom!r} names an empty chromosome; write --chrom chr1,chr2.")

    def check_data(self, data: Sequences, path: Path) -> None:
        """Look for mistakes before the states of the data are worked out."""
        given, n_sequences = self._chroms(), data.n_sequences
        if len(given) == 1 and n_sequences > 1 and PLACE not in path.name:
            raise InputError(
                f"--chrom {self.chrom} names one chromosome, but there are {n_sequences} sequences"
                f"{_shown(data)}, which would lie upon each other: name one for each, --chrom chr1,chr2; leave --chrom "
                f"out if sequences are called like chromosomes; or write a file for each, -o '{PLACE}{path.suffix}'."
            )
        if len(given) not in (0, 1, n_sequences):
            raise InputError(f"--chrom names {len(given)} chromosomes, but there are {n_sequences} sequences.")
        if PLACE in path.name:
            self._files(data.names, n_sequences, path)

    def targets(self, data: Sequences, path: Path) -> list[Path]:
        """The files that are written."""
        return list(self._files(data.names, data.n_sequences, path).values()) if PLACE in path.name else [path]

    def write(self, segments: Segments, path: Path) -> None:
        """One file, or one for each sequence."""
        given = self._chroms()
        if PLACE not in path.name:
            self._write(segments, path, given[0] if len(given) == 1 else given or None, "")
            return
        files = self._files(segments.sequence_names, segments.n_sequences, path)
        for number, (label, file) in enumerate(files.items()):
            chrom = given[number] if len(given) > 1 else given[0] if given else label
            self._write(segments.of(number), file, chrom, label)

    def _write(self, segments: Segments, path: Path, chrom: str | list[str] | None, label: str) -> None:
        track = None if self.track is None else self.track.replace(PLACE, label)
        segments.to_bed(
            path, chrom=chrom, step=self.bin_size, offset=self.offset, colours=self.colours, track=track
        )  # fmt: skip

    def _chroms(self) -> list[str]:
        return [] if self.chrom is None else [name.strip() for name in self.chrom.split(",")]

    @staticmethod
    def _files(names: tuple[str | int, ...] | None, n_sequences: int, path: Path) -> dict[str, Path]:
        """The file of each sequence."""
        labels = [f"sequence_{n}" for n in range(n_sequences)] if names is None else [str(name) for name in names]
        files = {label: path.with_name(path.name.replace(PLACE, label)) for label in labels if _can_be_file(label)}
        if len(files) < n_sequences:
            raise InputError(f"{path.name} needs names of sequences that differ and can be names of files.")
        return files


def _can_be_file(label: str) -> bool:
    return bool(label) and not {"/", "\\", "\0"} & set(label)


def _shown(data: Sequences) -> str:
    few = [] if data.names is None else [str(name) for name in data.names[:3]]
    return f" ({', '.join(few)}{', …' if data.n_sequences > len(few) else ''})" if few else ""
