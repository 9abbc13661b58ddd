"""Colours of states, the most frequent first: the same in plots, reports and files for genome browsers.

The first eight can be distinguished with any kind of colour vision. For further states plots use hatches; where only
a colour is possible, lighter and darker shades follow.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

#: Colours of states, the most frequent first; `reports/page/base.js` has the same.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#c9bb3a", "#8a8f98")
#: Target (1 white, 0 black) and share of it that is mixed into the first eight colours, the next eight, and so on.
SHADES = ((1, 0.0), (1, 0.5), (0, 0.4))


def ranks(occupancy: NDArray[np.float64]) -> list[int]:
    """Return the rank of each state by falling occupancy.

    Examples
    --------
    >>> ranks(np.array([0.2, 0.7, 0.1]))
    [1, 0, 2]
    """
    places: list[int] = np.argsort(np.argsort(-occupancy, kind="stable")).tolist()
    return places


def shaded(rank: int) -> str:
    """Return a colour for the state of the given rank; 24 colours are distinct, then they repeat.

    Examples
    --------
    >>> shaded(0), shaded(8), shaded(16)
    ('#0072b2', '#80b9d9', '#00446b')
    """
    towards, share = SHADES[rank // len(COLOURS) % len(SHADES)]
    parts = [(1 - share) * part + share * 255 * towards for part in red_green_blue(COLOURS[rank % len(COLOURS)])]
    return "#" + "".join(f"{int(part + 0.5):02x}" for part in parts)


def red_green_blue(colour: str) -> tuple[int, int, int]:
    """Split a colour "#rrggbb" into its parts, each from 0 to 255.

    Examples
    --------
    >>> red_green_blue("#ff8000")
    (255, 128, 0)
    """
    if not isinstance(colour, str) or not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
        raise InputError(f"colours must be written as #rrggbb, for example '#d55e00'; got {colour!r}.")
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
