"""`subchain grammar parse`: the trees of sentences under a fitted grammar."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output, number_of

if TYPE_CHECKING:
    from subchain.data import Dependencies

FORMATS = ("conllu", "heads", "tree")


def grammar_parse(
    grammar: grammar_options.Grammar,
    sentences: grammar_options.Sentences,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="Output file; standard output without it.")
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="conllu; heads, a line of heads for every sentence, from 1, 0 for the root; or tree, drawn as text.",
        ),
    ] = "conllu",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="viterbi, the most probable tree, or mbr, that with the largest expected number of right heads.",
        ),
    ] = "viterbi",
    column: grammar_options.Column = None,
    punctuation: grammar_options.Punctuation = True,
    max_length: grammar_options.MaxLength = None,
    jobs: grammar_options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Parse sentences: find the head of every word."""
    with command_output(as_json, quiet) as out:
        from subchain.cli.inputs import existing
        from subchain.cli.targets import check_target
        from subchain.data import Dependencies
        from subchain.errors import unknown_name
        from subchain.grammar import DMV

        if format not in FORMATS:
            raise unknown_name("value of --format:", format, FORMATS)
        existing(grammar)
        if output is not None:
            check_target(output, sentences, grammar)
        model = DMV.load(grammar).set_params(n_jobs=jobs)
        text = grammar_options.read_sentences(sentences, column, punctuation, max_length)
        began = time.perf_counter()
        parsed = Dependencies(text.words, text.tags, model.parse(text, method))
        seconds = time.perf_counter() - began
        out.add(output=None if output is None else str(output), n_sentences=len(text), seconds=seconds)
        if output is not None:
            _save(parsed, output, format)
            out.line(f"{number_of(len(text), 'sentence')} ({seconds:.1f} s, {len(text) / seconds:,.0f} per second)")
            out.line(f"trees written to {output}")
        elif as_json:
            out.add(heads=parsed.heads)
        else:
            sys.stdout.write(_written(parsed, format))


def _written(parsed: Dependencies, format: str) -> str:
    """Return trees as text."""
    from subchain.data.dependency_writing import drawn_tree, write_sentences

    if format == "tree":
        trees = zip(parsed.words, parsed.heads or [], strict=True)
        return "\n\n".join(drawn_tree(words, heads.tolist()) for words, heads in trees) + "\n"
    parts: list[str] = []
    write_sentences(parsed, parts.append, format)
    return "".join(parts)


def _save(parsed: Dependencies, output: Path, format: str) -> None:
    from subchain.core.files import writing

    text = _written(parsed, format)
    with writing(output) as file:
        file.write(text)
