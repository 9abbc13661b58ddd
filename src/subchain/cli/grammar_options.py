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
        help="CoNLL-U, lines of word, tag and head (separated by tabs), or text with a sentence on every line: of tags "
        "or, for pcfg, any tokens; for pcfg also bracketed trees over tokens. For latent annotations a bracketed "
        "treebank or, to parse and score, also the words of the other files.",
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
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Of dependencies: conllu, or heads, a line of heads for every sentence, from 1, 0 for the root. Of "
        "phrases: brackets, a tree a line. Of both: tree, drawn as text. By default conllu and brackets.",
    ),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", metavar="N", rich_help_panel=RUN, help="Number of threads; all by default.")
]

Output = Annotated[Path, typer.Option("-o", "--output", metavar="GRAMMAR", help="File of the fitted grammar.")]
Kind = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        rich_help_panel=MODEL,
        help="dmv, the dependency model with valence; pcfg, a context-free grammar, meant if there are --rules or "
        "--nonterminals; or latent, a grammar with latent annotations from a treebank.",
    ),
]
Rules = Annotated[
    Path | None,
    typer.Option(
        "--rules", metavar="FILE", rich_help_panel=MODEL, help="Context-free rules, such as S -> NP VP [0.9] | 'no'."
    ),
]
Nonterminals = Annotated[
    int | None,
    typer.Option(
        "--nonterminals", metavar="N", rich_help_panel=MODEL, help="Symbols of a fully connected context-free grammar."
    ),
]
Preterminals = Annotated[
    int | None,
    typer.Option(
        "--preterminals", metavar="N", rich_help_panel=MODEL, help="Symbols over words alone, with --nonterminals."
    ),
]
Unit = Annotated[
    str, typer.Option("--unit", metavar="NAME", rich_help_panel=MODEL, help="Tokens of pcfg: word or character.")
]
Inference = Annotated[
    str,
    typer.Option(
        "--inference",
        metavar="ALGORITHM",
        rich_help_panel=MODEL,
        help="em, vi, cvi, svi, scvi, gibbs or hastings; or a call such as 'CVI(max_iter=20)'.",
    ),
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        metavar="NAME",
        rich_help_panel=MODEL,
        help="Of dmv: harmonic, random or uniform. Of pcfg: given, random, flat or uniform.",
    ),
]
Hard = Annotated[
    bool, typer.Option("--hard", rich_help_panel=MODEL, help="Count the best trees instead of expectations (em).")
]
Concentration = Annotated[
    float | None,
    typer.Option(
        "--concentration",
        metavar="A",
        rich_help_panel=MODEL,
        help="Of the priors of all rules; 0.1, for latent annotations 0.01.",
    ),
]
Annotations = Annotated[
    int | None,
    typer.Option(
        "--annotations", metavar="N", rich_help_panel=MODEL, help="Annotated versions of each symbol (latent); 4."
    ),
]
Training = Annotated[
    str | None,
    typer.Option(
        "--training", metavar="NAME", rich_help_panel=MODEL, help="direct, which is usual, or split_merge (latent)."
    ),
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
        "--iterations",
        metavar="N",
        rich_help_panel=RUN,
        help="Iterations, passes or draws: 40 (latent: 50), for samplers 200.",
    ),
]
Restarts = Annotated[
    int,
    typer.Option(
        "--restarts", metavar="N", rich_help_panel=RUN, help="Starts, with --init random or flat, or --model latent."
    ),
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

    existing(path)
    text = as_dependencies(path, column, punctuation)
    return text.take(usable(path, text.lengths.tolist(), max_length))


def usable(path: Path, lengths: list[int], max_length: int | None) -> list[int]:
    """Return the numbers of the sentences to use: all, or those of 1 to `max_length` words.

    Raise an `InputError` if no word is left.
    """
    from subchain.errors import InputError

    if max_length is not None and max_length < 1:
        raise InputError(f"--max-length must be at least 1, not {max_length}.")
    found = [number for number, n in enumerate(lengths) if max_length is None or 1 <= n <= max_length]
    if not any(lengths[number] for number in found):
        raise InputError(f"{str(path)!r} has no sentence with words that could be used.")
    return found
