"""`subchain grammar parse`: the trees of sentences under a fitted grammar."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output, number_of


def grammar_parse(
    grammar: grammar_options.Grammar,
    sentences: grammar_options.Sentences,
    output: grammar_options.Trees = None,
    format: grammar_options.Format = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="viterbi, the most probable tree; mbr, that with the largest expected number of right heads or "
            "phrases, not for latent annotations; max-rule, for phrases, that with the largest product of posterior "
            "probabilities of its rules. Usual are viterbi and, for latent annotations, max-rule.",
        ),
    ] = None,
    column: grammar_options.Column = None,
    punctuation: grammar_options.Punctuation = True,
    max_length: grammar_options.MaxLength = None,
    jobs: grammar_options.Jobs = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Parse sentences: find the head of every word, or the tree of phrases."""
    with command_output(as_json, quiet) as out:
        from subchain.cli.grammar_kinds import check_format, kind_of_file
        from subchain.cli.inputs import existing
        from subchain.cli.targets import check_target
        from subchain.core.files import writing

        existing(grammar)
        if output is not None:
            check_target(output, sentences, grammar)
        kind = kind_of_file(grammar, jobs)
        format = check_format(kind, format)
        text = kind.read(sentences, column, punctuation, max_length)
        began = time.perf_counter()
        trees = kind.parsed(text, method or kind.usual_method)
        seconds = time.perf_counter() - began
        out.add(output=None if output is None else str(output), n_sentences=len(text), seconds=seconds)
        if output is not None:
            written = kind.written(trees, format)
            with writing(output) as file:
                file.write(written)
            out.line(f"{number_of(len(text), 'sentence')} ({seconds:.1f} s, {len(text) / seconds:,.0f} per second)")
            out.line(f"trees written to {output}")
        elif as_json:
            out.add(**{name: value for name, value in kind.plain(trees).items() if name != "tags"})
        else:
            sys.stdout.write(kind.written(trees, format))
