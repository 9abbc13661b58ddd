"""`subchain grammar sample`: sentences with their trees that a fitted grammar generates."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output, number_of


def grammar_sample(
    grammar: grammar_options.Grammar,
    number: Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of sentences.")] = 1,
    output: grammar_options.Trees = None,
    format: grammar_options.Format = None,
    max_length: Annotated[
        int, typer.Option("--max-length", metavar="N", help="Words of the longest sentence; longer are drawn again.")
    ] = 40,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Generate sentences with their trees; tags stand for words in dependency grammars."""
    with command_output(as_json, quiet) as out:
        from subchain.cli.grammar_kinds import check_format, kind_of_file
        from subchain.cli.inputs import existing
        from subchain.cli.targets import check_target
        from subchain.core.files import writing

        existing(grammar)
        if output is not None:
            check_target(output, grammar)
        kind = kind_of_file(grammar)
        format = check_format(kind, format)
        drawn = kind.sampled(number, max_length, seed)
        out.add(output=None if output is None else str(output), n_sentences=len(drawn))
        if output is not None:
            written = kind.written(drawn, format)
            with writing(output) as file:
                file.write(written)
            out.line(f"{number_of(len(drawn), 'sentence')} written to {output}")
        elif as_json:
            out.add(**kind.plain(drawn))
        else:
            sys.stdout.write(kind.written(drawn, format))
