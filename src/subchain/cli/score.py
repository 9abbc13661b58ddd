"""`subchain score`: compute the log likelihood of data under a model."""

from __future__ import annotations

from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.output import command_output
from subchain.cli.reading_options import Reading, reads_data


@reads_data
def score(
    model: options.ModelPath,
    data: options.DataPaths,
    each: Annotated[bool, typer.Option("--each", help="Include the score of each sequence.")] = False,
    *,
    reading: Reading,
    as_json: options.AsJson = False,
) -> None:
    """Compute the log likelihood of data: total, per observation, and of each sequence."""
    with command_output(as_json) as out:
        from subchain.cli.inputs import DataSource, described, load_model, read_for
        from subchain.emissions.choice import n_missing_entries

        fitted = load_model(model)
        x = read_for(fitted, DataSource(data, **reading))
        scores = fitted.score_sequences(x)
        total = float(scores.sum())
        out.add(
            log_likelihood=total, per_observation=total / x.n_observations, n_observations=x.n_observations,
            n_sequences=x.n_sequences,
        )  # fmt: skip
        out.line(f"log likelihood      {total:.4f}")
        out.line(f"per observation     {total / x.n_observations:.6f}")
        n_missing = n_missing_entries(fitted.family_, x)
        out.add(n_missing=n_missing)
        out.line(f"data                {described(x, n_missing)}")
        if each:
            names = x.names or range(x.n_sequences)
            out.add(sequences=[{"name": n, "log_likelihood": s} for n, s in zip(names, scores, strict=True)])
            rows = [(n, length, f"{s:.4f}") for n, length, s in zip(names, x.lengths, scores, strict=True)]
            out.table(["sequence", "length", "log likelihood"], rows, right=(1, 2))
