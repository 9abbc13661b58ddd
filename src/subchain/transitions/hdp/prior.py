"""The hierarchical Dirichlet process: as many states as the data ask for, up to a truncation.

All rows of moves, and the first states, share one distribution over states, which is itself unknown:

    top     ~ stick breaking with top_concentration
    row     ~ Dirichlet(concentration · top)          one a state, and row 0 for the first states

States that the data do not need lose their share at the top, and with it their place in every row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.errors import InputError, unknown_name
from subchain.transitions.base import TransitionPrior
from subchain.transitions.hdp.collapsed_top import WAYS, CollapsedChain
from subchain.transitions.hdp.direct import DirectChain, KnownTopChain
from subchain.transitions.hdp.hierarchy import HierarchicalChain, Hierarchy, begin
from subchain.transitions.hdp.sticks import POINTERS, SticksChain, no_sticks, pointer_bytes

Array = NDArray[np.float64]

#: Constructions, and the algorithms that each is for; the first that an algorithm is in is its own.
CONSTRUCTIONS = {
    "direct": ("vi", "svi"),
    "sticks": ("vi", "svi"),
    "collapsed": ("cvi", "scvi"),
    "drawn": ("beam",),
}
LEARNED = "learned"


class HDP(TransitionPrior):
    """Hierarchical Dirichlet process over the moves of a hidden chain; `n_states` is the largest number of states.

    Parameters
    ----------
    concentration : float or "learned", optional
        How closely rows follow their common parent: the larger, the more alike they are.
    top_concentration : float or "learned", optional
        How many states are expected: the larger, the more. Both are learned if they are left open and the parent is
        learned; else they are 1.
    construction : "auto", "direct", "sticks", "collapsed" or "drawn"
        How the hierarchy is represented: by a point at the top or by sticks on both levels (for `VI` and `SVI`), with
        the rows summed out (`CVI`, `SCVI`), or by draws (`Beam`); "auto" chooses by the algorithm.
    stickiness : float
        Added to the concentration of staying in a state.
    top : "learned", "uniform" or (K,)
        The parent itself: learned, or given (construction "direct").
    occurrence : "pairs", "exact", "mean_field" or "sampling"
        How `CVI` and `SCVI` find out how probable it is that a move happens at all. "pairs" is nearly exact and costs
        next to nothing; "exact" costs K⁴ a position.
    merges : bool
        Whether states that do the work of one are merged where that raises the objective.
    splits : bool
        Whether states that do the work of two are split where that raises the objective.
    frozen : bool
        Keep the chain of the start.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, HDP
    >>> x = [np.array([0, 0, 0, 1, 1, 1] * 10)] * 10
    >>> HMM(8, "categorical", HDP(), inference="cvi", random_state=0).fit(x).effective_states() < 8
    True
    """

    def __init__(
        self,
        concentration: Any = None,
        top_concentration: Any = None,
        construction: str = "auto",
        stickiness: float = 0.0,
        top: Any = LEARNED,
        occurrence: str = "pairs",
        merges: bool = True,
        splits: bool = True,
        frozen: bool = False,
    ) -> None:
        self.concentration = concentration
        self.top_concentration = top_concentration
        self.construction = construction
        self.stickiness = stickiness
        self.top = top
        self.occurrence = occurrence
        self.merges = merges
        self.splits = splits
        self.frozen = frozen

    @property
    def exact(self) -> bool:
        """Where sticks point is chosen by how one stick changes the objective while the others stay."""
        return self.construction != "sticks"

    @property
    def searches(self) -> bool:
        return bool(self.merges or self.splits)

    def held_bytes(self, n_states: int) -> int:
        return POINTERS * pointer_bytes(n_states) if self.construction == "sticks" else 0

    def suited_to(self, algorithm: str) -> HDP:
        if self.construction != "auto" and self.construction not in CONSTRUCTIONS:
            raise unknown_name("construction", self.construction, ("auto", *CONSTRUCTIONS))
        fitting = [name for name, algorithms in CONSTRUCTIONS.items() if algorithm in algorithms]
        if not fitting:
            known = sorted({name for algorithms in CONSTRUCTIONS.values() for name in algorithms})
            raise InputError(
                f"inference={algorithm!r} cannot learn a hierarchical prior; use one of {', '.join(known)}, or "
                "transition=Dirichlet(...)."
            )
        if self.occurrence in WAYS[1:] and algorithm not in CONSTRUCTIONS["collapsed"]:
            raise InputError(
                f"HDP: occurrence={self.occurrence!r} is for {' and '.join(CONSTRUCTIONS['collapsed'])}, not for "
                f"{algorithm}: other constructions do not ask. Leave it out."
            )
        if self.construction == "auto":
            return HDP(**(self.get_params(deep=False) | {"construction": fitting[0]}))
        if self.construction not in fitting:
            raise InputError(
                f"HDP: construction={self.construction!r} is for {' and '.join(CONSTRUCTIONS[self.construction])}, not "
                f"for {algorithm}; {algorithm} takes construction={' or '.join(map(repr, fitting))}."
            )
        return self

    def prior(self, n_states: int, *, flat: bool) -> HierarchicalChain | SticksChain:
        hierarchy = self._hierarchy(n_states)
        if not self._learns_top():
            return self._known_top(n_states, hierarchy)
        order, nothing = np.arange(float(n_states)), np.zeros(n_states)
        ones = np.ones(n_states)
        if self.construction == "drawn":
            drawn: HierarchicalChain = begin(KnownTopChain, hierarchy, n_states, top=np.ones(n_states))
            return drawn
        if self.construction == "sticks":
            return no_sticks(hierarchy, n_states)
        if self.construction == "direct":
            even = 1.0 / np.arange(n_states, 0, -1.0)  # sticks that make all states alike
            made = begin(DirectChain, hierarchy, n_states, top=even, order=order)
        else:
            rest = np.arange(n_states - 1.0, -1.0, -1.0) + hierarchy.top_concentration
            made = begin(
                CollapsedChain, hierarchy, n_states, u=ones, v=rest, order=order, first_surplus=nothing,
                pair_surplus=np.zeros((n_states, n_states)), way=WAYS.index(self.occurrence),
            )  # fmt: skip
        found: HierarchicalChain = made
        return found

    def _hierarchy(self, n_states: int) -> Hierarchy:
        """The numbers, checked."""
        if n_states < 2 and self.construction != "drawn":
            raise InputError("HDP: n_states is the largest number of states and must be at least 2, not 1.")
        for name in ("merges", "splits"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InputError(f"HDP: {name} must be True or False, not {getattr(self, name)!r}.")
        if self.occurrence not in WAYS:
            raise unknown_name("occurrence", self.occurrence, WAYS)
        numbers: dict[str, Any] = {}
        for name in ("concentration", "top_concentration", "stickiness"):
            given = getattr(self, name)
            if isinstance(given, str) and given == LEARNED and name != "stickiness":
                if self.frozen:
                    raise InputError(f"HDP: {name}='learned' and frozen=True contradict each other; drop one of them.")
                given = 1.0
            if given is None and name != "stickiness":
                given = 1.0
            is_number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
            least = "at least 0" if name == "stickiness" else "positive"
            if not is_number or not np.isfinite(given) or given < 0.0 or (given == 0.0 and name != "stickiness"):
                learned = "" if name == "stickiness" else ", or 'learned'"
                raise InputError(f"HDP: {name} must be a finite number, {least}{learned}, not {given!r}.")
            numbers[name] = float(given)
        return Hierarchy(
            **numbers,
            learns_concentration=self._learns("concentration"),
            learns_top_concentration=self._learns("top_concentration"),
            merges=bool(self.merges),
            splits=bool(self.splits),
        )

    def _learns(self, name: str) -> bool:
        """Whether a number is learned: if it is asked for, or left open in a hierarchy that is learned."""
        given = getattr(self, name)
        return self._learns_top() and not self.frozen if given is None else isinstance(given, str)

    def _learns_top(self) -> bool:
        return isinstance(self.top, str) and self.top == LEARNED

    def _known_top(self, n_states: int, hierarchy: Hierarchy) -> HierarchicalChain:
        if self.construction != "direct":
            raise InputError(f"HDP: top= is for construction='direct', not for {self.construction!r}.")
        if hierarchy.learns_top_concentration:
            raise InputError("HDP: top is given, so that nothing tells top_concentration='learned'; drop one of them.")
        top = _weights(self.top, n_states)
        made: HierarchicalChain = begin(KnownTopChain, hierarchy, n_states, top=top)
        return made


def _weights(given: ArrayLike, n_states: int) -> Array:
    if isinstance(given, str):
        if given != "uniform":
            raise unknown_name("top", given, (LEARNED, "uniform"))
        return np.ones(n_states)
    try:
        weights = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"HDP: top must be 'learned', 'uniform' or {n_states} numbers, not {given!r}.") from None
    if weights.shape != (n_states,) or not np.isfinite(weights).all() or not (weights > 0.0).all():
        raise InputError(f"HDP: top must hold {n_states} positive numbers, one for each state, not {given!r}.")
    return weights
