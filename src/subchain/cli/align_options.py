"""Options of `subchain align`: the text, the model, and the run that fits it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MODEL = "The model"
RUN = "The run"
PAGE = "The page"

Source = Annotated[
    Path,
    typer.Argument(metavar="SOURCE", help="Text with one tokenised sentence per line; or both sides, see TARGET."),
]
Target = Annotated[
    Path | None,
    typer.Argument(
        metavar="[TARGET]",
        help="Its translation, line by line. Without it SOURCE has lines `source ||| target`, or is a Parquet file "
        "with two columns.",
        show_default=False,
    ),
]
LinksTarget = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="LINKS", help="Output file; standard output without it.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="pharaoh or moses: both write i-j, source and target position, counted from 0. pharaoh sorts the "
        "links of a line by source position, moses by target position.",
    ),
]
Symmetrize = Annotated[
    str | None,
    typer.Option(
        "--symmetrize",
        metavar="METHOD",
        help="How the two directions are combined: grow-product (posteriors whose geometric mean is over --threshold, "
        "and further ones for words without a link), product, grow-diag-final-and, grow-diag-final, grow-diag, "
        "intersection or union.",
    ),
]
Threshold = Annotated[
    float | None, typer.Option("--threshold", metavar="P", help="Smallest posterior of a link, for the products.")
]
Lowercase = Annotated[bool, typer.Option("--lowercase", help="Convert both sides to lower case.")]
Prefix = Annotated[
    int | None,
    typer.Option("--prefix", metavar="N", rich_help_panel=MODEL, help="Cut words to their first N letters."),
]
Rare = Annotated[
    int | None,
    typer.Option(
        "--rare", metavar="N", rich_help_panel=MODEL, help="With --prefix: cut words that occur at most N times only."
    ),
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="The columns of a Parquet file: source, target.")
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        rich_help_panel=MODEL,
        help="ibm1, diagonal (model 2 of fast_align), or hmm, which starts from IBM model 1.",
    ),
]
Inference = Annotated[
    str | None,
    typer.Option(
        "--inference",
        metavar="ALGORITHM",
        rich_help_panel=MODEL,
        help="cvi, em, vi, scvi or gibbs, or a call such as 'CVI(max_iter=5)'.",
    ),
]
Iterations = Annotated[
    int | None,
    typer.Option("--iterations", metavar="N", rich_help_panel=MODEL, help="Iterations of each model."),
]
Agreement = Annotated[
    bool,
    typer.Option(
        "--agreement/--no-agreement", rich_help_panel=MODEL, help="Whether the two directions are fitted together."
    ),
]
Priors = Annotated[
    Path | None,
    typer.Option(
        "--priors", metavar="ALIGNER", rich_help_panel=MODEL, help="Start from the counts of a fitted aligner."
    ),
]
Fitted = Annotated[
    Path | None,
    typer.Option(
        "--fitted", metavar="ALIGNER", rich_help_panel=MODEL, help="Align with a fitted aligner; fit nothing."
    ),
]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="ALIGNER", rich_help_panel=RUN, help="Write the fitted aligner to this file."),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="PAGE",
        rich_help_panel=PAGE,
        help="Write a page: alignment matrices, the lexicon, words without a link.",
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        "--gold", metavar="GOLD", rich_help_panel=PAGE, help="Gold links of the first pairs, for the page: i-j, i?j."
    ),
]
Swap = Annotated[bool, typer.Option("--swap", rich_help_panel=PAGE, help="GOLD has the target position first.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", rich_help_panel=RUN, help="Number of threads; all by default.")
]
