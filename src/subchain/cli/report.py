"""`subchain report`: a page about a model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.conversation import conversation

PLACES = "How positions are shown"


def report(
    model: options.ModelPath,
    data: options.DataPaths,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="The page.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option("--title", help="The title of the page.")] = None,
    step: Annotated[
        float, typer.Option("--step", help="How far apart positions are, in units of your own.", rich_help_panel=PLACES)
    ] = 1,
    step_unit: Annotated[
        str | None, typer.Option("--step-unit", metavar="NAME", help="That unit: bp, s, days.", rich_help_panel=PLACES)
    ] = None,
    offset: Annotated[
        float, typer.Option("--offset", help="Where the first position of a sequence is.", rich_help_panel=PLACES)
    ] = 0,
    unit: options.Unit = None,
    sequences: options.SequenceRule = None,
    lower: options.Lower = None,
    columns: options.Columns = None,
    sequence: options.SequenceColumn = None,
    array: options.Array = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a page about a model: its states, its moves, and where the states are in the data."""
    with conversation(as_json) as talk:
        import subchain
        from subchain.cli.inputs import Reading, load_model, read_for
        from subchain.cli.writing import check_target

        check_target(output, model, *data)
        fitted = load_model(model)
        x = read_for(fitted, Reading(data, unit, sequences, lower, columns, sequence, array))
        subchain.report(fitted, x, output, title=title, step=step, unit=step_unit, offset=offset)
        talk.fact(report=str(output))
        talk.say(f"report written to {output}")
