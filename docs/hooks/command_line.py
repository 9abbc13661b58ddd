"""The page of the command line: what `--help` says of every command, as Markdown, written while the site is built."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

PAGE, MARK = "reference/command-line.md", "<!-- commands -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the commands in the place that the page keeps for them."""
    return markdown.replace(MARK, "\n".join(commands())) if page.file.src_uri == PAGE else markdown


def commands() -> Iterator[str]:
    """Every command, with its groups of options and its examples."""
    from typer.main import get_command

    from subchain.cli.app import app

    for name, command in get_command(app).commands.items():
        for inner, part in getattr(command, "commands", {"": command}).items():
            if not command.hidden:
                yield from _command(f"{name} {inner}".strip(), part)


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if not parameter.opts[0].startswith("-")]
    options = [parameter for parameter in command.params if parameter not in arguments]
    usage = " ".join([f"subchain {name}", *map(_argument, arguments), "[OPTIONS]" if options else ""]).strip()
    yield from [f"## `subchain {name}`", "", command.help, "", "```text", usage, "```", ""]
    groups: dict[str, list[Any]] = {}
    for parameter in [*arguments, *options]:
        groups.setdefault(parameter.rich_help_panel or ("Options" if parameter in options else "Arguments"), []).append(
            parameter
        )
    for title, members in groups.items():
        yield from [f"| {title} | |", "|---|---|", *map(_row, members), ""]
    yield from _examples(command.epilog or "")


def _argument(parameter: Any) -> str:
    name = f"{parameter.metavar or parameter.name.upper()}{'...' if parameter.nargs == -1 else ''}"
    return name if parameter.required else f"[{name}]"


def _row(parameter: Any) -> str:
    flags = [flag for flag in [*parameter.opts, *parameter.secondary_opts] if flag.startswith("-")]
    value = "" if getattr(parameter, "is_flag", False) or not flags else f" {parameter.metavar or 'N'}"
    names = ", ".join(f"`{flag}{value}`" for flag in flags) or f"`{_argument(parameter)}`"
    default = "" if parameter.default in (None, False) or not flags else f" `{parameter.default}` if not given."
    return f"| {names} | {(parameter.help or '').replace('|', chr(92) + '|')}{default} |"


def _examples(epilog: str) -> Iterator[str]:
    lines = [line.strip() for line in epilog.splitlines() if line.startswith("  ")]
    if lines:
        yield from ["**Examples**", "", "```text", *lines, "```", ""]
