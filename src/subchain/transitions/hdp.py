"""The hierarchical Dirichlet process: as many states as the data ask for, up to a truncation.

All rows of moves, and the first states, share one distribution over states, which is itself unknown:

    top     ~ stick breaking with top_concentration
    row     ~ Dirichlet(concentration · top)          one a state, and row 0 for the first states

States that the data do not need lose their share at the top, and with it their place in every row.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from subchain.errors import InputError, unknown_name
from subchain.records import Record
from subchain.transitions.base import TransitionPrior
from subchain.transitions.dirichlet import DirichletChain, DirichletRows
from subchain.transitions.initial import LearnedInitial

#: Constructions, and the algorithms that each is for.
CONSTRUCTIONS = {
    "direct": ("vi", "svi"),
    "sticks": ("vi", "svi"),
    "collapsed": ("cvi", "scvi"),
}
LEARNED = "learned"


@dataclasses.dataclass
class Hierarchy(Record):
    """The settings of the hierarchy as numbers; what is learned begins with them."""

    concentration: float
    top_concentration: float
    stickiness: float
    learns_concentration: bool
    learns_top_concentration: bool


@dataclasses.dataclass
class HierarchicalChain(DirichletChain):
    """Rows that share a parent, given that parent."""

    hierarchy: Hierarchy


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

    @property
    def exact(self) -> bool:
        return False

    def prior(self, n_states: int, *, flat: bool) -> HierarchicalChain:
        if self.construction != "auto" and self.construction not in CONSTRUCTIONS:
            raise unknown_name("construction", self.construction, ("auto", *CONSTRUCTIONS))
        hierarchy = Hierarchy(
            _positive("concentration", self.concentration),
            _positive("top_concentration", self.top_concentration),
            float(self.stickiness),
            self.concentration == LEARNED,
            self.top_concentration == LEARNED,
        )
        shared = np.full(n_states, hierarchy.concentration / n_states)
        rows = np.tile(shared, (n_states, 1)) + hierarchy.stickiness * np.eye(n_states)
        return HierarchicalChain(LearnedInitial(shared), DirichletRows(rows, np.zeros_like(rows)), hierarchy)


def _positive(name: str, given: Any) -> float:
    """A concentration as a number; one that is learned begins at 1."""
    value = 1.0 if given == LEARNED else given
    if not isinstance(value, (int, float, np.number)) or not 0.0 < value < np.inf:
        raise InputError(f"HDP: {name} must be a positive number or {LEARNED!r}, not {given!r}.")
    return float(value)
