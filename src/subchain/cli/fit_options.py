"""Options of `subchain fit`: the model, and the run that fits it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli.settings_file import read_settings

MODEL = "The model"
RUN = "The run"

ModelTarget = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="MODEL", help="The model file; DATA.safetensors by default."),
]
Emission = Annotated[
    str | None,
    typer.Option(
        "--emission",
        metavar="FAMILY",
        rich_help_panel=MODEL,
        help="categorical, gaussian, diagonal_gaussian, poisson, bernoulli, block-sparse, or a call such as "
        "'Categorical(0.1)' or 'Product(a=Poisson(columns='n'), ...)'; chosen by the columns of the data if not given "
        "(auto).",
    ),
]
Groups = Annotated[
    Path | None,
    typer.Option(
        "--groups",
        metavar="FILE",
        rich_help_panel=MODEL,
        help="A word and its group in each line, for --emission block-sparse.",
    ),
]
States = Annotated[int | None, typer.Option("--states", metavar="K", help="Number of states.", rich_help_panel=MODEL)]
Infinite = Annotated[
    bool,
    typer.Option("--infinite", help="Learn the number of states; the default without --states.", rich_help_panel=MODEL),
]
MaxStates = Annotated[
    int | None,
    typer.Option("--max-states", metavar="K", help="Maximum number; 30 by default.", rich_help_panel=MODEL),
]
Transition = Annotated[
    str | None,
    typer.Option(
        "--transition",
        metavar="PRIOR",
        rich_help_panel=MODEL,
        help="dirichlet, hdp, low-rank, or a call such as 'HDP(stickiness=10)' or 'LowRank(features=64)'.",
    ),
]
Inference = Annotated[
    str | None,
    typer.Option(
        "--inference",
        metavar="ALGORITHM",
        rich_help_panel=RUN,
        help="vi, em, cvi, svi, scvi, gibbs, beam, or a call such as 'CVI(max_iter=50)'; by default cvi for "
        "symbols and vi for numbers, scvi and svi for more than a million symbols or three million numbers.",
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option("--max-iter", metavar="N", help="Maximum number of iterations.", rich_help_panel=RUN),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        metavar="X",
        help="Relative change of the objective below which a run has converged; 1e-6 by default.",
        rich_help_panel=RUN,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="Maximum time of this call, all restarts together; other limits hold too.",
        rich_help_panel=RUN,
    ),
]
Restarts = Annotated[
    int, typer.Option("--restarts", metavar="N", help="Number of runs from different starts.", rich_help_panel=RUN)
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init", metavar="START",
        help="Where runs begin: auto, kmeans, context, random, exponential, stochastic, parts.", rich_help_panel=RUN,
    ),
]  # fmt: skip
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random numbers.", rich_help_panel=RUN)]
Holdout = Annotated[
    float | None,
    typer.Option(
        "--holdout", metavar="FRACTION", help="Fraction of positions to hold out and score.", rich_help_panel=RUN
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", help="File for the state of the run.", rich_help_panel=RUN),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the checkpoint.", rich_help_panel=RUN)]
Restart = Annotated[
    bool, typer.Option("--restart", help="Begin again, and overwrite the checkpoint.", rich_help_panel=RUN)
]
Settings = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="TOML",
        callback=read_settings,
        is_eager=True,
        help="Take options that are not given from this file.",
    ),
]
SaveSettings = Annotated[
    Path | None,
    typer.Option("--save-settings", metavar="TOML", help="Write the options that were given to this file."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Number of processor cores; all by default.", rich_help_panel=RUN)
]
