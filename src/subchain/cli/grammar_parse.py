"""`subchain grammar parse`: the trees of sentences under a fitted grammar."""

from __future__ import annotations

import dataclasses
import time
from typing import Annotated

import typer

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output, number_of


def grammar_parse(
    grammar: grammar_options.Grammar,
    sentences: grammar_options.Sentences,
    output: grammar_options.Trees = None,
    format: grammar_options.Format = "conllu",
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
        from subchain.cli.grammar_output import check_format, save_trees, show_trees
        from subchain.cli.inputs import existing
        from subchain.cli.targets import check_target
        from subchain.grammar import DMV

        check_format(format)
        existing(grammar)
        if output is not None:
            check_target(output, sentences, grammar)
        model = DMV.load(grammar).set_params(n_jobs=jobs)
        text = grammar_options.read_sentences(sentences, column, punctuation, max_length)
        began = time.perf_counter()
        parsed = dataclasses.replace(text, heads=model.parse(text, method))
        seconds = time.perf_counter() - began
        out.add(output=None if output is None else str(output), n_sentences=len(text), seconds=seconds)
        if output is not None:
            save_trees(parsed, output, format)
            out.line(f"{number_of(len(text), 'sentence')} ({seconds:.1f} s, {len(text) / seconds:,.0f} per second)")
            out.line(f"trees written to {output}")
        elif as_json:
            out.add(heads=parsed.heads)
        else:
            show_trees(parsed, format)
