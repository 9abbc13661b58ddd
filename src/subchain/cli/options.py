"""Options and arguments that several commands share, and the examples that end every help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that `subchain fit` wrote.")]
DataPaths = Annotated[
    list[Path],
    typer.Argument(metavar="DATA", help="Text, .npy, .npz, .csv, .tsv, Parquet, CoNLL-U, or a folder of such."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random numbers.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Processor cores; all if not given.")]

READING = "How the data are read"
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="UNIT", help="Of text: words or characters.", rich_help_panel=READING),
]
SequenceRule = Annotated[
    str | None,
    typer.Option(
        "--sequences", metavar="RULE",
        help="Of text: every line is a sequence (lines), or the whole text is one (chain).", rich_help_panel=READING,
    ),
]  # fmt: skip
Lower = Annotated[
    bool | None, typer.Option("--lower", help="Of text: turn it into lower case.", rich_help_panel=READING)
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="A,B,...", help="The observed columns, by name or number.", rich_help_panel=READING
    ),
]
SequenceColumn = Annotated[
    str | None,
    typer.Option(
        "--sequence", metavar="COLUMN", help="Of tables: the column that names each row's sequence.",
        rich_help_panel=READING,
    ),
]  # fmt: skip
Array = Annotated[
    str | None,
    typer.Option(
        "--array", metavar="A,B,...", help="Of .npz files: the observed array, or several, a sequence each.",
        rich_help_panel=READING,
    ),
]  # fmt: skip


def examples(*commands: str) -> str:
    """The end of a help text: commands to copy."""
    lines = [f"  {command}" for command in commands]
    return "\n".join(["Examples:", *lines])
