"""Helpers of all plots: axes, the states in use, their names and styles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError, not_fitted, unknown_name
from subchain.tasks.colours import COLOURS, ranks
from subchain.tasks.overview import used_states

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from subchain.models.hmm import HMM

#: Hatches that distinguish states of the same colour.
HATCHES = ("", "//", "..", "\\\\", "--", "xx")


def axes_or_new(ax: Axes | None, **figure: Any) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError("plots need matplotlib, which is not installed; run pip install matplotlib.") from None
    return pyplot.subplots(**figure)[1]


def require_fitted(model: HMM) -> None:
    """Raise a `NotFittedError` if the model has no parameters."""
    if not model.__sklearn_is_fitted__():
        raise not_fitted(type(model).__name__)


def used_by(model: HMM) -> NDArray[np.int64]:
    """Return the states that hold at least one training position, (S,)."""
    require_fitted(model)
    statistics = model.statistics_
    return used_states(statistics.visits)


def names_of(model: HMM, states: NDArray[np.int64]) -> list[str]:
    """Return the names of some states."""
    return [model.state_names_[state] for state in states]


def styles_of(model: HMM) -> list[dict[str, Any]]:
    """Return colour and hatch of every state."""
    return [
        {"color": COLOURS[rank % len(COLOURS)], "hatch": HATCHES[rank // len(COLOURS) % len(HATCHES)]}
        for rank in ranks(model.state_occupancy_)
    ]


def shortened(name: str, longest: int) -> str:
    """Return a label of at most `longest` characters; the middle is cut, since names often differ at their ends.

    Examples
    --------
    >>> shortened("histone_mark_H3K4me1", 12)
    'histon…K4me1'
    """
    end = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"


def state_numbers(model: HMM, states: Sequence[int | str]) -> NDArray[np.int64]:
    """Return the numbers of states given by number or name."""
    names, found = model.state_names_, []
    for state in states:
        if isinstance(state, str):
            if state not in names:
                raise unknown_name("state", state, names)
            found.append(names.index(state))
        elif 0 <= state < len(names):
            found.append(int(state))
        else:
            raise InputError(f"state {state!r} does not exist; there are {len(names)} states, 0 to {len(names) - 1}.")
    if not found:
        raise InputError("no state was chosen; name at least one, or leave states out.")
    return np.array(found, dtype=np.int64)
