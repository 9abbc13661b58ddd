"""`subchain grammar report`: a page with the trees of sentences, and the rules of a fitted grammar."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output


def grammar_report(
    grammar: grammar_options.Grammar,
    sentences: grammar_options.Sentences,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="The page.")] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option("--title", help="The title of the page; by default the name of the sentences' file.")
    ] = None,
    column: grammar_options.Column = None,
    punctuation: grammar_options.Punctuation = True,
    max_length: grammar_options.MaxLength = None,
    jobs: grammar_options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a page on a grammar: trees of sentences, beside gold trees if there are any, rules, and the run."""
    with command_output(as_json, quiet) as out:
        import subchain
        from subchain.cli.grammar_kinds import kind_of_file
        from subchain.cli.inputs import existing
        from subchain.cli.targets import check_target

        existing(grammar)
        check_target(output, grammar, sentences)
        kind = kind_of_file(grammar, jobs)
        text = kind.read(sentences, column, punctuation, max_length)
        subchain.report(kind.model, text, output, title=title or sentences.name)
        out.add(report=str(output), n_sentences=len(text))
        out.line(f"report written to {output}")
