"""The command line: one command a file, sensible choices for what is not said, and the Python call that does the same.

Asking for help must not wait for numerical libraries, so that every command imports what it needs when it runs.
"""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the command line; the entry point `subchain`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign is no reason to fail
    try:
        from subchain.cli.app import app

        app(prog_name="subchain")
    except KeyboardInterrupt:  # so early that no command has begun
        raise SystemExit(130) from None
