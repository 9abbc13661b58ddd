"""Output of commands: text and tables, or one JSON object; one line if a command fails.

Results go to standard output, notes and errors to standard error. With `--json`, standard output is exactly one JSON
object, also if the command fails.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from subchain.cli.exit_codes import ExitCode, explain, wants_traceback

#: Phrases of the package's messages that name settings, and the same with options of the command line.
_OPTIONS = {
    "raise n_states": "raise --max-states",
    "all n_states=": "all ",
    "raise max_iter": "raise --max-iter",
    "loosen tolerance=": "loosen --tolerance ",
    "with array=": "with --array",
    "with columns=": "with --columns",
    "with format=": "with --format",
    "with sequence=": "with --sequence ",
    "with header=True": "with --header",
    "sequences='rows'": "--sequences rows",
    "sequences='lines'": "--sequences lines",
    "sequences='chain'": "--sequences chain",
    "sequences='paragraphs'": "--sequences paragraphs",
    "raise time_limit=": "raise --time-limit ",
    "of n_init=": "of --restarts ",
    "resume=True": "--resume",
    "resume=False": "--restart",
    "without resume": "with --restart",
} | {
    f"{name}= is for": f"--{name} is for"
    for name in ("unit", "lower", "columns", "sequence", "array", "lengths", "header", "separator")
}


class Output:
    """Output of one command.

    Parameters
    ----------
    as_json : whether the output is one JSON object
    quiet : whether lines, tables and notes are left out
    """

    def __init__(self, as_json: bool, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.exit_code: int = ExitCode.OK
        self._entries: dict[str, Any] = {}
        self._notes: list[str] = []

    def add(self, **entries: Any) -> None:
        """Add entries to the JSON object."""
        self._entries.update(entries)

    def line(self, text: str = "") -> None:
        """Print a line of text, unless the output is JSON or quiet."""
        if not (self.as_json or self.quiet):
            print(text)

    def note(self, text: str) -> None:
        """Print a note, such as an automatic choice or a warning, to standard error; add it to the JSON object."""
        self._notes.append(text)
        if not (self.as_json or self.quiet):
            print(f"note: {text}", file=sys.stderr)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> None:
        """Print a table, unless the output is JSON or quiet; the columns in `right` are aligned to the right."""
        if self.as_json or self.quiet:
            return
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for number, head in enumerate(heads):
            is_number = number in right
            justify: Any = "right" if is_number else "left"
            table.add_column(head, justify=justify, no_wrap=is_number or number == 0, overflow="fold")
        for row in rows:
            table.add_row(*(Text(str(cell)) for cell in row))
        Console(highlight=False).print(table)

    def finish(self) -> None:
        """Print the JSON object, if the output is JSON."""
        if self.as_json:
            notes = {"warnings": self._notes} if self._notes else {}
            print(json.dumps(_plain(self._entries | notes), ensure_ascii=False, allow_nan=False))
        sys.stdout.flush()

    def fail(self, exit_code: ExitCode, message: str) -> None:
        """Print an error message; in JSON also the exit code."""
        print(f"error: {message}", file=sys.stderr)
        if self.as_json:
            print(json.dumps({"error": message, "exit_code": int(exit_code)}, ensure_ascii=False))
            sys.stdout.flush()


@contextmanager
def command_output(as_json: bool = False, quiet: bool = False) -> Iterator[Output]:
    """Yield the output of a command; turn warnings into notes, and errors into one line and an exit code."""
    out = Output(as_json, quiet)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *rest, **more: out.note(_in_options(str(message)))
            yield out
        out.finish()
    except typer.Exit:
        raise
    except BrokenPipeError:
        _close_output()  # the reader has closed the pipe
        raise typer.Exit(ExitCode.OK) from None
    except (Exception, KeyboardInterrupt) as error:
        if wants_traceback():
            raise
        exit_code, message = explain(error)
        try:
            out.fail(exit_code, _in_options(message))
            sys.stdout.flush()  # text left in the buffer would raise the error again at exit
        except OSError:
            _close_output()  # neither the result nor the error can be written
        raise typer.Exit(exit_code) from None
    if out.exit_code:
        raise typer.Exit(out.exit_code)


def _close_output() -> None:
    """Redirect standard output to the null device, so that the rest of its buffer cannot raise an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_options(text: str) -> str:
    """Return a message with names of settings replaced by options of the command line."""
    for setting, option in _OPTIONS.items():
        text = text.replace(setting, option)
    return text


def number_of(n: int, what: str) -> str:
    """Return a number with a noun in the singular or plural.

    Examples
    --------
    >>> number_of(1, "sequence"), number_of(2000, "sequence")
    ('1 sequence', '2,000 sequences')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _plain(value: Any) -> Any:
    """Return a value as JSON types: arrays become lists, infinite and nan become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
