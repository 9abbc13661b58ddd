"""Writers of predicted states: tables with one row per observation, arrays, lines of state names, or segments.

Files are written block by block, so that the probabilities of long sequences need not fit into memory.
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

from subchain.cli.bed import PLACEHOLDER, BedFile
from subchain.core.files import replacing, writing
from subchain.data import Sequences
from subchain.errors import InputError
from subchain.models.hmm import HMM
from subchain.tasks.decoding import NO_STATE

#: Number of rows that are written together.
BLOCK = 1 << 16
#: Suffix of files with segments.
BED = ".bed"


class Predictions:
    """Predicted states of data.

    Attributes
    ----------
    states : (N,), over all sequences; −1 in sequences of probability zero
    names : names of the states
    segments : segments of equal states, or None
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
            self.states = np.full(data.n_observations, NO_STATE)
            for part in self.segments:
                start = data.offsets[part.sequence]
                self.states[start + part.start : start + part.stop] = part.state
        else:
            answer = model.predict(data, decoding)
            self.states = np.concatenate(answer) if isinstance(answer, list) else answer

    def shares(self) -> dict[str, float]:
        """Return the fraction of the decoded positions in each state by name."""
        counts = np.bincount(self.states[self.states != NO_STATE], minlength=len(self.names))
        return {name: float(count) / counts.sum() for name, count in zip(self.names, counts, strict=True)}

    @property
    def labels(self) -> NDArray[Any]:
        """Names of the states, and last, where −1 finds it, an empty one for positions that are not decoded."""
        return np.array([*self.names, ""], dtype=object)

    def column_names(self) -> list[str]:
        """Return the names of the table's columns."""
        symbol = ["symbol"] if self.data.vocabulary is not None else []
        probabilities = [f"p_{name}" for name in self.names] if self.probabilities else []
        return ["sequence", "position", *symbol, "state", *probabilities]

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Yield blocks of rows of the table as columns by name."""
        labels = self.labels
        for start, marginals in self._marginals():
            stop = start + len(marginals)
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
                columns |= {f"p_{name}": marginals[:, state] for state, name in enumerate(self.names)}
            yield columns

    def _marginals(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield first positions and marginals (n, K) of blocks; (n, 0) if probabilities are not written."""
        if self.probabilities:
            yield from self.model.predict_proba_blocks(self.data, BLOCK)
            return
        for start in range(0, len(self.states), BLOCK):
            yield start, np.empty((min(BLOCK, len(self.states) - start), 0))

    def print_table(self) -> None:
        """Print the table to standard output, with commas."""
        write_rows(self, sys.stdout, ",")


Writer = Callable[[Predictions, Path], None]


def writer_for(path: Path, probabilities: bool, bed: BedFile) -> Writer:
    """Return the writer for files with this suffix; raise an `InputError` for unsupported files and options."""
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
        raise InputError(f"-o {str(path)!r} has an unsupported suffix; states are written to {', '.join(writers)}.")
    if PLACEHOLDER in path.name and not is_bed(path):
        raise InputError(f"one file per sequence, {PLACEHOLDER}, is possible for segments ({BED}) only.")
    if probabilities and path.suffix.lower() in (".txt", BED):
        raise InputError(f"{path.suffix} files have no room for --probabilities; write .csv, .parquet or .npy.")
    return found


def write_rows(predictions: Predictions, file: IO[str], delimiter: str) -> None:
    """Write the table as text."""
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(predictions.column_names())
    for columns in predictions.blocks():
        writer.writerows(zip(*(_listed(column) for column in columns.values()), strict=True))


def _listed(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _write_table(predictions: Predictions, path: Path, delimiter: str) -> None:
    with writing(path) as file:
        write_rows(predictions, file, delimiter)


def _write_array(predictions: Predictions, path: Path) -> None:
    """Write the states (N,), or the probabilities (N, K), as an .npy file."""
    with writing(path, "wb") as file:
        if not predictions.probabilities:
            np.save(file, predictions.states)
            return
        shape = (len(predictions.states), len(predictions.names))
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for _, marginals in predictions.model.predict_proba_blocks(predictions.data, BLOCK):
            file.write(np.ascontiguousarray(marginals, dtype="<f8").tobytes())


def _write_lines(predictions: Predictions, path: Path) -> None:
    """Write one line per sequence, with state names separated by blanks."""
    with writing(path) as file:
        for states in predictions.data.split(predictions.states):
            file.write(" ".join(predictions.labels[states]) + "\n")


def _write_parquet(predictions: Predictions, path: Path) -> None:
    from subchain.data.arrow import require_pyarrow

    require_pyarrow()
    import pyarrow
    from pyarrow import parquet

    with replacing(path) as temporary:
        file: Any = None
        try:
            for columns in predictions.blocks():
                table = pyarrow.table(columns)
                file = file or parquet.ParquetWriter(temporary, table.schema)
                file.write_table(table)
        finally:
            if file is not None:
                file.close()
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())


def is_bed(path: Path) -> bool:
    """Return whether a file has the suffix of segments."""
    return path.suffix.lower() == BED


def _write_segments(predictions: Predictions, path: Path, bed: BedFile) -> None:
    assert predictions.segments is not None
    bed.write(predictions.segments, path)
