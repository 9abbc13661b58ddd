"""`subchain forecast`: the distribution of the observations after the end of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from subchain.cli import options
from subchain.cli.output import command_output, number_of
from subchain.cli.reading_options import Reading, reads_data

if TYPE_CHECKING:
    from subchain.models.hmm import HMM
    from subchain.tasks.forecast import Forecast


@reads_data
def forecast(
    model: options.ModelPath,
    data: options.DataPaths,
    steps: Annotated[int, typer.Option("-n", "--steps", metavar="N", help="Number of steps ahead.")] = 10,
    interval: Annotated[
        float, typer.Option("--interval", metavar="P", help="Probability of the intervals of numbers.")
    ] = 0.9,
    output: options.TableTarget = None,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Forecast the observations that follow each sequence.

    A row is a step ahead of a sequence: for numbers the expected value and an interval, for symbols the most probable
    one and its probability, and the most probable state.
    """
    with command_output(as_json, quiet) as out:
        from subchain.cli.inputs import DataSource, load_model, read_for
        from subchain.cli.rows import check_suffix, write_table
        from subchain.cli.targets import check_target
        from subchain.errors import InputError

        if not 0.0 < interval < 1.0:
            raise InputError(f"--interval must lie between 0 and 1, not {interval:g}.")
        if steps < 1:
            raise InputError(f"--steps must be at least 1, not {steps}.")
        if output is not None:
            check_suffix(output, "forecasts")
            check_target(output, model, *data)
        fitted = load_model(model)
        x = read_for(fitted, DataSource(data, **reading))
        found = fitted.forecast(x, steps)
        ahead = found if isinstance(found, list) else [found]
        names = x.names or range(x.n_sequences)
        rows = [
            {"sequence": name, "step": step + 1} | cells
            for name, one in zip(names, ahead, strict=True)
            for step, cells in enumerate(_steps(fitted, one, interval))
        ]
        out.add(steps=steps, interval=interval, forecast=rows)
        if output is not None or not out.as_json:
            write_table(output, list(rows[0]), [list(row.values()) for row in rows])
        if output is not None:
            out.add(output=str(output))
            out.line(f"{number_of(steps, 'step')} after {number_of(x.n_sequences, 'sequence')} written to {output}")


def _steps(model: HMM, ahead: Forecast, interval: float) -> list[dict[str, Any]]:
    """Return the cells of each step ahead of one sequence, by the names of their columns."""
    import numpy as np

    from subchain.cli.states import profile_of
    from subchain.tasks.profiles import Symbols

    columns: dict[str, Any] = {}
    bounds = _bounds(ahead, interval)
    for part in profile_of(model):
        name = "symbol" if isinstance(part, Symbols) and model.columns_ is None else part.name.replace(" ", "_")
        if isinstance(part, Symbols):
            chances = ahead.states @ part.chances
            best = chances.argmax(axis=1)
            columns[name] = [part.labels[symbol] for symbol in best]
            columns[f"p_{name}"] = chances.max(axis=1).tolist()
        else:
            columns[name] = (ahead.states @ part.means).tolist()
            if part.place.start in bounds:
                columns[f"{name}_low"], columns[f"{name}_high"] = bounds[part.place.start]
    columns["state"] = [model.state_names_[state] for state in ahead.states.argmax(axis=1)]
    columns["p_state"] = np.max(ahead.states, axis=1).tolist()
    cells = ({name: values[step] for name, values in columns.items()} for step in range(len(ahead.states)))
    return [{name: _rounded(cell) for name, cell in row.items()} for row in cells]


def _bounds(ahead: Forecast, interval: float) -> dict[int, tuple[list[float], list[float]]]:
    """Return both ends of the central interval at each step, by the place of the column among all expectations."""
    from subchain.emissions.product import ProductParameters

    parts = [ahead]
    if isinstance(ahead.emission, ProductParameters):
        parts = [ahead[name] for name in ahead.emission.parts]
    found: dict[int, tuple[list[float], list[float]]] = {}
    before = 0
    for part in parts:
        width = part.emission.expectation().shape[1]
        if part.emission.marginals() is not None:
            low, high = part.quantiles([(1.0 - interval) / 2.0, (1.0 + interval) / 2.0])
            found |= {before + at: (low[:, at].tolist(), high[:, at].tolist()) for at in range(width)}
        before += width
    return found


def _rounded(cell: Any) -> Any:
    """Return numbers with six significant digits."""
    return float(f"{cell:.6g}") + 0.0 if isinstance(cell, float) else cell
