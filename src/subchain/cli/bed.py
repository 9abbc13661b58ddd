"""Predicted states as BED files: chromosome and output file of each sequence."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from subchain.errors import InputError

if TYPE_CHECKING:
    from subchain.data import Sequences
    from subchain.tasks.segments import Segments

#: Placeholder for the name of a sequence in the name of a file.
PLACEHOLDER = "{sequence}"


@dataclasses.dataclass(frozen=True)
class BedFile:
    """Settings of BED files.

    Attributes
    ----------
    chrom : comma-separated chromosomes; None for the names of the sequences
    bin_size : number of bases per position
    offset : first base of the first position
    colours : whether to write scores and colours
    track : name of the track line, or None
    """

    chrom: str | None = None
    bin_size: int = 1
    offset: int = 0
    colours: bool = True
    track: str | None = None

    def check(self) -> None:
        """Raise an `InputError` for invalid settings, before any data are read."""
        if self.bin_size < 1:
            raise InputError(f"--bin must be at least 1, not {self.bin_size}.")
        if self.offset < 0:
            raise InputError(f"--offset must be at least 0, not {self.offset}.")
        if self.chrom is not None and not all(self._chroms()):
            raise InputError(f"--chrom {self.chrom!r} names an empty chromosome; write --chrom chr1,chr2.")

    def check_data(self, data: Sequences, path: Path) -> None:
        """Raise an `InputError` if the settings do not fit the data, before states are computed."""
        given, n_sequences = self._chroms(), data.n_sequences
        if len(given) == 1 and n_sequences > 1 and PLACEHOLDER not in path.name:
            raise InputError(
                f"--chrom {self.chrom} names one chromosome, but there are {n_sequences} sequences"
                f"{_shown(data)}, which would overlap. Give one chromosome for each, --chrom chr1,chr2; leave --chrom "
                "out if the sequences have the names of chromosomes; or write one file for each, "
                f"-o '{PLACEHOLDER}{path.suffix}'."
            )
        if len(given) not in (0, 1, n_sequences):
            raise InputError(f"--chrom names {len(given)} chromosomes, but there are {n_sequences} sequences.")
        if PLACEHOLDER in path.name:
            self._files(data.names, n_sequences, path)

    def targets(self, data: Sequences, path: Path) -> list[Path]:
        """Return the paths of the files to write."""
        return list(self._files(data.names, data.n_sequences, path).values()) if PLACEHOLDER in path.name else [path]

    def write(self, segments: Segments, path: Path) -> None:
        """Write one file, or one for each sequence."""
        given = self._chroms()
        if PLACEHOLDER not in path.name:
            self._write(segments, path, given[0] if len(given) == 1 else given or None, "")
            return
        files = self._files(segments.sequence_names, segments.n_sequences, path)
        for number, (label, file) in enumerate(files.items()):
            chrom = given[number] if len(given) > 1 else given[0] if given else label
            self._write(segments.of(number), file, chrom, label)

    def _write(self, segments: Segments, path: Path, chrom: str | list[str] | None, label: str) -> None:
        track = None if self.track is None else self.track.replace(PLACEHOLDER, label)
        segments.to_bed(
            path, chrom=chrom, step=self.bin_size, offset=self.offset, colours=self.colours, track=track
        )  # fmt: skip

    def _chroms(self) -> list[str]:
        return [] if self.chrom is None else [name.strip() for name in self.chrom.split(",")]

    @staticmethod
    def _files(names: tuple[str | int, ...] | None, n_sequences: int, path: Path) -> dict[str, Path]:
        """Return the path for each sequence by name; raise an `InputError` if names are not unique file names."""
        labels = [f"sequence_{n}" for n in range(n_sequences)] if names is None else [str(name) for name in names]
        files = {
            label: path.with_name(path.name.replace(PLACEHOLDER, label)) for label in labels if _can_be_file(label)
        }
        if len(files) < n_sequences:
            raise InputError(f"{path.name} needs different sequence names that are valid file names.")
        return files


def _can_be_file(label: str) -> bool:
    return bool(label) and not {"/", "\\", "\0"} & set(label)


def _shown(data: Sequences) -> str:
    few = [] if data.names is None else [str(name) for name in data.names[:3]]
    return f" ({', '.join(few)}{', …' if data.n_sequences > len(few) else ''})" if few else ""
