"""`subchain grammar score`: the probability of sentences under a grammar, and its trees against gold trees."""

from __future__ import annotations

from typing import Annotated

import typer

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output


def grammar_score(
    grammar: grammar_options.Grammar,
    sentences: grammar_options.Sentences,
    method: Annotated[
        str | None, typer.Option("--method", metavar="NAME", help="How sentences are parsed; see `parse`.")
    ] = None,
    column: grammar_options.Column = None,
    punctuation: grammar_options.Punctuation = True,
    max_length: grammar_options.MaxLength = None,
    jobs: grammar_options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute the log probability of sentences and the perplexity of a word; accuracies where the file has trees."""
    with command_output(as_json) as out:
        from subchain.cli.grammar_kinds import kind_of_file
        from subchain.cli.inputs import existing
        from subchain.numerics.perplexity import perplexity

        existing(grammar)
        kind = kind_of_file(grammar, jobs)
        text = kind.read(sentences, column, punctuation, max_length)
        total, n_words = kind.model.score(text), kind.n_words(text)
        per_word = perplexity(total, n_words)
        out.add(log_probability=total, perplexity=per_word, n_sentences=len(text), n_words=n_words)
        out.line(f"log probability  {total:,.4f}")
        out.line(f"perplexity       {per_word:,.4f} per word")
        scores = kind.compared(text, method or kind.usual_method)
        if scores is None:
            out.line(f"sentences        {len(text):,}, without trees to compare")
            return
        out.add(**scores[0])
        out.line(scores[1])
