"""What a command's exit status says, and which trouble leads to which."""

from __future__ import annotations

import errno
import os
from enum import IntEnum

from subchain.errors import FileFormatError, InputError, SubchainError


class Status(IntEnum):
    """Exit codes."""

    FINE = 0
    UNEXPECTED = 1
    USAGE = 2
    UNREADABLE = 3
    UNWRITABLE = 4
    NOT_INSTALLED = 5
    INTERRUPTED = 130


#: What the codes mean, as the help shows it.
MEANINGS = {
    Status.FINE: "fine",
    Status.UNEXPECTED: "an error of the program itself",
    Status.USAGE: "wrong options, or data that cannot be used so",
    Status.UNREADABLE: "a file with data or a model is missing or cannot be read",
    Status.UNWRITABLE: "the answer cannot be written: disk full, no permission",
    Status.NOT_INSTALLED: "an optional part is not installed",
    Status.INTERRUPTED: "interrupted (Ctrl-C)",
}

#: Set to see where an unexpected error comes from.
TRACEBACK = "SUBCHAIN_TRACEBACK"
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class UnreadableError(InputError):
    """A file that was named is not there."""


class UnwritableError(InputError):
    """A file that was asked for cannot be written."""


class NotInstalledError(InputError):
    """A part of the package, or a package beside it, that is not there."""


def explain(error: BaseException) -> tuple[Status, str]:
    """The exit code of an error, and one sentence that says what happened and what to do."""
    if isinstance(error, KeyboardInterrupt):
        return Status.INTERRUPTED, "interrupted; nothing was written."
    if isinstance(error, NotInstalledError):
        return Status.NOT_INSTALLED, str(error)
    if isinstance(error, UnwritableError):
        return Status.UNWRITABLE, str(error)
    if isinstance(error, (UnreadableError, FileFormatError)):
        return Status.UNREADABLE, str(error)
    if isinstance(error, SubchainError):
        return Status.USAGE, str(error)
    if isinstance(error, ImportError):
        return Status.NOT_INSTALLED, str(error)
    if isinstance(error, OSError):
        return Status.UNWRITABLE, _of_the_system(error)
    if isinstance(error, MemoryError):
        return Status.UNEXPECTED, f"not enough memory ({error}); use fewer states, or --inference scvi."
    name = type(error).__name__
    hint = f"this is an error of the program: set {TRACEBACK}=1 to see where it comes from, and please report it."
    return Status.UNEXPECTED, f"{name}: {error}; {hint}"


def wants_traceback() -> bool:
    """Whether whoever runs the command wants to see where an error comes from."""
    return bool(os.environ.get(TRACEBACK))


def _of_the_system(error: OSError) -> str:
    where = "the answer" if error.filename is None else repr(str(error.filename))
    why = error.strerror or "not all of it was written"
    if error.errno in _FULL or error.errno is None:  # NumPy says only that it has written less than it was given
        return (
            f"{where} could not be written: the disk is full or the file would be larger than is allowed "
            f"({why}); nothing is left behind. Free some space, or write elsewhere with -o."
        )
    return f"{where} could not be read or written: {why}; check the path and its permissions."
