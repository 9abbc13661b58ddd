"""`subchain grammar score`: the probability of sentences under a grammar, and its trees against gold trees."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output


def grammar_score(
    grammar: grammar_options.Grammar,
    sentences: grammar_options.Sentences,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="Parsing against gold heads: viterbi or mbr.")
    ] = "viterbi",
    column: grammar_options.Column = None,
    punctuation: grammar_options.Punctuation = True,
    max_length: grammar_options.MaxLength = None,
    jobs: grammar_options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute the log probability of sentences and the perplexity of a word; accuracies where the file has heads."""
    with command_output(as_json) as out:
        from subchain.cli.inputs import existing
        from subchain.grammar import DMV, dependency_scores

        existing(grammar)
        model = DMV.load(grammar).set_params(n_jobs=jobs)
        text = grammar_options.read_sentences(sentences, column, punctuation, max_length)
        total, n_words = model.score(text), int(text.lengths.sum())
        perplexity = math.exp(-total / n_words) if math.isfinite(total) else math.inf
        out.add(log_probability=total, perplexity=perplexity, n_sentences=len(text), n_words=n_words)
        out.line(f"log probability  {total:,.4f}")
        out.line(f"perplexity       {perplexity:,.4f} per word")
        if text.heads is None:
            out.line(f"sentences        {len(text):,}, without heads to compare")
            return
        scores = dependency_scores(model.parse(text, method), text.heads)
        out.add(directed=scores.directed, undirected=scores.undirected, exact=scores.exact)
        out.line(str(scores))
