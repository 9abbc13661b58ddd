"""How sequences end: in any state, only in given states, or with a probability of ending that each state has.

Two models, both exact given the length of a sequence:

- *Final states.* A sequence of given length is known to end in one of a set of states. The likelihood is that of the
  observations and of this fact.
- *Probabilities of ending.* After each position the sequence ends with a probability e_k that depends on the state k
  only, and otherwise goes on by the transition matrix. This is the chain with an end symbol: ending competes with all
  transitions of a row, and the probabilities of all sequences of all lengths sum to one. With Beta priors the e_k are
  conjugate; their counts are the sequences that ended in k and the transitions out of k.

Both become two weights for each state, one of ending there (`final`) and one of going on (`onward`), which are evidence
about the states of positions: `final` at the last position of each sequence, `onward` at all others.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import FRACTIONS, POSITIVE
from subchain.core.records import Record, array
from subchain.errors import InputError
from subchain.numerics import simplex
from subchain.transitions.base import ChainLaw
from subchain.transitions.operators import TransitionOperator
from subchain.transitions.sums import ChainSums

Array = NDArray[np.float64]

LEARNED = "learned"


@dataclasses.dataclass
class EndingChain(Record):
    """A chain, and how its sequences end.

    Attributes
    ----------
    chain : initial distribution and transitions, given that the sequence goes on
    final : (K,) probability of ending after a position in each state; 1 or 0 for states that sequences may end in
    onward : (K,) probability of going on, 1 − `final`; 1 if only the last state is known
    """

    chain: ChainLaw
    final: Array = array("K", FRACTIONS)
    onward: Array = array("K", FRACTIONS)

    @property
    def initial(self) -> Array:
        return self.chain.initial

    @property
    def transition(self) -> Array:
        return self.chain.transition

    @property
    def weights(self) -> Array:
        return self.chain.weights

    @property
    def operator(self) -> TransitionOperator:
        """The transition weights as an operator, given that the sequence goes on."""
        return self.chain.operator

    def with_weights(self, initial: Array, weights: Array) -> EndingChain:
        return dataclasses.replace(self, chain=self.chain.with_weights(initial, weights))

    def unended(self) -> ChainLaw:
        """Return the chain of a sequence whose end is not known: rows sum to the probability of going on."""
        return self.chain.with_weights(self.initial, self.onward[:, None] * self.weights)


def unended(chain: ChainLaw) -> ChainLaw:
    """Return the chain of sequences whose end has not come, such as those that are continued or forecast."""
    return chain.unended() if isinstance(chain, EndingChain) else chain


def learns_ends(prior: Any) -> bool:
    """Return whether a prior over the chain learns the probabilities of ending."""
    return bool(getattr(getattr(prior, "final", None), "is_learned", False))


def closed(prior: Any, chain: ChainLaw) -> ChainLaw:
    """Return a chain with the ends that a prior over chains expects; the chain itself if that knows of none."""
    final: Any = getattr(prior, "final", None)
    found: ChainLaw = chain if final is None else final.closed(chain, "mean")
    return found


@dataclasses.dataclass
class AnyFinal(Record):
    """Sequences end anywhere, for no reason that the model knows: nothing to learn, no weights."""

    is_learned: ClassVar[bool] = False

    def closed(self, chain: ChainLaw, kind: str) -> ChainLaw:
        """Return the chain together with weights of the kind "mean", "mode" or "expected_log"."""
        return chain

    def sampled(self, chain: ChainLaw, rng: np.random.Generator) -> ChainLaw:
        """Return the chain together with drawn probabilities of ending."""
        return chain

    def update(self, sums: ChainSums) -> Any:
        return self

    def kl(self, prior: Any) -> float:
        return 0.0

    def log_density(self, chain: ChainLaw) -> float:
        return 0.0

    def log_evidence(self, sums: ChainSums) -> float:
        return 0.0

    def n_free(self) -> int:
        return 0


@dataclasses.dataclass
class GivenFinal(AnyFinal):
    """Given weights of ending and of going on, (K,) each, as in `EndingChain`."""

    final: Array = array("K", FRACTIONS)
    onward: Array = array("K", FRACTIONS)

    def closed(self, chain: ChainLaw, kind: str) -> ChainLaw:
        return EndingChain(chain, self.final, self.onward)

    def sampled(self, chain: ChainLaw, rng: np.random.Generator) -> ChainLaw:
        return self.closed(chain, "mean")


@dataclasses.dataclass
class LearnedFinal(AnyFinal):
    """Beta distribution over each state's probability of ending; `concentration` (K, 2) of ending and of going on."""

    is_learned: ClassVar[bool] = True
    concentration: Array = array("K2", POSITIVE)

    @cached_property
    def _moments(self) -> simplex.LogMoments:
        return simplex.log_moments(self.concentration, axis=1)

    def closed(self, chain: ChainLaw, kind: str) -> ChainLaw:
        if kind == "expected_log":
            return _ending(chain, np.exp(self._moments.expected))
        of = simplex.mode if kind == "mode" else simplex.normalized
        return _ending(chain, of(self.concentration, axis=1))

    def sampled(self, chain: ChainLaw, rng: np.random.Generator) -> ChainLaw:
        return _ending(chain, simplex.draw(self.concentration, 1, rng))

    def update(self, sums: ChainSums) -> LearnedFinal:
        return LearnedFinal(self.concentration + sums.ended())

    def kl(self, prior: Any) -> float:
        return simplex.divergence(self.concentration, self._moments, prior.concentration, prior._moments)

    def log_density(self, chain: ChainLaw) -> float:
        if not isinstance(chain, EndingChain):
            return 0.0  # a start that does not say how sequences end
        return simplex.log_density(self.concentration, np.stack((chain.final, chain.onward), axis=1))

    def log_evidence(self, sums: ChainSums) -> float:
        return simplex.log_evidence(self.concentration, sums.ended(), axis=1)

    def n_free(self) -> int:
        return len(self.concentration)


Final = AnyFinal | GivenFinal | LearnedFinal


def _ending(chain: ChainLaw, weights: Array) -> EndingChain:
    """Return a chain with weights (K, 2) of ending and of going on."""
    return EndingChain(chain, np.ascontiguousarray(weights[:, 0]), np.ascontiguousarray(weights[:, 1]))


def final_of(given: Any, n_states: int) -> Final:
    """Return the distribution over endings for the argument `final` of a prior; raise an `InputError` if it is wrong.

    Parameters
    ----------
    given : None, "learned", (K,) of bool, list of states, or (K,) probabilities of ending
    n_states : number of states

    Examples
    --------
    >>> final_of([2], 3).final
    array([0., 0., 1.])
    >>> final_of([0.0, 0.0, 0.2], 3).onward
    array([1. , 1. , 0.8])
    """
    if given is None:
        return AnyFinal()
    if isinstance(given, str) and given == LEARNED:
        return LearnedFinal(np.ones((n_states, 2)))
    entries = np.asarray(given)
    if entries.dtype == np.bool_ and entries.shape == (n_states,):
        allowed = entries
    elif entries.dtype.kind in "iu" and entries.ndim == 1:
        allowed = _listed(entries, n_states)
    elif entries.dtype.kind == "f" and entries.shape == (n_states,) and ((entries >= 0.0) & (entries <= 1.0)).all():
        allowed = entries > 0.0
    else:
        raise InputError(
            f"final must be 'learned', a list of the states that sequences end in, {n_states} values True or False, "
            f"or {n_states} probabilities of ending between 0 and 1; got {given!r}."
        )
    if not allowed.any():
        raise InputError(f"final={given!r} leaves no state in which a sequence can end; allow at least one.")
    if entries.dtype.kind == "f":
        return GivenFinal(entries.astype(np.float64), 1.0 - entries)
    return GivenFinal(allowed.astype(np.float64), np.ones(n_states))


def _listed(states: NDArray[Any], n_states: int) -> NDArray[np.bool_]:
    """Return which states are in a list of them, (K,)."""
    outside = states[(states < 0) | (states >= n_states)]
    if outside.size:
        raise InputError(f"final names state {outside[0]}, but the states are 0 to {n_states - 1}.")
    if n_states > 1 and len(states) == n_states and states.max() <= 1:
        raise InputError(
            f"final={states.tolist()} may be a list of states or one entry for each of {n_states} states; write True "
            "and False for entries, or name each state once."
        )
    allowed = np.zeros(n_states, dtype=np.bool_)
    allowed[states] = True
    return allowed
