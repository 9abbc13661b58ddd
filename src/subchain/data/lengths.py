"""Second positional arguments in the manner of hmmlearn, `fit(X, lengths)`: understood, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.errors import InputError


def with_lengths(x: Any, second: Any, method: str) -> Any:
    """Return data with the second positional argument of a method: `(x, lengths)`, or `x` if nothing was given.

    Whole numbers that sum to the number of rows of an array are lengths. Anything else is refused with the call that
    was probably meant: labels are not used unless they are given as `states=`.

    Parameters
    ----------
    x : data, as in `HMM.fit`
    second : the argument after the data, None if there was none
    method : name of the method, for the error

    Examples
    --------
    >>> with_lengths(np.zeros(5), [3, 2], "fit")[1].tolist()
    [3, 2]
    """
    if second is None:
        return x
    given = np.asarray(second) if _is_flat(second) else np.empty((0, 0))
    n_rows = len(x) if isinstance(x, np.ndarray) or hasattr(x, "iloc") or _is_flat(x) else None
    is_whole = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iu"
    if is_whole and n_rows is not None and len(given) != n_rows and (given >= 0).all() and given.sum() == n_rows:
        return x, given
    of_data = "" if n_rows is None else f" of {n_rows} rows"
    raise InputError(
        f"{method}(x, ...): the second argument is neither None nor lengths of sequences that add up to the data"
        f"{of_data}; got {_shown(second)}. For lengths call {method}((X, lengths)); for known states, or labels, call "
        f"{method}(x, states=labels) with integers from 0 on and -1 where unknown."
    )


def _is_flat(given: Any) -> bool:
    """Return whether an argument is an array, or a list of single numbers."""
    if isinstance(given, (list, tuple)):
        return all(isinstance(item, (int, float, np.generic)) for item in given)
    return hasattr(given, "__array__")


def _shown(given: Any) -> str:
    """Return an argument as an error message shows it."""
    if isinstance(given, np.ndarray) and given.size > 5:
        return f"an array of {given.dtype} of shape {given.shape}"
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
