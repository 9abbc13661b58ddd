"""Reader of files and folders of any supported kind, which is recognised by the file's suffix.

The files of a folder share one vocabulary, and their sequences are concatenated in the order of the file names.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.columns import Columns, as_slice
from subchain.data.conllu import read_conllu
from subchain.data.convert import as_sequences
from subchain.data.dtypes import cast, joined
from subchain.data.lines import existing_file
from subchain.data.sequences import Sequences
from subchain.data.text import read_text
from subchain.data.unpacking import COMPRESSED, check_unpacked
from subchain.data.vocabulary import Vocabulary
from subchain.errors import FileFormatError, InputError, SubchainError, unknown_name

PathName = str | PathLike[str]

#: Kinds of files by suffix, which may be followed by one of `COMPRESSED`.
KINDS = {
    ".txt": "text",
    ".npy": "array",
    ".npz": "arrays",
    ".csv": "table",
    ".tsv": "table",
    ".parquet": "table",
    ".pq": "table",
    ".conllu": "treebank",
}
#: Name of the array in an .npz file that holds the lengths of the sequences.
LENGTHS = "lengths"
_UNITS = ("words", "characters")


def read(
    paths: PathName | Iterable[PathName],
    *,
    unit: str = "words",
    sequences: str | None = None,
    lower: bool = False,
    columns: Columns | None = None,
    sequence: str | int | None = None,
    array: str | Iterable[str] | None = None,
) -> Sequences:
    """Read one or several files, or folders of files, whose kind is recognised by their suffix.

    Use it if the kind of file is not known in advance; :func:`read_text`, :func:`read_csv` and the other readers have
    more settings.

    Parameters
    ----------
    paths : path, or several
        Text (.txt), arrays (.npy, .npz), tables (.csv, .tsv, .parquet), treebanks (.conllu), or folders of files of one
        kind.
    unit : {"words", "characters"}
        For text: the unit of one observation.
    sequences : {"lines", "chain"}, optional
        For text: "lines" makes every line a sequence, "chain" the whole text. The default is "lines" for words and
        "chain" for characters, which then include the line ends.
    lower : bool
        For text and treebanks: convert everything to lower case.
    columns : str, int or list of them, optional
        For tables and arrays: the observed columns. For treebanks: the observed field, "form" by default.
    sequence : str or int, optional
        For tables: the column with the name of the sequence that a row belongs to.
    array : str or list of str, optional
        For .npz files with several arrays: the observed one. If the file has an array "lengths", it divides the array
        into sequences; if it has an array of strings with one entry per column, these name the columns. Several
        observed arrays become one named sequence each.

    Returns
    -------
    Sequences

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from subchain import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (pathlib.Path(folder) / "a.txt").write_text("the cat\\n")
    ...     _ = (pathlib.Path(folder) / "b.txt").write_text("the dog\\n")
    ...     data = read(folder)
    >>> data.lengths, data.values, data.vocabulary.to_list()
    (array([2, 2]), array([0, 1, 0, 2], dtype=int32), ['the', 'cat', 'dog', '<unk>'])
    """
    array = array if array is None or isinstance(array, str) else list(array)
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    files = [file for path in given for file in _files(path)]
    if not files:
        raise InputError("no file was given; give at least one.")
    kinds = {kind_of(file): file for file in files}
    if len(kinds) > 1:
        found = ", ".join(f"{kind} ({file.name})" for kind, file in kinds.items())
        raise InputError(f"the files are of several kinds: {found}; read one kind at a time.")
    readers: dict[str, Callable[[Path], Sequences]] = {
        "text": lambda file: _text(file, unit, sequences, lower),
        "array": lambda file: _columns_of(as_sequences(file), columns),
        "arrays": lambda file: _columns_of(_from_npz(file, array), columns),
        "table": lambda file: as_sequences(file, columns=columns, sequence=sequence),
        "treebank": lambda file: read_conllu(file, column=_field(columns), tags=None, lower=lower).words,
    }
    read_one = readers[next(iter(kinds))]
    return _end_to_end([read_one(file) for file in files], files)


def kind_of(path: PathName) -> str:
    """Return the kind of a file by its suffix; raise an `InputError` for unsupported suffixes."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    last = next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")
    if last not in KINDS:
        raise InputError(f"{str(path)!r} is of an unsupported kind; file names must end in {', '.join(KINDS)}.")
    return KINDS[last]


def _files(path: PathName) -> list[Path]:
    """Return the file itself, or all supported files of a folder."""
    found = Path(path).expanduser()
    if not found.is_dir():
        return [existing_file(path)]
    inside = sorted(file for file in found.iterdir() if file.is_file() and not file.name.startswith("."))
    files = [file for file in inside if KINDS.keys() & {suffix.lower() for suffix in file.suffixes}]
    if not files:
        raise InputError(
            f"the folder {str(path)!r} holds no supported file; file names must end in {', '.join(KINDS)}."
        )
    return files


def _text(file: Path, unit: str, sequences: str | None, lower: bool) -> Sequences:
    if unit not in _UNITS:
        raise unknown_name("unit of text", unit, _UNITS)
    chain = (sequences or ("lines" if unit == "words" else "chain")) == "chain"
    end = "\n" if chain and unit == "characters" else None
    # read_text raises the error for unknown values of sequences
    return read_text(file, unit, sequences or ("chain" if chain else "lines"), lower, end=end)  # type: ignore[arg-type]


def _field(columns: Columns | None) -> str:
    fields = ["form"] if columns is None else [columns] if isinstance(columns, (str, int)) else list(columns)
    if len(fields) != 1:
        raise InputError(f"a treebank needs exactly one observed field, but {len(fields)} columns were given.")
    return str(fields[0])


def _from_npz(file: Path, wanted: str | list[str] | None) -> Sequences:
    try:
        with np.load(file) as opened:
            check_unpacked(file, sum(member.file_size for member in opened.zip.infolist()))
            arrays: Mapping[str, NDArray[Any]] = {key: opened[key] for key in opened.files}
    except SubchainError:
        raise
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(
            f"{str(file)!r} cannot be read as NumPy arrays; it may be damaged or of another kind: {error}"
        ) from error
    observed = [key for key, found in arrays.items() if key != LENGTHS and _is_observable(found)]
    if wanted is None and len(observed) == 1:
        wanted = observed[0]
    if wanted is None or not wanted:
        shown = ", ".join(f"{key} {arrays[key].shape}" for key in observed)
        raise InputError(f"{str(file)!r} holds several arrays; choose with array=: {shown or 'none of numbers'}.")
    names = [wanted] if isinstance(wanted, str) else wanted
    for name in names:
        if name not in arrays:
            raise unknown_name(f"array of {file.name}", name, observed)
    if isinstance(wanted, str):
        values, lengths = arrays[wanted], arrays.get(LENGTHS)
        divides = lengths is not None and _divides(lengths, values)
        return as_sequences(values, lengths=lengths if divides else None, columns=_column_names(arrays, values))
    return _side_by_side(file, arrays, names)


def _side_by_side(file: Path, arrays: Mapping[str, NDArray[Any]], names: list[str]) -> Sequences:
    """Return several arrays as one named sequence each."""
    if len(set(names)) < len(names):
        raise InputError(f"array= names an array twice: {', '.join(names)}.")
    first = arrays[names[0]]
    for name in names:
        if arrays[name].shape[1:] != first.shape[1:]:
            raise InputError(
                f"arrays that are read together need the same columns, but in {file.name} {name!r} has the shape "
                f"{arrays[name].shape} and {names[0]!r} has {first.shape}."
            )
        if LENGTHS in arrays and _divides(arrays[LENGTHS], arrays[name]):
            raise InputError(
                f"{file.name} divides {name!r} into sequences by {LENGTHS!r}, but several arrays are read as one "
                "sequence each; read one array at a time."
            )
    return as_sequences({name: arrays[name] for name in names}, columns=_column_names(arrays, first))


def _divides(lengths: NDArray[Any], values: NDArray[Any]) -> bool:
    return lengths.dtype.kind in "iu" and values.ndim > 0 and int(lengths.sum()) == len(values)


def _is_observable(array: NDArray[Any]) -> bool:
    return array.ndim in (1, 2) and array.dtype.kind in "biuf"


def _column_names(arrays: Mapping[str, NDArray[Any]], values: NDArray[Any]) -> list[str] | None:
    """Return the names of the columns: the only array of strings with one entry per column; None if there is none."""
    if values.ndim != 2:
        return None
    names = [array for array in arrays.values() if array.dtype.kind == "U" and array.shape == values.shape[1:]]
    found = names[0].tolist() if len(names) == 1 else []
    return found if len(set(found)) == values.shape[1] else None


def _columns_of(data: Sequences, columns: Columns | None) -> Sequences:
    """Return the data with the chosen columns only; all if `columns` is None."""
    if columns is None:
        return data
    indices = data.column_indices(columns)
    table = data.values if data.values.ndim == 2 else data.values[:, None]
    values = table[:, indices[0]] if len(indices) == 1 else table[:, as_slice(indices)]
    names = None if data.columns is None else [data.columns[index] for index in indices]
    return Sequences(values, data.offsets, columns=names, names=data.names)


def _end_to_end(parts: list[Sequences], files: Sequence[Path]) -> Sequences:
    """Concatenate the sequences of several files, with one common vocabulary per column."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for part, file in zip(parts, files, strict=True):
        if part.n_features != first.n_features or part.columns != first.columns:
            raise InputError(
                f"{file.name} has other columns than {files[0].name}: {_shown(part)} instead of {_shown(first)}; "
                "choose common ones with columns=."
            )
        if [known is None for known in part.vocabularies] != [known is None for known in first.vocabularies]:
            raise InputError(f"{file.name} holds symbols where {files[0].name} holds numbers, or vice versa.")
    common = [_common_vocabulary(parts, column) for column in range(first.n_features)]
    coded = [part.recode(common) for part in parts]
    kind = joined(part.values.dtype for part in coded)
    values = np.concatenate([cast(part.values, kind, file.name) for part, file in zip(coded, files, strict=True)])
    starts = np.cumsum([0, *(part.n_observations for part in coded[:-1])])
    offsets = [part.offsets[:-1] + start for part, start in zip(coded, starts, strict=True)]
    return Sequences(
        values, np.concatenate([*offsets, [len(values)]]), columns=first.columns, names=_names(parts, files),
        vocabulary=common, grouped_by=first.grouped_by,
    )  # fmt: skip


def _names(parts: list[Sequences], files: Sequence[Path]) -> list[str | int] | None:
    """Return the names of the sequences of several files: the file name if each file has one sequence, else their own.

    If a name occurs in more than one file, all names are prefixed with the file name.
    """
    stems = [file.name.partition(".")[0] for file in files]
    if all(part.n_sequences == 1 for part in parts):
        return list(stems)
    if any(part.names is None for part in parts):
        return None
    own = [(stem, name) for stem, part in zip(stems, parts, strict=True) for name in part.names or ()]
    if len({name for _, name in own}) == len(own):
        return [name for _, name in own]
    return [f"{stem}.{name}" for stem, name in own]


def _common_vocabulary(parts: list[Sequences], column: int) -> Vocabulary | None:
    """Return the vocabulary of a column over all files, the most frequent symbol first; None for numbers."""
    known = [part.vocabularies[column] for part in parts]
    if known[0] is None:
        return None
    counts: dict[str, int] = {}
    for part, vocabulary in zip(parts, known, strict=True):
        assert vocabulary is not None
        codes = np.nan_to_num(part.select([column])[:, 0], nan=-1).astype(np.int64)
        for symbol, count in zip(vocabulary, np.bincount(codes + 1, minlength=len(vocabulary) + 1)[1:], strict=True):
            counts[symbol] = counts.get(symbol, 0) + int(count)
    return Vocabulary.from_counts(list(counts), np.array(list(counts.values())), unknown=known[0].unknown)


def _shown(data: Sequences) -> str:
    return f"{data.n_features} columns" if data.columns is None else ", ".join(map(repr, data.columns))
