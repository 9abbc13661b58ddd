"""Input of commands: model files, and data read according to the options or to the model.

A model file does not store the unit of its text. It is inferred from the vocabulary: symbols that are all of one
character were characters.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subchain.cli.calls import Call
from subchain.cli.exit_codes import UnreadableError
from subchain.cli.output import number_of
from subchain.cli.unknown_symbols import tell_unknown
from subchain.errors import InputError

#: Name that stands for standard input.
STANDARD_INPUT = "-"

if TYPE_CHECKING:
    from subchain.data import Sequences, Vocabulary
    from subchain.models.hmm import HMM


def existing(path: Path) -> Path:
    """Return the path; raise an `UnreadableError` with the most similar file name if it does not exist."""
    if path.exists():
        return path
    folder = path.parent
    if not folder.is_dir():
        raise UnreadableError(f"there is no file {str(path)!r}: the folder {str(folder)!r} does not exist.")
    near = difflib.get_close_matches(path.name, sorted(file.name for file in folder.iterdir()), n=1)
    hint = f" Did you mean {str(folder / near[0])!r}?" if near else ""
    raise UnreadableError(f"there is no file {str(path)!r} (the current folder is {str(Path.cwd())!r}).{hint}")


def load_model(path: Path) -> HMM:
    """Return the model of a file."""
    from subchain import HMM

    if existing(path).is_dir():
        raise UnreadableError(f"{str(path)!r} is a folder; give the model file that `subchain fit` wrote.")
    return HMM.load(path)


@dataclasses.dataclass(frozen=True)
class DataSource:
    """Files to read, and options of `subchain.read`; None for its defaults."""

    paths: Sequence[Path]
    unit: str | None = None
    sequences: str | None = None
    lower: bool | None = None
    columns: str | None = None
    sequence: str | None = None
    array: str | None = None
    format: str | None = None
    lengths: str | None = None
    header: bool | None = None
    separator: str | None = None

    def call(self) -> Call:
        """Return the call of `subchain.read`."""
        files = [str(path if is_standard_input(path) else existing(path)) for path in self.paths]
        return Call("read", (files[0] if len(files) == 1 else files,)).with_settings(
            format=self.format, unit=self.unit, sequences=self.sequences, lower=self.lower or None,
            columns=_listed(self.columns),
            sequence=None if self.sequence is None else _name_or_number(self.sequence), array=_arrays(self.array),
            lengths=self.lengths, header=self.header, separator=self.separator,
        )  # fmt: skip

    def like(self, model: HMM) -> DataSource:
        """Return the source with options that are not given taken from the training data of a model."""
        known = self
        vocabulary = model.vocabularies_[0] if len(model.vocabularies_) == 1 else None
        kinds = self._kinds()
        if vocabulary is not None and kinds & {"text", "treebank"} and known.lower is None:
            known = dataclasses.replace(known, lower=_is_lower(vocabulary))
        if vocabulary is not None and kinds == {"text"} and known.unit is None:
            known = dataclasses.replace(known, unit="characters" if _are_characters(vocabulary) else "words")
        if model.columns_ is not None and known.columns is None and self._all_have(*model.columns_):
            known = dataclasses.replace(known, columns=",".join(model.columns_))
        if model.grouped_by_ is not None and known.sequence is None and self._all_have(model.grouped_by_):
            known = dataclasses.replace(known, sequence=model.grouped_by_)
        return known

    def read(self) -> Sequences:
        """Return the data."""
        found: Sequences = self.call().evaluate()
        return found

    def _files(self) -> list[Path]:
        return [file for path in self.paths for file in (path.iterdir() if path.is_dir() else [path])]

    def _kinds(self) -> set[str]:
        from subchain.data.reading import FORMATS, KINDS

        if self.format in FORMATS:
            return {KINDS[FORMATS[self.format]]}
        return {KINDS[suffix] for file in self._files() for suffix in file.suffixes if suffix in KINDS}

    def _all_have(self, *columns: str) -> bool:
        """Return whether all files are tables that have these columns."""
        from subchain.data.table_columns import columns_of_table

        if not self._kinds() <= {"table", "parquet"}:
            return False
        found = [columns_of_table(file, self.separator, self.header) for file in self._files()]
        return bool(found) and all(set(columns) <= set(names) for names in found)


def is_standard_input(path: Path) -> bool:
    """Return whether a path stands for standard input."""
    return str(path) == STANDARD_INPUT


def read_for(model: HMM, source: DataSource) -> Sequences:
    """Return the data in the codes and columns of a model."""
    from subchain.data.standard_input import kept_input

    if [str(path) for path in source.paths] != [STANDARD_INPUT]:
        return _in_codes(model, source)
    with kept_input() as file:
        return _in_codes(model, dataclasses.replace(source, paths=[file]))


def _in_codes(model: HMM, source: DataSource) -> Sequences:
    found = source.like(model).read()
    tell_unknown(found, model.vocabularies_)
    return model._read(found)


def described(data: Sequences, n_missing: int) -> str:
    """Return the size of data in words, with the number of missing entries."""
    missing = f"{n_missing:,} of {data.n_observations * data.n_features:,} entries" if n_missing else "no entry"
    return (
        f"{number_of(data.n_observations, 'observation')} in {number_of(data.n_sequences, 'sequence')}, "
        f"{number_of(data.n_features, 'column')}, {missing} missing"
    )


def _listed(columns: str | None) -> Any:
    """Return the column, or list of columns, of an option with comma-separated names or numbers."""
    if columns is None:
        return None
    found = [_name_or_number(name.strip()) for name in columns.split(",") if name.strip()]
    if not found:
        raise InputError("--columns names no column; separate names by commas, as in --columns pulse,rr.")
    return found[0] if len(found) == 1 else found


def _arrays(array: str | None) -> str | list[str] | None:
    """Return the array, or list of arrays, of an option with comma-separated names."""
    if array is None or "," not in array:
        return array
    return [name.strip() for name in array.split(",") if name.strip()]


def _name_or_number(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdecimal() else text


def _are_characters(vocabulary: Vocabulary) -> bool:
    return all(len(symbol) == 1 for symbol in vocabulary if symbol != vocabulary.unknown)


def _is_lower(vocabulary: Vocabulary) -> bool:
    text = "".join(symbol for symbol in vocabulary if symbol != vocabulary.unknown)
    return text.islower()
