"""Options and arguments shared by several commands, and the examples in help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file by `subchain fit`.")]
DataPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA",
        help="Text, .npy, .npz, .csv, .tsv, Parquet, CoNLL-U, a folder of such files, or - for standard input.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, and nothing else.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but answers and errors.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print a line for every iteration to standard error.")]
Log = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="Add a line with the time for every iteration to this file."),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random numbers.")]

READING = "How the data are read"
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="UNIT", help="For text: words or characters.", rich_help_panel=READING),
]
SequenceRule = Annotated[
    str | None,
    typer.Option(
        "--sequences", metavar="RULE",
        help="For text: every line is a sequence (lines), or lines up to a blank line (paragraphs), or the whole text "
        "(chain). For arrays and tables: every row is a sequence (rows).", rich_help_panel=READING,
    ),
]  # fmt: skip
Lower = Annotated[
    bool | None, typer.Option("--lower", help="For text: convert to lower case.", rich_help_panel=READING)
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,...",
        help="The observed columns, by name or number; for .npz files also arrays of the same length.",
        rich_help_panel=READING,
    ),
]
SequenceColumn = Annotated[
    str | None,
    typer.Option(
        "--sequence", metavar="COLUMN", help="For tables: the column that names each row's sequence.",
        rich_help_panel=READING,
    ),
]  # fmt: skip
Array = Annotated[
    str | None,
    typer.Option(
        "--array", metavar="A,B,...", help="For .npz files: the observed array, or several, one sequence each.",
        rich_help_panel=READING,
    ),
]  # fmt: skip
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="KIND",
        help="For file names with other endings: text, csv, tsv, parquet, npy, npz, conllu.", rich_help_panel=READING,
    ),
]  # fmt: skip
Lengths = Annotated[
    str | None,
    typer.Option(
        "--lengths", metavar="ARRAY", help="For .npz files: the array with the lengths, or offsets, of the sequences.",
        rich_help_panel=READING,
    ),
]  # fmt: skip
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="For .csv and .tsv: the first line holds names of columns, or observations.",
        rich_help_panel=READING, show_default=False,
    ),
]  # fmt: skip
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator", metavar="CHARACTER", help="For .csv and .tsv: the character between fields, or tab, space.",
        rich_help_panel=READING,
    ),
]  # fmt: skip


def examples(*commands: str) -> str:
    """Return the epilogue of a help text with example commands."""
    lines = [f"  {command}" for command in commands]
    return "\n".join(["Examples:", *lines])
