"""Exceptions of the package, one class per kind of failure.

Messages say what was given, what was expected, where, and what to do.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable


class SubchainError(Exception):
    """Base class of all exceptions of this package."""


class InputError(SubchainError, ValueError):
    """Invalid data or settings."""


class ImpossibleSequenceError(SubchainError, ValueError):
    """A sequence has probability zero under the model; the message gives its number and the position.

    Attributes
    ----------
    positions : the first position (within its sequence) without a path, for each impossible sequence
    """

    def __init__(self, message: str, positions: dict[int, int] | None = None) -> None:
        super().__init__(message)
        self.positions = positions or {}


class InferenceError(SubchainError, ArithmeticError):
    """An inference run failed: a bound decreased that must not, or a value became infinite or nan."""


class ClusterError(SubchainError, RuntimeError):
    """The processes of a cluster cannot do what is asked of them: none are there, or they are lost again and again."""


class FileFormatError(SubchainError, ValueError):
    """A file is corrupt, truncated, or of another kind than expected."""


class FileWriteError(InputError, OSError):
    """A file cannot be written: its disk is full, its folder is protected, or it would exceed a limit.

    Attributes
    ----------
    filename : the file
    errno, strerror : number and text of the system's error
    """

    def __init__(self, message: str, path: str | os.PathLike[str], cause: OSError) -> None:
        super().__init__(message)
        self.filename, self.errno, self.strerror = os.fspath(path), cause.errno, cause.strerror

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.args[0], self.filename, OSError(self.errno, self.strerror))


class NotFittedError(SubchainError, ValueError, AttributeError):
    """A method that needs parameters was called before `fit`."""


class ConvergenceWarning(UserWarning):
    """A run ended before its objective converged."""


def not_fitted(what: str) -> NotFittedError:
    """Return the error for a model without parameters; if scikit-learn is imported, a subclass of its error too."""
    kind: type[NotFittedError] = NotFittedError
    sklearn_exceptions = sys.modules.get("sklearn.exceptions")
    if sklearn_exceptions is not None:
        kind = type("NotFittedError", (NotFittedError, sklearn_exceptions.NotFittedError), {})
    return kind(f"this {what} has no parameters yet; call fit first.")


#: Maximum number of known names that a message lists.
MAX_NAMES = 20


def unknown_name(kind: str, given: object, known: Iterable[str]) -> InputError:
    """Return the error for an unknown name, with the most similar known name as a suggestion."""
    names = sorted(known)
    close = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(map(repr, names[:MAX_NAMES])) + (", …" if len(names) > MAX_NAMES else "")
    return InputError(f"unknown {kind} {given!r}; known are {shown}.{hint}")


def impossible_error(impossible: dict[int, int]) -> ImpossibleSequenceError:
    """Return the error for sequences of probability zero; `impossible` maps sequences to the first position where."""
    sequence, position = next(iter(impossible.items()))
    more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
    return ImpossibleSequenceError(
        f"sequence {sequence}{more} has probability zero under the model: no path of states explains its observations "
        f"up to position {position}. Check the observation at this position, the structural zeros of the transitions "
        "and the states that were given as allowed or known; a prior that is not flat makes observations possible that "
        "the training data did not have.",
        impossible,
    )
