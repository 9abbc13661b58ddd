"""`subchain report`: write a report page on a model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.output import command_output
from subchain.cli.reading_options import Reading, reads_data

POSITIONS = "How positions are shown"


@reads_data
def report(
    model: options.ModelPath,
    data: options.DataPaths,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="The page.")] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option("--title", help="The title of the page; by default the name of the data.")
    ] = None,
    step: Annotated[
        float,
        typer.Option("--step", help="Distance of neighbouring positions, in --step-unit.", rich_help_panel=POSITIONS),
    ] = 1,
    step_unit: Annotated[
        str | None,
        typer.Option(
            "--step-unit", metavar="NAME", help="Unit of --step and --offset: bp, s, days.", rich_help_panel=POSITIONS
        ),
    ] = None,
    offset: Annotated[
        float,
        typer.Option("--offset", help="Coordinate of the first position of a sequence.", rich_help_panel=POSITIONS),
    ] = 0,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a page on a model: its states, its transitions, and the states along the data."""
    with command_output(as_json, quiet) as out:
        import subchain
        from subchain.cli.inputs import DataSource, load_model, read_for
        from subchain.cli.targets import check_target
        from subchain.data.standard_input import name_of

        check_target(output, model, *data)
        fitted = load_model(model)
        x = read_for(fitted, DataSource(data, **reading))
        named = title or ", ".join(name_of(path) for path in data)
        subchain.report(fitted, x, output, title=named, step=step, unit=step_unit, offset=offset)
        out.add(report=str(output))
        out.line(f"report written to {output}")
