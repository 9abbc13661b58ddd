"""Options that the commands of `subchain grammar` share, and how they read sentences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from subchain.data import Dependencies

SENTENCES = "The sentences"
MODEL = "The grammar"
RUN = "The run"

Grammar = Annotated[Path, typer.Argument(metavar="GRAMMAR", help="A grammar file by `subchain grammar fit`.")]
Sentences = Annotated[
    Path,
    typer.Argument(
        metavar="SENTENCES",
        help="CoNLL-U, lines of word, tag and head (separated by tabs), or text with a sentence of tags on every line.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="NAME", rich_help_panel=SENTENCES, help="Tags of CoNLL-U: upos, which is usual, or xpos."
    ),
]
Punctuation = Annotated[
    bool,
    typer.Option("--punctuation/--no-punctuation", rich_help_panel=SENTENCES, help="Whether to keep punctuation."),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        "--max-length", metavar="N", rich_help_panel=SENTENCES, help="Leave longer sentences out, without punctuation."
    ),
]
Trees = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="OUT", help="Output file; standard output without it.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="conllu; heads, a line of heads for every sentence, from 1, 0 for the root; or tree, drawn as text.",
    ),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", rich_help_panel=RUN, help="Number of threads; all by default.")
]

Output = Annotated[Path, typer.Option("-o", "--output", metavar="GRAMMAR", help="File of the fitted grammar.")]
Kind = Annotated[
    str,
    typer.Option("--model", metavar="NAME", rich_help_panel=MODEL, help="dmv, the dependency model with valence."),
]
Inference = Annotated[
    str,
    typer.Option(
        "--inference",
        metavar="ALGORITHM",
        rich_help_panel=MODEL,
        help="em, vi, cvi, svi, scvi or gibbs, or a call such as 'CVI(max_iter=20)'.",
    ),
]
Init = Annotated[
    str, typer.Option("--init", metavar="NAME", rich_help_panel=MODEL, help="harmonic, random or uniform.")
]
Hard = Annotated[
    bool, typer.Option("--hard", rich_help_panel=MODEL, help="Count the best trees instead of expectations (em).")
]
Concentration = Annotated[
    float, typer.Option("--concentration", metavar="A", rich_help_panel=MODEL, help="Of the priors of all rules.")
]
StopConcentration = Annotated[
    float | None, typer.Option("--stop-concentration", metavar="A", rich_help_panel=MODEL, help="Of stopping.")
]
RootConcentration = Annotated[
    float | None, typer.Option("--root-concentration", metavar="A", rich_help_panel=MODEL, help="Of the root.")
]
Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations", metavar="N", rich_help_panel=RUN, help="Iterations, passes or draws: 40, for gibbs 200."
    ),
]
Restarts = Annotated[
    int, typer.Option("--restarts", metavar="N", rich_help_panel=RUN, help="Starts, with --init random.")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", rich_help_panel=RUN, help="Keep the state of the run in a file."),
]
Resume = Annotated[
    bool | None,
    typer.Option("--resume/--restart", rich_help_panel=RUN, help="Continue from the checkpoint, or begin again."),
]


def read_sentences(path: Path, column: str | None, punctuation: bool, max_length: int | None) -> Dependencies:
    """Return the sentences of a file; raise an `InputError` if none is left."""
    from subchain.cli.inputs import existing
    from subchain.data.dependencies import as_dependencies
    from subchain.errors import InputError

    existing(path)
    if max_length is not None and max_length < 1:
        raise InputError(f"--max-length must be at least 1, not {max_length}.")
    text = as_dependencies(path, column, punctuation)
    if max_length is not None:
        text = text.of_length(1, max_length)
    if not sum(map(len, text.tags)):
        raise InputError(f"{str(path)!r} has no sentence with words that could be used.")
    return text
