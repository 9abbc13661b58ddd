"""`subchain sample`: draw a sequence from a model."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from subchain.cli import options
from subchain.cli.output import command_output

if TYPE_CHECKING:
    from subchain.models.hmm import HMM


def sample(
    model: options.ModelPath,
    n: Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of observations.")] = 100,
    seed: options.Seed = 0,
    given: Annotated[list[Path] | None, typer.Option("--given", metavar="DATA", help="A sequence to continue.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="Output file, .csv, .npy or .txt.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw observations and their states from a model."""
    with command_output(as_json) as out:
        from subchain.cli.inputs import DataSource, load_model, read_for
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
        fitted = load_model(model)
        past = None if given is None else read_for(fitted, DataSource(given))
        if past is not None and past.n_sequences != 1:
            raise InputError(f"--given must be one sequence, not {past.n_sequences}.")
        drawn = fitted.sample(n, given=None if past is None else past[0], random_state=seed)
        symbols = decoded(fitted, drawn.observations)
        names = [fitted.state_names_[state] for state in drawn.states]
        if output is None:
            out.add(observations=symbols, states=names)
            out.line(as_text(fitted, symbols))
            return
        if output.suffix == ".npy":
            import numpy as np

            with writing(output, "wb") as file:
                np.save(file, drawn.observations)
        else:
            with writing(output) as file:
                if output.suffix == ".txt":
                    file.write(as_text(fitted, symbols) + "\n")
                else:
                    _write_table(file, fitted, symbols, names)
        out.add(output=str(output), n_observations=n)
        out.line(f"{n} observations written to {output}")


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


def as_text(model: HMM, symbols: list[Any]) -> str:
    """Return characters and words as running text, anything else as comma-separated rows."""
    if all(isinstance(symbol, str) for symbol in symbols):
        return ("" if all(len(symbol) == 1 for symbol in symbols) else " ").join(symbols)
    return "\n".join(",".join(map(_short, row if isinstance(row, list) else [row])) for row in symbols)


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _write_table(file: IO[str], model: HMM, symbols: list[Any], names: list[str]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    width = len(symbols[0]) if isinstance(symbols[0], list) else 1
    writer.writerow([*(model.columns_ or (f"column_{column}" for column in range(width))), "state"])
    for row, name in zip(symbols, names, strict=True):
        writer.writerow([*(row if isinstance(row, list) else [row]), name])
