"""What a command says: sentences and tables for people, or one JSON object for machines, and one line if it fails.

Answers go to standard output, remarks and errors to standard error. With `--json` the only thing on standard output is
one object, also if the command fails.
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

from subchain.cli.exits import Status, explain, wants_traceback

#: Settings that warnings of the package speak of, and the options that set them.
_OPTIONS = {
    "raise n_states": "raise --max-states",
    "raise max_iter": "raise --max-iter",
    "by array=": "by --array",
    "by columns=": "by --columns",
}


class Conversation:
    """One command's talk with whoever called it.

    Parameters
    ----------
    as_json : whether a machine listens
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.status: int = Status.FINE
        self._facts: dict[str, Any] = {}
        self._remarks: list[str] = []

    def fact(self, **facts: Any) -> None:
        """Add to the JSON object."""
        self._facts.update(facts)

    def say(self, text: str = "") -> None:
        """A line for people."""
        if not self.as_json:
            print(text)

    def remark(self, text: str) -> None:
        """A line beside the answer: what was chosen, what to beware of."""
        self._remarks.append(text)
        if not self.as_json:
            print(f"note: {text}", file=sys.stderr)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> None:
        """A table for people; the columns in `right` are numbers."""
        if self.as_json:
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
        """Hand over the JSON object."""
        if self.as_json:
            remarks = {"warnings": self._remarks} if self._remarks else {}
            print(json.dumps(_plain(self._facts | remarks), ensure_ascii=False, allow_nan=False))
        sys.stdout.flush()

    def fail(self, status: Status, message: str) -> None:
        """Say what went wrong."""
        print(f"error: {message}", file=sys.stderr)
        if self.as_json:
            print(json.dumps({"error": message, "exit_code": int(status)}, ensure_ascii=False))
            sys.stdout.flush()


@contextmanager
def conversation(as_json: bool = False) -> Iterator[Conversation]:
    """Run a command: warnings become remarks, errors become one line and an exit code."""
    talk = Conversation(as_json)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *rest, **more: talk.remark(_in_options(str(message)))
            yield talk
        talk.finish()
    except typer.Exit:
        raise
    except BrokenPipeError:
        _close_output()  # whoever read the answer has seen enough
        raise typer.Exit(Status.FINE) from None
    except (Exception, KeyboardInterrupt) as error:
        if wants_traceback():
            raise
        status, message = explain(error)
        try:
            talk.fail(status, _in_options(message))
            sys.stdout.flush()  # what could not be written stays in the buffer, and would fail once more at the end
        except OSError:
            _close_output()  # there is no room for the answer, and none for the error
        raise typer.Exit(status) from None
    if talk.status:
        raise typer.Exit(talk.status)


def _close_output() -> None:
    """Throw away what is still in the buffer of standard output, so that it cannot fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_options(text: str) -> str:
    """A warning or an error in the words of the command line."""
    for setting, option in _OPTIONS.items():
        text = text.replace(setting, option)
    return text


def number_of(n: int, what: str) -> str:
    """A number and what is counted, in the plural where it has to be.

    Examples
    --------
    >>> number_of(1, "sequence"), number_of(2, "sequence")
    ('1 sequence', '2 sequences')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _plain(value: Any) -> Any:
    """Values that JSON knows: no arrays, no nan."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
