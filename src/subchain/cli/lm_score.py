"""`subchain lm score`: the perplexity of a text under a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.output import command_output

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file by `subchain lm train`.")]
TextPath = Annotated[Path, typer.Argument(metavar="TEXT", help="Text with one sentence in each line.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]


def lm_score(model: ModelPath, text: TextPath, device: Device = "auto", as_json: options.AsJson = False) -> None:
    """Compute the perplexity of a text: sentences are independent, and the words that end them count."""
    with command_output(as_json) as out:
        import numpy as np

        from subchain.cli.lm_files import known_words, load_language_model, read_sentences

        fitted = load_language_model(model, device)
        vocabulary = known_words(fitted)
        data = read_sentences(text, vocabulary)
        total = fitted.score(data)
        perplexity = float(np.exp(-total / data.n_observations))
        n_unknown = 0
        if vocabulary.unknown is not None:
            n_unknown = int(np.count_nonzero(data.values == vocabulary.encode([vocabulary.unknown])[0]))
        out.add(
            perplexity=perplexity, log_likelihood=total, n_words=data.n_observations, n_sentences=data.n_sequences,
            n_unknown=n_unknown,
        )  # fmt: skip
        out.line(f"perplexity      {perplexity:.4f}")
        out.line(f"log likelihood  {total:.4f}")
        out.line(f"text            {data.n_observations} words in {data.n_sequences} sentences, {n_unknown} unknown")
