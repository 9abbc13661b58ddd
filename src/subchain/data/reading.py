"""Reader of files and folders of any supported kind, which is recognised by the file's suffix.

The files of a folder share one vocabulary, and their sequences are concatenated in the order of the file names.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from subchain.data.columns import Columns, as_slice
from subchain.data.conllu import read_conllu
from subchain.data.convert import as_sequences, mapped_array
from subchain.data.delimited import read_csv
from subchain.data.dtypes import cast, joined
from subchain.data.lines import existing_file
from subchain.data.npz import read_npz
from subchain.data.sequences import Sequences
from subchain.data.standard_input import STANDARD_INPUT, kept_input
from subchain.data.tables import read_parquet
from subchain.data.text import has_one_word_a_line, read_text
from subchain.data.unpacking import COMPRESSED
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError, unknown_name

PathName = str | PathLike[str]

#: Kinds of files by suffix, which may be followed by one of `COMPRESSED`.
KINDS = {
    ".txt": "text",
    ".npy": "array",
    ".npz": "arrays",
    ".csv": "table",
    ".tsv": "table",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".conllu": "treebank",
}
#: Suffixes by the names that `format` takes.
FORMATS = {suffix[1:]: suffix for suffix in KINDS} | {"text": ".txt"}
_UNITS = ("words", "characters")
_TABULAR = ("table", "parquet", "array", "arrays")
#: Kinds of files that an option is for; `sequences` is checked by its values.
_FITS = {
    "unit": ("text",),
    "lower": ("text", "treebank"),
    "columns": (*_TABULAR, "treebank"),
    "sequence": ("table", "parquet"),
    "array": ("arrays",),
    "lengths": ("arrays",),
    "header": ("table",),
    "separator": ("table",),
}
_SEQUENCES = {"lines": ("text",), "chain": ("text",), "paragraphs": ("text",), "rows": _TABULAR}
_SHOWN = {
    "text": "text (.txt)", "array": ".npy files", "arrays": ".npz files", "table": "text tables (.csv, .tsv)",
    "parquet": "Parquet files", "treebank": "treebanks (.conllu)",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """Options of `read`; None if not given."""

    unit: str | None = None
    sequences: str | None = None
    lower: bool | None = None
    columns: Columns | None = None
    sequence: str | int | None = None
    array: str | list[str] | None = None
    lengths: str | None = None
    header: bool | None = None
    separator: str | None = None

    def check(self, kind: str, file: Path) -> None:
        """Raise an `InputError` for options that are not for files of this kind."""
        if self.unit is not None and self.unit not in _UNITS:
            raise unknown_name("unit of text", self.unit, _UNITS)
        if self.sequences is not None and self.sequences not in _SEQUENCES:
            raise unknown_name("value of sequences", self.sequences, _SEQUENCES)
        for name, kinds in _FITS.items():
            if getattr(self, name) is not None and kind not in kinds:
                raise _misfit(f"{name}=", kinds, kind, file)
        if self.sequences is not None and kind not in _SEQUENCES[self.sequences]:
            raise _misfit(f"sequences={self.sequences!r}", _SEQUENCES[self.sequences], kind, file)


def _misfit(option: str, kinds: Iterable[str], kind: str, file: Path) -> InputError:
    shown = ", ".join(_SHOWN[kind] for kind in kinds)
    return InputError(f"{option} is for {shown}, but {file.name!r} is read as {_SHOWN[kind]}; leave it out.")


def read(
    paths: PathName | Iterable[PathName],
    *,
    format: str | None = None,
    unit: str | None = None,
    sequences: str | None = None,
    lower: bool | None = None,
    columns: Columns | None = None,
    sequence: str | int | None = None,
    array: str | Iterable[str] | None = None,
    lengths: str | None = None,
    header: bool | None = None,
    separator: str | None = None,
) -> Sequences:
    """Read one or several files, or folders of files, whose kind is recognised by their suffix.

    Use it if the kind of file is not known in advance; :func:`read_text`, :func:`read_csv` and the other readers have
    more settings. Options that are not for the kind of file are errors.

    Parameters
    ----------
    paths : path, or several
        Text (.txt), arrays (.npy, .npz), tables (.csv, .tsv, .parquet), treebanks (.conllu), or folders of files of one
        kind; all of these may be compressed (.gz, .xz, .bz2). "-" is standard input, whose kind is recognised by its
        first bytes.
    format : {"text", "csv", "tsv", "parquet", "npy", "npz", "conllu"}, optional
        The kind, for files with other suffixes.
    unit : {"words", "characters"}, optional
        For text: the unit of one observation, "words" by default.
    sequences : {"lines", "chain", "paragraphs", "rows"}, optional
        For text: "lines" makes every line a sequence, "chain" the whole text, and "paragraphs" the lines up to a blank
        line. The default is "chain" for characters, which then include the line ends, and "lines" for words;
        "paragraphs" if no line has more than one word, such as a log with one event a line. For arrays and tables:
        "rows" makes every row a sequence, such as rows of codewords.
    lower : bool, optional
        For text and treebanks: convert everything to lower case.
    columns : str, int or list of them, optional
        For tables and arrays: the observed columns. For .npz files also names of arrays of equal length. For treebanks:
        the observed field, "form" by default.
    sequence : str or int, optional
        For tables: the column with the name of the sequence that a row belongs to.
    array : str or list of str, optional
        For .npz files with several arrays: the observed one; not needed if all have the same columns. If the file has
        an array of strings with one entry per column, these name the columns. Several observed arrays become one named
        sequence each.
    lengths : str, optional
        For .npz files: the array with the lengths of the sequences, or with their offsets; "lengths" or
        "<array>_lengths" by default, if the file has it.
    header : bool, optional
        For .csv and .tsv files: whether the first line holds the names of the columns. By default this is recognised.
    separator : str, optional
        For .csv and .tsv files: the character between fields. By default it is recognised.

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
    options = ReadOptions(
        unit, sequences, lower or None, columns, sequence,
        array if array is None or isinstance(array, str) else list(array), lengths, header, separator,
    )  # fmt: skip
    if format is not None and format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    suffix = None if format is None else FORMATS[format]
    given = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    if [str(path) for path in given] == [STANDARD_INPUT]:
        with kept_input(suffix) as file:
            return _read_files([file], suffix, options)
    return _read_files([file for path in given for file in _files(path, suffix)], suffix, options)


def _read_files(files: list[Path], suffix: str | None, options: ReadOptions) -> Sequences:
    if not files:
        raise InputError("no file was given; give at least one.")
    suffixes = [_suffix_of(file) if suffix is None else suffix for file in files]
    kinds = {KINDS[found]: file for found, file in zip(suffixes, files, strict=True)}
    if len(kinds) > 1:
        found = ", ".join(f"{kind} ({file.name})" for kind, file in kinds.items())
        raise InputError(f"the files are of several kinds: {found}; read one kind at a time.")
    for kind, file in kinds.items():
        options.check(kind, file)
        if kind == "text":
            options = _with_rule(options, files)
    parts = [_READERS[KINDS[found]](file, found, options) for file, found in zip(files, suffixes, strict=True)]
    if options.sequences == "rows":
        parts = [_in_rows(part, file) for part, file in zip(parts, files, strict=True)]
    return _end_to_end(parts, files)


def kind_of(path: PathName) -> str:
    """Return the kind of a file by its suffix; raise an `InputError` for unsupported suffixes."""
    return KINDS[_suffix_of(path)]


def _suffix_of(path: PathName) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    last = next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")
    if last not in KINDS:
        raise InputError(
            f"{str(path)!r} is of an unsupported kind; file names must end in {', '.join(KINDS)}, or the kind must be "
            "given with format=."
        )
    return last


def _files(path: PathName, suffix: str | None) -> list[Path]:
    """Return the file itself, or all supported files of a folder; with a given suffix all files."""
    found = Path(path).expanduser()
    if not found.is_dir():
        return [existing_file(path)]
    inside = sorted(file for file in found.iterdir() if file.is_file() and not file.name.startswith("."))
    files = [file for file in inside if suffix or KINDS.keys() & {suffix.lower() for suffix in file.suffixes}]
    if not files:
        raise InputError(
            f"the folder {str(path)!r} holds no supported file; file names must end in {', '.join(KINDS)}, or the kind "
            "must be given with format=."
        )
    return files


def _with_rule(options: ReadOptions, files: list[Path]) -> ReadOptions:
    """Return the options with a rule for the sequences of text, the same for all files."""
    rule = options.sequences
    if rule is None and options.unit == "characters":
        rule = "chain"
    elif rule is None and all(map(has_one_word_a_line, files)):
        rule = "paragraphs"
        warnings.warn(
            "no line has more than one word, so that a line is an observation and a blank line ends a sequence; "
            "sequences='lines' makes every line a sequence.",
            stacklevel=4,
        )
    return dataclasses.replace(options, sequences=rule or "lines")


def _read_text(file: Path, suffix: str, options: ReadOptions) -> Sequences:
    unit, rule = options.unit or "words", options.sequences
    end = "\n" if rule == "chain" and unit == "characters" else None
    return read_text(file, unit, rule, bool(options.lower), end=end)  # type: ignore[arg-type]


def _read_array(file: Path, suffix: str, options: ReadOptions) -> Sequences:
    return _columns_of(as_sequences(mapped_array(file)), options.columns)


def _read_arrays(file: Path, suffix: str, options: ReadOptions) -> Sequences:
    wanted = list(options.array) if isinstance(options.array, list) else options.array
    return _columns_of(*read_npz(file, wanted, options.columns, options.lengths))


def _read_table(file: Path, suffix: str, options: ReadOptions) -> Sequences:
    separator = options.separator or ("\t" if suffix == ".tsv" else None)
    return read_csv(file, options.columns, options.sequence, header=options.header, separator=separator)


def _read_parquet(file: Path, suffix: str, options: ReadOptions) -> Sequences:
    return read_parquet(file, options.columns, options.sequence)


def _read_treebank(file: Path, suffix: str, options: ReadOptions) -> Sequences:
    return read_conllu(file, column=_field(options.columns), tags=None, lower=bool(options.lower)).words


_READERS: dict[str, Callable[[Path, str, ReadOptions], Sequences]] = {
    "text": _read_text,
    "array": _read_array,
    "arrays": _read_arrays,
    "table": _read_table,
    "parquet": _read_parquet,
    "treebank": _read_treebank,
}


def _in_rows(data: Sequences, file: Path) -> Sequences:
    """Return every row of a table of one kind as a sequence of single observations."""
    if data.n_sequences != 1 or any(known is not None for known in data.vocabularies):
        raise InputError(f"sequences='rows' needs one table of numbers, but {file.name!r} holds {data!r}.")
    table = data.select(None)
    return Sequences(table.reshape(-1), np.arange(len(table) + 1) * table.shape[1])


def _field(columns: Columns | None) -> str:
    fields = ["form"] if columns is None else [columns] if isinstance(columns, (str, int)) else list(columns)
    if len(fields) != 1:
        raise InputError(f"a treebank needs exactly one observed field, but {len(fields)} columns were given.")
    return str(fields[0])


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
