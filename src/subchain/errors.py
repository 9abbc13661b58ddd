"""The words for what can go wrong: one class per kind of trouble, every message says what, where and what to do."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable


class SubchainError(Exception):
    """Base class of every error that this package raises on purpose."""


class InputError(SubchainError, ValueError):
    """Data or settings that cannot be used; the message says what was given, what was expected and what to do."""


class ImpossibleSequenceError(SubchainError, ValueError):
    """A sequence that has probability zero under the model; the message says which one and where."""


class InferenceError(SubchainError, ArithmeticError):
    """A run that had to stop: a bound fell where it must not, or a value became infinite or undefined."""


class FileFormatError(SubchainError, ValueError):
    """A file that is corrupt, truncated, or not of the kind that was expected."""


class NotFittedError(SubchainError, ValueError, AttributeError):
    """A model that was asked for something before it was fitted."""


class ConvergenceWarning(UserWarning):
    """A run ended before its objective settled."""


def not_fitted(what: str) -> NotFittedError:
    """The error of a model that has learned nothing; where scikit-learn is in use, also one of its own."""
    kind: type[NotFittedError] = NotFittedError
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is not None:
        kind = type("NotFittedError", (NotFittedError, theirs.NotFittedError), {})
    return kind(f"this {what} has no parameters yet; call fit first.")


#: Known names that a message lists.
MOST_NAMES = 20


def unknown_name(kind: str, given: object, known: Iterable[str]) -> InputError:
    """Build the error for a misspelt name, with the nearest known name as a suggestion."""
    names = sorted(known)
    close = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(map(repr, names[:MOST_NAMES])) + (", …" if len(names) > MOST_NAMES else "")
    return InputError(f"unknown {kind} {given!r}; known are {shown}.{hint}")


def impossible_error(impossible: dict[int, int]) -> ImpossibleSequenceError:
    """The error for sequences of probability zero."""
    sequence, position = next(iter(impossible.items()))
    more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
    return ImpossibleSequenceError(
        f"sequence {sequence}{more} has probability zero under the model: no path of states explains its observations "
        f"up to position {position}. Check that symbol, the structural zeros of the transitions and what was said "
        "about allowed or known states; a prior with positive concentration makes rare symbols possible."
    )
