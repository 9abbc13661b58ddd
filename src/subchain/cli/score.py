"""`subchain score`: how probable data are under a model."""

from __future__ import annotations

from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.conversation import conversation, number_of


def score(
    model: options.ModelPath,
    data: options.DataPaths,
    each: Annotated[bool, typer.Option("--each", help="Also the score of each sequence.")] = False,
    unit: options.Unit = None,
    sequences: options.SequenceRule = None,
    lower: options.Lower = None,
    columns: options.Columns = None,
    sequence: options.SequenceColumn = None,
    array: options.Array = None,
    as_json: options.AsJson = False,
) -> None:
    """Log likelihood of data: all together, an observation on the average, or each sequence."""
    with conversation(as_json) as talk:
        from subchain.cli.inputs import Reading, load_model, read_for

        fitted = load_model(model)
        x = read_for(fitted, Reading(data, unit, sequences, lower, columns, sequence, array))
        scores = fitted.score_sequences(x)
        total = float(scores.sum())
        talk.fact(
            log_likelihood=total, per_observation=total / x.n_observations, n_observations=x.n_observations,
            n_sequences=x.n_sequences,
        )  # fmt: skip
        talk.say(f"log likelihood      {total:.4f}")
        talk.say(f"an observation      {total / x.n_observations:.6f}")
        talk.say(f"observations        {x.n_observations} in {number_of(x.n_sequences, 'sequence')}")
        if each:
            names = x.names or range(x.n_sequences)
            talk.fact(sequences=[{"name": n, "log_likelihood": s} for n, s in zip(names, scores, strict=True)])
            rows = [(n, length, f"{s:.4f}") for n, length, s in zip(names, x.lengths, scores, strict=True)]
            talk.table(["sequence", "length", "log likelihood"], rows, right=(1, 2))
