"""Exit codes of commands, and the code and message of each kind of error."""

from __future__ import annotations

import errno
import os
from enum import IntEnum

from subchain.errors import FileFormatError, FileWriteError, InputError, SubchainError


class ExitCode(IntEnum):
    """Exit codes."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    UNREADABLE = 3
    UNWRITABLE = 4
    NOT_INSTALLED = 5
    INTERRUPTED = 130


#: Meanings of the codes, shown in the help.
MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.UNEXPECTED: "an error of the program itself",
    ExitCode.USAGE: "wrong options, or data that do not fit them",
    ExitCode.UNREADABLE: "a file with data or a model is missing or cannot be read",
    ExitCode.UNWRITABLE: "the result cannot be written: disk full, no permission",
    ExitCode.NOT_INSTALLED: "an optional dependency is not installed",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C, or SIGTERM)",
}

#: Environment variable that enables tracebacks.
TRACEBACK = "SUBCHAIN_TRACEBACK"
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class UnreadableError(InputError):
    """A given file does not exist."""


class UnwritableError(InputError):
    """The output file cannot be written."""


class NotInstalledError(InputError):
    """An optional dependency is not installed."""


def explain(error: BaseException) -> tuple[ExitCode, str]:
    """Return the exit code of an error, and a message that says what happened and what to do."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED, "interrupted; nothing was written."
    if isinstance(error, NotInstalledError):
        return ExitCode.NOT_INSTALLED, str(error)
    if isinstance(error, FileWriteError):
        return ExitCode.UNWRITABLE, _system_error(error)
    if isinstance(error, UnwritableError):
        return ExitCode.UNWRITABLE, str(error)
    if isinstance(error, (UnreadableError, FileFormatError)):
        return ExitCode.UNREADABLE, str(error)
    if isinstance(error, SubchainError):
        return ExitCode.USAGE, str(error)
    if isinstance(error, ImportError):
        return ExitCode.NOT_INSTALLED, str(error)
    if isinstance(error, OSError):
        return ExitCode.UNWRITABLE, _system_error(error)
    if isinstance(error, MemoryError):
        return ExitCode.UNEXPECTED, f"not enough memory ({error}); use fewer states, or --inference scvi."
    name = type(error).__name__
    hint = f"this is an error of the program: set {TRACEBACK}=1 for a traceback, and please report it."
    return ExitCode.UNEXPECTED, f"{name}: {error}; {hint}"


def wants_traceback() -> bool:
    """Return whether tracebacks are enabled by the environment."""
    return bool(os.environ.get(TRACEBACK))


def _system_error(error: OSError) -> str:
    """Return the message for an error of the operating system."""
    where = "the result" if error.filename is None else repr(str(error.filename))
    why = error.strerror or "not all of it was written"
    if error.errno in _FULL or error.errno is None:  # NumPy's error for incomplete writes has no errno
        return (
            f"{where} could not be written: the disk is full or the file would exceed the size limit ({why}); no "
            "partial file is left. Free some space, or write elsewhere with -o."
        )
    return f"{where} could not be read or written: {why}; check the path and its permissions."
