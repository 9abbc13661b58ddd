"""Predicted states in files: a table with a row for every observation, plain arrays, lines of names, or segments.

All are written block by block, so that probabilities of long chains need not fit into memory.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from subchain.cli.segments import PLACE, BedFile
from subchain.core.files import replacing, writing
from subchain.data import Sequences
from subchain.errors import InputError
from subchain.models.hmm import HMM

#: Rows that are written together.
BLOCK = 1 << 16
#: How names of files with segments end.
BED = ".bed"


class Answers:
    """The states of data under a model.

    Attributes
    ----------
    states : (N,), over all sequences
    names : names of the states
    segments : stretches of equal states, if they are asked for
    """

    def __init__(
        self, model: HMM, data: Sequences, decoding: str, probabilities: bool, in_segments: bool = False
    ) -> None:
        self.model = model
        self.data = data
        self.probabilities = probabilities
        self.names = model.state_names_
        self.segments = model.segments(data, decoding) if in_segments else None
        self.states: NDArray[Any]
        if self.segments is not None:
            self.states = np.repeat(self.segments.state, self.segments.length)
        else:
            answer = model.predict(data, decoding)
            self.states = np.concatenate(answer) if isinstance(answer, list) else answer

    def shares(self) -> dict[str, float]:
        """Share of the positions in each state."""
        counts = np.bincount(self.states, minlength=len(self.names))
        return {name: float(count) / len(self.states) for name, count in zip(self.names, counts, strict=True)}

    def heads(self) -> list[str]:
        """Names of the table's columns."""
        symbol = ["symbol"] if self.data.vocabulary is not None else []
        chances = [f"p_{name}" for name in self.names] if self.probabilities else []
        return ["sequence", "position", *symbol, "state", *chances]

    def blocks(self) -> Iterator[dict[str, Any]]:
        """The table, some rows at a time, column by column."""
        labels = np.array(self.names, dtype=object)
        for start, chances in self._chances():
            stop = start + len(chances)
            sequence = np.searchsorted(self.data.offsets, np.arange(start, stop), side="right") - 1
            names = self.data.names
            columns: dict[str, Any] = {
                "sequence": sequence if names is None else [names[i] for i in sequence],
                "position": np.arange(start, stop) - self.data.offsets[sequence],
            }
            if self.data.vocabulary is not None:
                columns["symbol"] = self.data.vocabulary.decode(np.asarray(self.data.values[start:stop]))
            columns["state"] = labels[self.states[start:stop]]
            if self.probabilities:
                columns |= {f"p_{name}": chances[:, state] for state, name in enumerate(self.names)}
            yield columns

    def _chances(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Probabilities of the states, block by block; tables without columns where nobody wants them."""
        if self.probabilities:
            yield from self.model.predict_proba_blocks(self.data, BLOCK)
            return
        for start in range(0, len(self.states), BLOCK):
            yield start, np.empty((min(BLOCK, len(self.states) - start), 0))

    def print_table(self) -> None:
        """The table on standard output, with commas."""
        write_rows(self, sys.stdout, ",")


Writer = Callable[[Answers, Path], None]


def writer_for(path: Path, probabilities: bool, bed: BedFile) -> Writer:
    """What writes files that end as this one does."""
    writers: dict[str, Writer] = {
        ".csv": partial(_write_table, delimiter=","),
        ".tsv": partial(_write_table, delimiter="\t"),
        ".npy": _write_array,
        ".txt": _write_lines,
        ".parquet": _write_parquet,
        BED: partial(_write_segments, bed=bed),
    }
    found = writers.get(path.suffix.lower())
    if found is None:
        raise InputError(f"states are written to files that end in {', '.join(writers)}, but -o is {str(path)!r}.")
    if PLACE in path.name and not is_bed(path):
        raise InputError(f"a file for each sequence, {PLACE}, is written of segments ({BED}) alone.")
    if probabilities and path.suffix.lower() in (".txt", BED):
        raise InputError(f"{path.suffix} files have no room for --probabilities; write .csv, .parquet or .npy.")
    return found


def write_rows(answers: Answers, file: IO[str], delimiter: str) -> None:
    """The table as text."""
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(answers.heads())
    for columns in answers.blocks():
        writer.writerows(zip(*(_listed(column) for column in columns.values()), strict=True))


def _listed(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _write_table(answers: Answers, path: Path, delimiter: str) -> None:
    with writing(path) as file:
        write_rows(answers, file, delimiter)


def _write_array(answers: Answers, path: Path) -> None:
    """States (N,), or probabilities (N, K)."""
    with writing(path, "wb") as file:
        if not answers.probabilities:
            np.save(file, answers.states)
            return
        shape = (len(answers.states), len(answers.names))
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for _, chances in answers.model.predict_proba_blocks(answers.data, BLOCK):
            file.write(np.ascontiguousarray(chances, dtype="<f8").tobytes())


def _write_lines(answers: Answers, path: Path) -> None:
    """A line a sequence, names with blanks between them."""
    with writing(path) as file:
        for states in answers.data.split(answers.states):
            file.write(" ".join(answers.names[state] for state in states) + "\n")


def _write_parquet(answers: Answers, path: Path) -> None:
    from subchain.data.arrow import require_pyarrow

    require_pyarrow()
    import pyarrow
    from pyarrow import parquet

    with replacing(path) as temporary:
        file: Any = None
        try:
            for columns in answers.blocks():
                table = pyarrow.table(columns)
                file = file or parquet.ParquetWriter(temporary, table.schema)
                file.write_table(table)
        finally:
            if file is not None:
                file.close()
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())


def is_bed(path: Path) -> bool:
    """Whether segments go into this file."""
    return path.suffix.lower() == BED


def _write_segments(answers: Answers, path: Path, bed: BedFile) -> None:
    assert answers.segments is not None
    bed.write(answers.segments, path)
