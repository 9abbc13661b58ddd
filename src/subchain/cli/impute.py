"""`subchain impute`: fill missing entries of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subchain.cli import options
from subchain.cli.output import command_output, number_of
from subchain.cli.reading_options import Reading, reads_data

if TYPE_CHECKING:
    from subchain.cli.joined import Joined


@reads_data
def impute(
    model: options.ModelPath,
    data: options.DataPaths,
    output: options.TableTarget = None,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Fill missing entries: numbers by their expected value, symbols by the most probable one, given all the data.

    Observed entries and columns that the model does not look at are copied.
    """
    with command_output(as_json, quiet) as out:
        import numpy as np

        from subchain.cli.inputs import DataSource, load_model, read_for
        from subchain.cli.joined import Joined
        from subchain.cli.rows import check_suffix, write_table
        from subchain.cli.sample import decoded
        from subchain.cli.targets import check_target
        from subchain.data import is_missing

        if output is not None:
            check_suffix(output, "completed data")
            check_target(output, model, *data)
        fitted = load_model(model)
        x = read_for(fitted, DataSource(data, **reading))
        found = fitted.impute(x)
        filled = np.concatenate(found) if isinstance(found, list) else np.asarray(found)
        missing = is_missing(np.asarray(x.values)).reshape(len(filled), -1)
        joined = Joined.of(fitted, x, data)
        cells = _completed(joined, missing, decoded(fitted, filled))
        n_missing = int(missing.sum())
        out.add(n_imputed=n_missing, n_observations=x.n_observations)
        if out.as_json:
            out.add(columns=joined.names, rows=cells)
        if output is not None or not out.as_json:
            write_table(output, joined.names, cells)
        if output is not None:
            out.add(output=str(output))
            what = f"{n_missing:,} missing {'entry' if n_missing == 1 else 'entries'}"
            out.line(f"{what} of {number_of(x.n_observations, 'observation')} filled and written to {output}")


def _completed(joined: Joined, missing: Any, values: list[Any]) -> list[list[Any]]:
    """Return the rows of the input with missing cells replaced."""
    rows = [list(row) for row in joined.rows]
    for at, column in zip(*missing.nonzero(), strict=True):
        value = values[at]
        cell = value[column] if isinstance(value, list) else value
        rows[at][joined.places[column]] = f"{cell:.6g}" if isinstance(cell, float) else cell
    return rows
