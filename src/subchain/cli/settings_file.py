"""A settings file: the options of a command in TOML, written by one call and read by another.

    states = 4
    columns = "speed,angle"
    time-limit = 300

Keys are the long names of options, and "data" for the files. Options on the command line win.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

#: Options that belong to a single call and are not settings.
OF_A_CALL = ("settings", "save-settings", "json", "resume", "restart", "quiet", "verbose", "help")


def _keys(context: typer.Context) -> dict[str, Any]:
    """Return the parameters of a command by their keys in a settings file."""
    found = {}
    for parameter in context.command.params:
        longest = max(parameter.opts, key=len).lstrip("-")
        if longest not in OF_A_CALL:
            found[longest] = parameter
    return found


def read_settings(context: typer.Context, path: Path | None) -> Path | None:
    """Take the values of options that the command line does not give from a settings file; a callback of Typer."""
    if path is None:
        return None
    import tomllib

    known = _keys(context)
    try:
        given = tomllib.loads(path.read_text(encoding="utf8"))
    except OSError as error:
        raise typer.BadParameter(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{str(path)!r} is not a TOML file: {error}.") from None
    values = {}
    for key, value in given.items():
        name = key.replace("_", "-")
        if name not in known:
            raise typer.BadParameter(_unknown(path, key, list(known)))
        if known[name].multiple or known[name].nargs == -1:
            value = value if isinstance(value, list) else [value]
        elif isinstance(value, (list, dict)):
            raise typer.BadParameter(f"{str(path)!r}: {key} must be a single value, not {value!r}.")
        values[known[name].name] = value
    context.default_map = {**(context.default_map or {}), **values}
    return path


def _unknown(path: Path, key: str, known: list[str]) -> str:
    from difflib import get_close_matches

    if key.replace("_", "-") in OF_A_CALL:
        return f"{str(path)!r}: {key} cannot be set in a file; give it on the command line."
    near = get_close_matches(key, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else f" Known are {', '.join(sorted(known))}."
    return f"{str(path)!r}: there is no setting {key!r}.{hint}"


def write_settings(context: typer.Context, path: Path) -> None:
    """Write all options of a call that were given, on its command line or in a settings file, and the seed."""
    from subchain.core.files import writing

    lines = []
    for key, parameter in _keys(context).items():
        value = context.params.get(parameter.name)
        source = context.get_parameter_source(parameter.name)
        is_given = source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP", "ENVIRONMENT")
        if value is not None and (is_given or key == "seed"):
            lines.append(f"{key} = {_toml(value)}")
    with writing(path) as file:
        file.write("\n".join([f"# {context.command_path} --settings {path.name}", *lines]) + "\n")


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, (bool, int, float)):
        return str(value).lower()
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
