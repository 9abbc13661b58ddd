"""Options of `subchain predict`: what is predicted, and how segments are written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BED = "Segments (.bed)"

PredictionsPath = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="OUT",
        help="Output file, .csv, .tsv, .npy, .txt, .parquet or .bed ('{sequence}.bed': one for each sequence); "
        "without it a table is printed to standard output.",
    ),
]
Decoding = Annotated[
    str,
    typer.Option(
        "--decoding",
        metavar="RULE",
        help="posterior (the most probable state of each position) or viterbi (the most probable path).",
    ),
]
Probabilities = Annotated[bool, typer.Option("--probabilities", help="Include state probabilities (.npy: only these).")]
Join = Annotated[
    bool,
    typer.Option("--join", help="Write all columns of the input beside the states (.csv, .tsv, .parquet)."),
]
Chrom = Annotated[
    str | None,
    typer.Option(
        "--chrom",
        metavar="A,B,...",
        help="Chromosome of each sequence; the sequences' names by default. A single chromosome needs a single "
        "sequence, or one file per sequence: -o '{sequence}.bed'.",
        rich_help_panel=BED,
    ),
]
BinSize = Annotated[
    int, typer.Option("--bin", metavar="BASES", help="Number of bases per position.", rich_help_panel=BED)
]
Offset = Annotated[
    int,
    typer.Option("--offset", metavar="BASES", help="First base of each sequence.", rich_help_panel=BED),
]
Colours = Annotated[
    bool,
    typer.Option(
        "--colours/--no-colours",
        help="Nine columns with a score (1000 times the mean probability) and a colour, or four: chromosome, "
        "start, end, state.",
        rich_help_panel=BED,
    ),
]
Track = Annotated[
    str | None,
    typer.Option(
        "--track",
        metavar="NAME",
        help="Write a track line for genome browsers, with this name.",
        rich_help_panel=BED,
    ),
]
