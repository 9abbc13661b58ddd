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
from subchain.cli.unknown_symbols import tell_unknown
from subchain.errors import InputError

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

    def call(self) -> Call:
        """Return the call of `subchain.read`."""
        files = [str(existing(path)) for path in self.paths]
        return Call("read", (files[0] if len(files) == 1 else files,)).with_settings(
            unit=self.unit, sequences=self.sequences, lower=self.lower or None, columns=_listed(self.columns),
            sequence=None if self.sequence is None else _name_or_number(self.sequence), array=_arrays(self.array),
        )  # fmt: skip

    def like(self, model: HMM) -> DataSource:
        """Return the source with options that are not given taken from the training data of a model."""
        known = self
        vocabulary = model.vocabularies_[0] if len(model.vocabularies_) == 1 else None
        if vocabulary is not None and self._has_text():
            known = dataclasses.replace(
                known,
                unit=known.unit or ("characters" if _are_characters(vocabulary) else "words"),
                lower=_is_lower(vocabulary) if known.lower is None else known.lower,
            )
        if model.columns_ is not None and known.columns is None and self._has_tables():
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
        from subchain.data.reading import KINDS

        return {KINDS[suffix] for file in self._files() for suffix in file.suffixes if suffix in KINDS}

    def _all_have(self, column: str) -> bool:
        from subchain.data.tables import columns_of_table

        return self._kinds() == {"table"} and all(column in columns_of_table(file) for file in self._files())

    def _has_text(self) -> bool:
        return bool(self._kinds() & {"text", "treebank"})

    def _has_tables(self) -> bool:
        return "table" in self._kinds()


def read_for(model: HMM, source: DataSource) -> Sequences:
    """Return the data in the codes and columns of a model."""
    found = source.like(model).read()
    tell_unknown(found, model.vocabularies_)
    return model._read(found)


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
