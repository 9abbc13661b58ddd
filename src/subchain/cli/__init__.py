"""The command line: one module per command, automatic choices for options that are not given.

Commands import numerical libraries only when they run, so that --help is fast.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import signal
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
    """Run the Typer application that `load` returns under this name; for `main` and for programs outside the package.

    With --json an error in the options is printed as a JSON object too. Ctrl-C while `load` imports ends the program
    without a traceback.
    """
    for name_of_stream in ("stdout", "stderr"):
        stream = getattr(sys, name_of_stream)
        if stream is None:  # in a program without a console
            setattr(sys, name_of_stream, open(os.devnull, "w", encoding="utf8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that lack a character
    _collect_seldom()
    with contextlib.suppress(ValueError):  # in a thread that is not the main one
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends a command as Ctrl-C does
    try:
        app = load()
        if "--json" in sys.argv[1:]:
            raise SystemExit(_run_with_json(app, name))
        app(prog_name=name)
    except KeyboardInterrupt:  # before a command has begun
        raise SystemExit(130) from None
    finally:
        # With `python -m`, a KeyboardInterrupt that left an `exec` of source text ends the program by the signal, even
        # if it was caught later. Imports of dataclasses execute such text. Another `exec` clears the mark.
        exec("")


def _collect_seldom() -> None:
    """Let Python look for garbage in cycles less often, and not at its end.

    Imports make a hundred thousand objects that live as long as the process.
    """
    gc.set_threshold(100_000, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def _run_with_json(app: Callable[..., Any], name: str) -> int:
    """Run a command that prints JSON even for errors in the options, and return its exit code."""
    try:
        return app(prog_name=name, standalone_mode=False) or 0
    except Exception as error:
        if not hasattr(error, "format_message"):  # usage errors of typer have it, in every version
            raise
        from subchain.cli.exit_codes import ExitCode
        from subchain.cli.output import Output

        Output(as_json=True).fail(ExitCode.USAGE, error.format_message())
        return ExitCode.USAGE
