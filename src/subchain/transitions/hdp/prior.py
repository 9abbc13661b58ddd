"""Hierarchical Dirichlet process prior: the number of states is learned, up to a truncation.

The initial distribution and all transition rows share a parent distribution over states, which is learned:

    top     ~ stick breaking with top_concentration
    row     ~ Dirichlet(concentration · top)          one per state, and row 0 for the initial distribution

The weight at the top of states that the data do not need goes to zero, and with it their probability in every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.parts import Treatment
from subchain.errors import InputError, unknown_name
from subchain.transitions.base import TransitionPrior, UnsuitedPriorError
from subchain.transitions.final import Final, final_of
from subchain.transitions.hdp.collapsed_top import OCCURRENCE_METHODS, CollapsedChain
from subchain.transitions.hdp.direct import DirectChain, KnownTopChain
from subchain.transitions.hdp.hierarchy import HierarchicalChain, Hierarchy, begin
from subchain.transitions.hdp.sticks import POINTERS, SticksChain, no_sticks, pointer_bytes
from subchain.transitions.topology import checked_mask

Array = NDArray[np.float64]

#: Constructions, and the treatment of transition rows that each is for; "auto" is the first for a treatment.
CONSTRUCTIONS: dict[str, Treatment] = {
    "direct": "variational",
    "sticks": "variational",
    "collapsed": "collapsed",
    "drawn": "drawn",
}
#: Description of each treatment, for error messages.
TREATMENTS: dict[Treatment, str] = {
    "variational": "keeps a variational posterior of the transition rows",
    "collapsed": "integrates the transition rows out",
    "drawn": "draws the transition rows",
}
LEARNED = "learned"


class HDP(TransitionPrior):
    """Hierarchical Dirichlet process prior over the transition matrix; `n_states` is the largest number of states.

    Parameters
    ----------
    concentration : float or "learned", optional
        Concentration of the transition rows around their common parent: the larger, the more similar the rows. By
        default learned if the parent is learned, else 1.
    top_concentration : float or "learned", optional
        Concentration of the parent's stick-breaking prior: the larger, the more states are expected. By default learned
        if the parent is learned, else 1.
    construction : "auto", "direct", "sticks", "collapsed" or "drawn"
        Representation of the hierarchy: a point estimate of the parent ("direct") or sticks on both levels ("sticks"),
        both for variational inference; rows integrated out ("collapsed", for collapsed inference); or draws ("drawn",
        for samplers). "auto" chooses by the algorithm.
    stickiness : float
        Added to the concentration of self-transitions.
    top : "learned", "uniform" or (K,)
        The parent distribution: learned, or given (construction "direct" only).
    occurrence : "pairs", "exact", "mean_field" or "sampling"
        Method by which collapsed inference computes the probability that a transition occurs at least once. "pairs" is
        nearly exact and almost free; "exact" takes O(K⁴) per position.
    merges : bool
        Whether runs merge redundant states where that raises the objective.
    splits : bool
        Whether runs split states where that raises the objective.
    frozen : bool
        Whether to keep the chain of the start (`init=` a model).
    mask : (K, K) of bool, or a function of K, optional
        Allowed transitions, as in `Dirichlet`; the others have probability zero. States then differ before the data
        are seen, so that runs neither merge nor split them. Not for `construction="sticks"` and `Beam`.
    final : optional
        How sequences end, as in `Dirichlet`; the same restrictions hold.

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
        mask: ArrayLike | Callable[[int], NDArray[np.bool_]] | None = None,
        final: Any = None,
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
        self.mask = mask
        self.final = final

    @property
    def exact(self) -> bool:
        """False for "sticks": the update of a pointer takes the other sticks as fixed and may lower the objective."""
        return self.construction != "sticks"

    @property
    def searches(self) -> bool:
        return bool(self.merges or self.splits) and not self._tells_states_apart()

    def _tells_states_apart(self) -> bool:
        """Return whether states have roles of their own beforehand, by a mask or by how sequences end."""
        return self.mask is not None or self.final is not None

    def held_bytes(self, n_states: int) -> int:
        return POINTERS * pointer_bytes(n_states) if self.construction == "sticks" else 0

    def suited_to(self, treatment: Treatment | None) -> HDP:
        if self.construction != "auto" and self.construction not in CONSTRUCTIONS:
            raise unknown_name("construction", self.construction, ("auto", *CONSTRUCTIONS))
        if treatment is None:
            need = "HDP: a hierarchical prior needs an algorithm that learns the parent of the transition rows."
            raise UnsuitedPriorError(need, tuple(TREATMENTS), "use transition=Dirichlet(...)")
        if self.occurrence in OCCURRENCE_METHODS[1:] and treatment != "collapsed":
            need = f"HDP: occurrence={self.occurrence!r} needs an algorithm that {TREATMENTS['collapsed']}."
            raise UnsuitedPriorError(need, ("collapsed",), "leave occurrence out")
        fitting = [name for name, needed in CONSTRUCTIONS.items() if needed == treatment]
        if self.construction == "auto":
            return HDP(**(self.get_params(deep=False) | {"construction": fitting[0]}))
        if self.construction not in fitting:
            needed = CONSTRUCTIONS[self.construction]
            need = f"HDP: construction={self.construction!r} needs an algorithm that {TREATMENTS[needed]}."
            raise UnsuitedPriorError(need, (needed,), f"set construction={' or '.join(map(repr, fitting))}")
        return self

    def prior(self, n_states: int, *, flat: bool) -> HierarchicalChain | SticksChain:
        hierarchy, mask = self._hierarchy(n_states), checked_mask(self.mask, n_states)
        allowed = np.ones((n_states, n_states), dtype=np.bool_) if mask is None else mask
        final = final_of(self.final, n_states)
        if not self._learns_top():
            return self._known_top(n_states, hierarchy, allowed, final)
        if self.construction in ("drawn", "sticks") and self._tells_states_apart():
            raise InputError(
                f"HDP: mask and final need a construction with a fixed set of states, 'direct' or 'collapsed', not "
                f"{self.construction!r}; use VI, SVI, CVI or SCVI, or transition=Dirichlet(mask=...)."
            )
        order, nothing = np.arange(float(n_states)), np.zeros(n_states)
        ones = np.ones(n_states)
        if self.construction == "drawn":
            drawn: HierarchicalChain = begin(KnownTopChain, hierarchy, allowed, top=np.ones(n_states))
            return drawn
        if self.construction == "sticks":
            return no_sticks(hierarchy, n_states)
        if self.construction == "direct":
            even = 1.0 / np.arange(n_states, 0, -1.0)  # sticks that give all states the same weight
            made = begin(DirectChain, hierarchy, allowed, top=even, order=order, final=final)
        else:
            rest = np.arange(n_states - 1.0, -1.0, -1.0) + hierarchy.top_concentration
            made = begin(
                CollapsedChain, hierarchy, allowed, u=ones, v=rest, order=order, first_surplus=nothing,
                pair_surplus=np.zeros((n_states, n_states)), method=OCCURRENCE_METHODS.index(self.occurrence),
                final=final,
            )  # fmt: skip
        found: HierarchicalChain = made
        return found

    def _hierarchy(self, n_states: int) -> Hierarchy:
        """Return the scalar hyperparameters; raise an `InputError` if a setting is invalid."""
        if n_states < 2 and self.construction != "drawn":
            raise InputError("HDP: n_states is the largest number of states and must be at least 2, not 1.")
        for name in ("merges", "splits", "frozen"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InputError(f"HDP: {name} must be True or False, not {getattr(self, name)!r}.")
        if self.occurrence not in OCCURRENCE_METHODS:
            raise unknown_name("occurrence", self.occurrence, OCCURRENCE_METHODS)
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
            merges=bool(self.merges) and self.searches,
            splits=bool(self.splits) and self.searches,
        )

    def _learns(self, name: str) -> bool:
        """Return whether a concentration is learned: if set to "learned", or left open with a learned parent."""
        given = getattr(self, name)
        return self._learns_top() and not self.frozen if given is None else isinstance(given, str)

    def _learns_top(self) -> bool:
        return isinstance(self.top, str) and self.top == LEARNED

    def _known_top(
        self, n_states: int, hierarchy: Hierarchy, allowed: NDArray[np.bool_], final: Final
    ) -> HierarchicalChain:
        if self.construction != "direct":
            raise InputError(
                f"HDP: a given top= needs construction='direct', which is for variational inference; the construction "
                f"is {self.construction!r}."
            )
        if hierarchy.learns_top_concentration:
            raise InputError(
                "HDP: top is given, so top_concentration='learned' cannot be learned from anything; drop one of them."
            )
        top = _weights(self.top, n_states)
        made: HierarchicalChain = begin(KnownTopChain, hierarchy, allowed, top=top, final=final)
        return made


def _weights(given: ArrayLike, n_states: int) -> Array:
    """Return the given weights of the states at the top, (K,); raise an `InputError` if they are invalid."""
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
