"""The hierarchical Dirichlet process: as many states as the data ask for, up to a truncation.

All rows of moves, and the first states, share one distribution over states, which is itself unknown:

    top     ~ stick breaking with top_concentration
    row     ~ Dirichlet(concentration · top)          one a state, and row 0 for the first states

States that the data do not need lose their share at the top, and with it their place in every row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.errors import InputError, unknown_name
from subchain.transitions.base import TransitionPrior

#: Constructions, and the algorithms that each is for.
CONSTRUCTIONS = {
    "direct": ("vi", "svi"),
    "sticks": ("vi", "svi"),
    "collapsed": ("cvi", "scvi"),
}
LEARNED = "learned"


class HDP(TransitionPrior):
    """Hierarchical Dirichlet process over the moves of a hidden chain; `n_states` is the largest number of states.

    Parameters
    ----------
    concentration : float or "learned"
        How much rows resemble their common parent: the larger, the more.
    top_concentration : float or "learned"
        How many states are expected: the larger, the more.
    construction : "auto", "direct", "sticks" or "collapsed"
        How the hierarchy is represented. "auto" is "collapsed" for `CVI` and `SCVI`, "direct" for `VI` and `SVI`.
    stickiness : float
        Added to the concentration of staying in a state.
    frozen : bool
        Keep the chain of the start.
    """

    def __init__(
        self,
        concentration: Any = 1.0,
        top_concentration: Any = 1.0,
        construction: str = "auto",
        stickiness: float = 0.0,
        frozen: bool = False,
    ) -> None:
        self.concentration = concentration
        self.top_concentration = top_concentration
        self.construction = construction
        self.stickiness = stickiness
        self.frozen = frozen
