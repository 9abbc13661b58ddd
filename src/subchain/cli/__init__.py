"""The command line: one command a file, sensible choices for what is not said, and the Python call that does the same.

Asking for help must not wait for numerical libraries, so that every command imports what it needs when it runs.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Run the command line; the entry point `subchain`."""
    run(_app, "subchain")


def _app() -> Any:
    from subchain.cli.app import app

    return app


def run(load: Callable[[], Any], name: str) -> None:
    """Run the application that `load` returns under this name: `main`, and programs beside the package.

    With --json an error in the options is a JSON object too. Ctrl-C while `load` imports ends the program quietly.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign is no reason to fail
    try:
        app = load()
        if "--json" in sys.argv[1:]:
            raise SystemExit(_for_machines(app, name))
        app(prog_name=name)
    except KeyboardInterrupt:  # so early that no command has begun
        raise SystemExit(130) from None


def _for_machines(app: Callable[..., Any], name: str) -> int:
    """Run a command whose reader wants JSON even if options are wrong; the exit code."""
    try:
        return app(prog_name=name, standalone_mode=False) or 0
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own, wherever its version has them
            raise
        from subchain.cli.conversation import Conversation
        from subchain.cli.exits import Status

        Conversation(as_json=True).fail(Status.USAGE, error.format_message())
        return Status.USAGE
