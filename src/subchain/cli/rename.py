"""`subchain rename`: give names to the states of a model.

Names come from the command line, or from a JSON file: `{"states": {"0": "calm", "1": "busy"}}`, keyed by the numbers of
the states. A report page lets its reader download such a file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subchain.cli import options
from subchain.cli.output import command_output, number_of

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Key of the names in a file.
KEY = "states"


def rename(
    model: options.ModelPath,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="STATE=NAME", help="Names by the present names or numbers of states: 0=calm 1=busy."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--names", metavar="JSON", help="A file of names, as a report page lets you download."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="MODEL", help="The renamed model; the same file by default."),
    ] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Name the states of a model; predictions, tables and pages use the names."""
    with command_output(as_json, quiet) as out:
        from subchain.cli.inputs import existing, load_model
        from subchain.cli.targets import check_target
        from subchain.errors import InputError

        if not names and file is None:
            raise InputError("rename needs names: STATE=NAME, or --names FILE.")
        target = output or model
        check_target(target)
        fitted = load_model(model)
        given = {} if file is None else names_in_file(existing(file), fitted.state_names_)
        given |= _names_given(names or [], fitted.state_names_)
        fitted.state_names_ = [given.get(state, name) for state, name in enumerate(fitted.state_names_)]
        fitted.save(target)
        out.add(model=str(target), state_names=fitted.state_names_)
        out.line(f"{number_of(len(given), 'state')} named; model written to {target}")


def names_in_file(path: Path, present: Sequence[str]) -> dict[int, str]:
    """Return the names in a file by the numbers of the states; raise a `FileFormatError` if it is no such file."""
    from subchain.errors import FileFormatError

    expected = f'a JSON object {{"{KEY}": {{"0": "calm", …}}}} with names by the numbers of the states'
    try:
        plain: Any = json.loads(path.read_text(encoding="utf8"))
    except (ValueError, OSError) as error:
        raise FileFormatError(f"{str(path)!r} cannot be read as {expected}: {error}.") from None
    entries = plain.get(KEY) if isinstance(plain, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(name, str) for name in entries.values()):
        raise FileFormatError(f"{str(path)!r} is not {expected}.")
    wrong = [key for key in entries if not (key.isdecimal() and int(key) < len(present))]
    if wrong:
        raise FileFormatError(
            f"{str(path)!r} names the state {wrong[0]!r}, but the model has the states 0 to {len(present) - 1}; the "
            "file belongs to another model."
        )
    return {int(key): name for key, name in entries.items()}


def _names_given(pairs: Sequence[str], present: Sequence[str]) -> dict[int, str]:
    """Return the names of arguments STATE=NAME by the numbers of the states."""
    from subchain.errors import InputError, unknown_name

    found = {}
    for pair in pairs:
        state, equals, name = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{pair!r} is not STATE=NAME, such as 0=calm.")
        if state in present:
            found[list(present).index(state)] = name
        elif state.isdecimal() and int(state) < len(present):
            found[int(state)] = name
        else:
            raise unknown_name("state", state, present)
    return found
