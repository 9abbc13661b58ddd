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
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", rich_help_panel=RUN, help="Number of threads; all by default.")
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
