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

TableTarget = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="OUT", help="Output file, .csv or .tsv; standard output without it."),
]


def examples(*commands: str) -> str:
    """Return the epilogue of a help text with example commands."""
    lines = [f"  {command}" for command in commands]
    return "\n".join(["Examples:", *lines])
