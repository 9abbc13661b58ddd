"""Readers of parallel text: two text files, one of `source ||| target` lines, two Parquet columns, packed files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any, cast

from subchain.data.arrow import first_null, is_list, is_text, require_pyarrow
from subchain.data.coding import CodedLines
from subchain.data.columns import resolve_columns
from subchain.data.lines import TextSource, existing_file, name_of_source, numbered_lines
from subchain.data.packed_parallel import SUFFIX, checked_name, open_packed, pack_pairs
from subchain.data.parallel_text import ParallelText, Sentence, unequal_sides
from subchain.data.tables import blaming_file
from subchain.data.word_coding import code_file
from subchain.errors import FileFormatError, InputError, unknown_name

#: The token between the two sentences of a line.
SEPARATOR = "|||"
_FORMATS = ("lines", "delimited", "parquet", "packed")
#: Rows of a Parquet file that are read at a time.
ROWS = 1 << 16


def read_parallel(
    source: TextSource,
    target: TextSource | None = None,
    format: str | None = None,
    lowercase: bool = False,
    columns: tuple[str | int, str | int] | None = None,
    like: ParallelText | None = None,
) -> ParallelText:
    """Read sentence pairs from two files, or from one.

    Tokens are separated by white space. Empty lines are kept, as sentences without tokens.

    Parameters
    ----------
    source : path or open file
        UTF-8 text; files that end in .gz, .xz or .bz2 are decompressed.
    target : path or open file, optional
        The text whose line *n* translates line *n* of ``source``.
    format : {"lines", "delimited", "parquet", "packed"}, optional
        "lines": two files with one sentence per line. "delimited": one file with lines `source ||| target`. "parquet":
        one Parquet file with two columns of strings or of lists of tokens. "packed": a file by :func:`pack_parallel`,
        which is not read but mapped into memory. By default "lines" if there is a target, "parquet" for names that end
        in .parquet or .pq, "packed" for those that end in .pairs, else "delimited".
    lowercase : bool
        Convert everything to lower case.
    columns : two names or numbers, optional
        The columns of a Parquet file that hold source and target; by default it has two columns.
    like : ParallelText, optional
        Text whose words keep their codes, see :meth:`ParallelText.from_sentences`.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_parallel
    >>> text = read_parallel(io.StringIO("the house ||| das Haus\\nthe ||| \\n"))
    >>> text[0], text[1]
    ((['the', 'house'], ['das', 'Haus']), (['the'], []))
    """
    format = _checked_format(source, target, format, columns)
    if format == "packed":
        if lowercase:
            raise InputError("the words of a packed text are coded already; choose lowercase= when it is packed.")
        found = open_packed(cast("str | PathLike[str]", source))
        return found if like is None else found.recoded(like)
    if target is not None and (quick := _quickly(source, target)) is not None:
        text = quick.lowered() if lowercase else quick
        return text if like is None else text.recoded(like)
    sides = CodedLines(() if like is None else like.source_words), CodedLines(() if like is None else like.target_words)
    for pair in _pairs(source, target, format, lowercase, columns):
        for coded, tokens in zip(sides, pair, strict=True):
            coded.append(tokens)
    return ParallelText.from_coded(*sides)


def _quickly(source: TextSource, target: TextSource) -> ParallelText | None:
    """Return the text of two files, read by compiled code; None if they are not paths, or something is wrong with them.

    What is wrong is said by slower code.
    """
    if not isinstance(source, (str, PathLike)) or not isinstance(target, (str, PathLike)):
        return None
    try:
        one, other = code_file(source), code_file(target)
    except InputError:
        raise
    except Exception:
        return None
    if len(one.offsets) != len(other.offsets):
        return None
    return ParallelText(one.codes, one.offsets, other.codes, other.offsets, one.words, other.words)


def pack_parallel(
    path: str | PathLike[str],
    source: TextSource,
    target: TextSource | None = None,
    format: str | None = None,
    lowercase: bool = False,
    columns: tuple[str | int, str | int] | None = None,
) -> ParallelText:
    r"""Write sentence pairs to a packed file, for texts larger than memory, and return the text that is mapped from it.

    Packed files are read by :func:`read_parallel`, and by everything that takes parallel text.

    Parameters
    ----------
    path : path
        The packed file; its name ends in .pairs.
    source, target, format, lowercase, columns : as in :func:`read_parallel`

    Examples
    --------
    >>> import io, tempfile
    >>> from subchain.data import pack_parallel, read_parallel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = pack_parallel(f"{folder}/text.pairs", io.StringIO("the house ||| das Haus\n"))
    ...     print(text, read_parallel(f"{folder}/text.pairs")[0])
    ParallelText(1 sentence pairs, 2 and 2 tokens, 2 and 2 words) (['the', 'house'], ['das', 'Haus'])
    """
    format = _checked_format(source, target, format, columns)
    if format == "packed":
        raise InputError("the text is packed already.")
    return pack_pairs(checked_name(path), _pairs(source, target, format, lowercase, columns))


def _checked_format(
    source: TextSource, target: TextSource | None, format: str | None, columns: tuple[str | int, str | int] | None
) -> str:
    """Return the format of a text, and raise an `InputError` if it does not fit what is given besides."""
    format = _format(source, target) if format is None else format
    if format not in _FORMATS:
        raise unknown_name("format of parallel text", format, _FORMATS)
    if (format == "lines") != (target is not None):
        raise InputError(f"format {format!r} is read from {'two files' if format == 'lines' else 'one file'}.")
    if columns is not None and format != "parquet":
        raise InputError(f"columns= is for Parquet files, not for the format {format!r}.")
    if format == "packed" and not isinstance(source, (str, PathLike)):
        raise InputError("packed text is read from a path.")
    return format


def _pairs(
    source: TextSource,
    target: TextSource | None,
    format: str,
    lowercase: bool,
    columns: tuple[str | int, str | int] | None,
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the tokens of the sentence pairs of a text of one of the formats that are not packed."""
    if target is not None:
        pairs = _in_step(source, target)
    else:
        pairs = _delimited(source) if format == "delimited" else _parquet(source, columns)
    if not lowercase:
        yield from pairs
        return
    for first, second in pairs:
        yield [token.lower() for token in first], [token.lower() for token in second]


def _in_step(source: TextSource, target: TextSource) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the tokens of the lines of two files, which must have the same number of lines."""
    counts = [0, 0]
    for one, other in zip_longest(numbered_lines(source), numbered_lines(target)):
        counts = [last if pair is None else pair[0] for last, pair in zip(counts, (one, other), strict=True)]
        if one is not None and other is not None:
            yield one[1].split(), other[1].split()
    if counts[0] != counts[1]:
        raise unequal_sides("lines", name_of_source(source), counts[0], name_of_source(target), counts[1])


def as_parallel_text(
    source: ParallelText | TextSource | Iterable[Sentence],
    target: TextSource | Iterable[Sentence] | None = None,
    like: ParallelText | None = None,
) -> ParallelText:
    """Return parallel text of any kind as a `ParallelText`: one as it is, files, or lists of sentences.

    Strings and paths name files, see :func:`read_parallel`. With ``like`` the words of that text keep their codes.

    Examples
    --------
    >>> from subchain.data import as_parallel_text
    >>> as_parallel_text([["a", "b"]], ["x y"])
    ParallelText(1 sentence pairs, 2 and 2 tokens, 2 and 2 words)
    """
    if isinstance(source, ParallelText):
        if target is not None:
            raise InputError("a ParallelText holds both sides; give no target with it.")
        return source if like is None else source.recoded(like)
    if _is_file(source) and (target is None or _is_file(target)):
        return read_parallel(cast(TextSource, source), cast("TextSource | None", target), like=like)
    if target is None:
        raise InputError("there is no target; give the sentences of both languages.")
    if _is_file(source) or _is_file(target):
        raise InputError("source and target must both be files, or both be lists of sentences.")
    return ParallelText.from_sentences(cast(Iterable[Sentence], source), cast(Iterable[Sentence], target), like=like)


def _is_file(given: object) -> bool:
    return isinstance(given, (str, PathLike)) or hasattr(given, "read")


def _format(source: TextSource, target: TextSource | None) -> str:
    if target is not None:
        return "lines"
    suffix = Path(source).suffix.lower() if isinstance(source, (str, PathLike)) else ""
    return "packed" if suffix == SUFFIX else "parquet" if suffix in (".parquet", ".pq") else "delimited"


def _delimited(source: TextSource) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the sentence pairs of lines with a separator; an empty line is a pair of empty sentences."""
    for number, line in numbered_lines(source):
        tokens = line.split()
        if tokens.count(SEPARATOR) != 1:
            if not tokens:
                yield [], []
                continue
            raise FileFormatError(
                f"line {number} of {name_of_source(source)} has {tokens.count(SEPARATOR)} separators "
                f"{SEPARATOR!r}, but needs one, as in 'the house {SEPARATOR} das Haus'; if the text is in two files, "
                "give both."
            )
        middle = tokens.index(SEPARATOR)
        yield tokens[:middle], tokens[middle + 1 :]


def _parquet(source: TextSource, columns: tuple[str | int, str | int] | None) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the sentence pairs of two columns."""
    if not isinstance(source, (str, PathLike)):
        raise InputError("Parquet files are read from a path.")
    require_pyarrow()
    from pyarrow import parquet

    found = existing_file(source)
    with blaming_file(source, "Parquet"):
        file = parquet.ParquetFile(found)
        names = list(file.schema_arrow.names)
    if columns is None and len(names) != 2:
        raise InputError(
            f"{str(source)!r} has {len(names)} columns, {', '.join(map(repr, names[:8]))}; choose those of source and "
            "target with columns=."
        )
    chosen = [names[i] for i in resolve_columns(list(columns or names), names, len(names))]
    if len(set(chosen)) != 2:
        raise InputError(f"columns= must name two different columns, not {chosen}.")
    row = 0
    with blaming_file(source, "Parquet"):
        for batch in file.iter_batches(batch_size=ROWS, columns=chosen):
            sides = [_sentences(batch.column(name), name, row) for name in chosen]
            yield from zip(*sides, strict=True)
            row += batch.num_rows


def _sentences(column: Any, name: str, first_row: int) -> list[list[str]]:
    """Return the tokens of each cell of an Arrow column of strings, or of lists of strings."""
    from pyarrow import types

    kind = column.type
    tokens = kind.value_type if is_list(kind) else kind
    if types.is_dictionary(tokens):
        tokens = tokens.value_type
    if not is_text(tokens):
        raise InputError(f"column {name!r} is of type {kind}; sentences are strings, or lists of strings.")
    if column.null_count:
        raise InputError(
            f"row {first_row + first_null(column)} of column {name!r} is null; give an empty string for an empty "
            "sentence."
        )
    cells: list[Any] = column.to_pylist()
    if is_list(kind) and any(None in cell for cell in cells):
        raise InputError(f"column {name!r} has a null among the tokens of a sentence; drop it or give a string.")
    return cells if is_list(kind) else [cell.split() for cell in cells]
