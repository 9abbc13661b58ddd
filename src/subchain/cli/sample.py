"""`subchain sample`: draw a sequence from a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subchain.cli import options
from subchain.cli.output import command_output, number_of
from subchain.cli.reading_options import Reading, reads_data

if TYPE_CHECKING:
    from subchain.models.hmm import HMM


@reads_data
def sample(
    model: options.ModelPath,
    n: Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of observations.")] = 100,
    seed: options.Seed = 0,
    given: Annotated[list[Path] | None, typer.Option("--given", metavar="DATA", help="A sequence to continue.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="Output file, .csv, .npy or .txt.")
    ] = None,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Draw observations and their states from a model.

    The terminal shows what a file gets: running text for text (.txt), else a table with the states (.csv).
    """
    with command_output(as_json, quiet) as out:
        from subchain.cli.inputs import DataSource, load_model, read_for
        from subchain.cli.rows import write_table
        from subchain.cli.targets import check_target
        from subchain.core.files import writing
        from subchain.errors import InputError

        known = (".csv", ".npy", ".txt")
        if output is not None:
            if output.suffix not in known:
                raise InputError(
                    f"-o {str(output)!r} has an unsupported suffix; draws are written to {', '.join(known)}."
                )
            check_target(output)
        asked = [name for name, value in reading.items() if value is not None]
        if given is None and asked:
            raise InputError(f"--{asked[0]} says how data are read, but there are none: give --given DATA.")
        fitted = load_model(model)
        past = None if given is None else read_for(fitted, DataSource(given, **reading))
        if past is not None and past.n_sequences != 1:
            raise InputError(f"--given must be one sequence, not {past.n_sequences}.")
        drawn = fitted.sample(n, given=None if past is None else past[0], random_state=seed)
        symbols = decoded(fitted, drawn.observations)
        names = [fitted.state_names_[state] for state in drawn.states]
        out.add(observations=symbols, states=names) if output is None else out.add(output=str(output))
        is_text = all(isinstance(symbol, str) for symbol in symbols)
        if output is None and out.as_json:
            return
        if output is not None and output.suffix == ".npy":
            import numpy as np

            with writing(output, "wb") as file:
                np.save(file, drawn.observations)
        elif output is None and is_text:
            print(as_text(symbols))
        elif output is not None and output.suffix == ".txt":
            with writing(output) as file:
                file.write(as_text(symbols) + "\n")
        else:
            heads, rows = _table(fitted, symbols, names)
            write_table(output, heads, rows)
        if output is not None:
            out.add(n_observations=n)
            out.line(f"{number_of(n, 'observation')} written to {output}")


def decoded(model: HMM, observations: Any) -> list[Any]:
    """Return observations as a list of symbols, or of numbers for columns without vocabulary; rows are lists."""
    rows = observations.tolist()
    if not any(model.vocabularies_):
        return list(rows)
    if observations.ndim == 1:
        return [_symbol(model, 0, code) for code in rows]
    return [[_symbol(model, column, value) for column, value in enumerate(row)] for row in rows]


def _symbol(model: HMM, column: int, value: Any) -> Any:
    vocabulary = model.vocabularies_[column]
    if vocabulary is None or value != value or value < 0:
        return value
    return vocabulary.symbols[int(value)]


def as_text(symbols: list[Any]) -> str:
    """Return characters and words as running text, anything else as comma-separated rows."""
    if all(isinstance(symbol, str) for symbol in symbols):
        return ("" if all(len(symbol) == 1 for symbol in symbols) else " ").join(symbols)
    return "\n".join(",".join(map(str, row if isinstance(row, list) else [row])) for row in symbols)


def _table(model: HMM, symbols: list[Any], names: list[str]) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns and the rows of the draws."""
    rows = [row if isinstance(row, list) else [row] for row in symbols]
    width = len(rows[0])
    heads = [*(model.columns_ or (f"column_{column}" for column in range(width))), "state"]
    return heads, [[*row, name] for row, name in zip(rows, names, strict=True)]
