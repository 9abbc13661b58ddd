"""Options that say how data are read, written once for all commands that read data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

#: Values of the options by the names of the fields of `DataSource`.
Reading = dict[str, Any]

PANEL = "How the data are read"


def _option(kind: Any, *flags: str, **settings: Any) -> Any:
    return Annotated[kind | None, typer.Option(*flags, rich_help_panel=PANEL, **settings)]


OPTIONS: dict[str, Any] = {
    "unit": _option(str, "--unit", metavar="UNIT", help="For text: words or characters."),
    "sequences": _option(
        str, "--sequences", metavar="RULE",
        help="For text: every line is a sequence (lines), or lines up to a blank line (paragraphs), or the whole text "
        "(chain). For arrays and tables: every row is a sequence (rows).",
    ),
    "lower": _option(bool, "--lower", help="For text: convert to lower case."),
    "columns": _option(
        str, "--columns", metavar="A,B,...",
        help="The observed columns, by name or number; for .npz files also arrays of the same length.",
    ),
    "sequence": _option(
        str, "--sequence", metavar="COLUMN", help="For tables: the column that names each row's sequence."
    ),
    "array": _option(
        str, "--array", metavar="A,B,...", help="For .npz files: the observed array, or several, one sequence each."
    ),
    "format": _option(
        str, "--format", metavar="KIND",
        help="For file names with other endings: text, csv, tsv, parquet, npy, npz, conllu.",
    ),
    "lengths": _option(
        str, "--lengths", metavar="ARRAY",
        help="For .npz files: the array with the lengths, or offsets, of the sequences.",
    ),
    "header": _option(
        bool, "--header/--no-header", show_default=False,
        help="For .csv and .tsv: the first line holds names of columns, or observations.",
    ),
    "separator": _option(
        str, "--separator", metavar="CHARACTER",
        help="For .csv and .tsv: the character between fields, or tab, space.",
    ),
}  # fmt: skip


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with all `OPTIONS` instead of its parameter `reading`, which gets their values."""
    signature = inspect.signature(command, eval_str=True)
    parameters = []
    for parameter in signature.parameters.values():
        options = [parameter.replace(name=name, default=None, annotation=kind) for name, kind in OPTIONS.items()]
        parameters += options if parameter.name == "reading" else [parameter]

    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:
        reading = {name: arguments.pop(name) for name in OPTIONS}
        command(**arguments, reading=reading)

    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options
