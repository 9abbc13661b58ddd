"""Low-rank transitions: each passes through one of f features, so that a step costs O(K f) instead of O(K²).

The matrix is a product of two stochastic factors, A[j, k] = Σ_h p(feature h | state j) · p(state k | feature h). The
feature of a transition is one more hidden variable: given the features, rows of both factors are multinomial, with
Dirichlet priors, and the forward-backward pass gives the expected counts of both. EM and variational inference are
therefore those of any HMM. (Low-rank transition matrices of HMMs: Siddiqi, Boots & Gordon, Reduced-Rank Hidden Markov
Models, 2010; the same form with a softmax for features: Chiu, Deng & Rush, Low-Rank Constraints for Fast Inference in
Structured Models, 2021.)
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.ranges import FRACTIONS, POSITIVE, SUM_TOLERANCE, probabilities
from subchain.core.records import Record, array
from subchain.errors import InputError
from subchain.numerics import simplex
from subchain.transitions.base import (
    ChainDefaults,
    ChainLaw,
    TransitionPrior,
    check_chain,
    check_distribution,
    numbers,
)
from subchain.transitions.incremental import IncrementalChain
from subchain.transitions.initial import Initial
from subchain.transitions.initial_settings import hyperparameter, initial_of
from subchain.transitions.operators import Factored
from subchain.transitions.sums import EMPTY, ChainSums, FactoredSums

Array = NDArray[np.float64]

#: Smallest entry of a factor. Products stay above `LEAST_TRANSITION` of `propagation.underflow`: every state leads to
#: every other, and nothing that underflows can matter later. Sums of rows and likelihoods do not change by it.
LEAST = 1e-45


@dataclasses.dataclass
class LowRankChain(Record):
    """The law of a hidden chain with low-rank transitions, or weights that stand in for it.

    Attributes
    ----------
    initial : (K,)
    weights : (K, 2, f) probability of each feature behind a state, `[j, 0, h]`, and of each state behind a feature,
        `[k, 1, h]`
    """

    initial: Array = array("K", probabilities())
    weights: Array = array("K2F", FRACTIONS)

    def check_fields(self) -> None:
        rows, columns = self.weights[:, 0].sum(axis=1), self.weights[:, 1].sum(axis=0)
        if (np.abs(rows - 1.0) > SUM_TOLERANCE).any() or (np.abs(columns - 1.0) > SUM_TOLERANCE).any():
            raise ValueError("the factors of the transitions do not sum to 1")
        if not self.weights.min(initial=1.0) >= LEAST:
            raise ValueError(f"the factors of the transitions hold entries below {LEAST:g}")

    @cached_property
    def operator(self) -> Factored:
        """The transition weights as an operator."""
        return Factored(self.weights)

    @property
    def transition(self) -> Array:
        """The transition matrix, (K, K)."""
        return self.operator.dense()

    @property
    def n_features(self) -> int:
        return self.weights.shape[2]

    def with_weights(self, initial: Array, weights: Array) -> LowRankChain:
        """Return a chain of the same form with other weights."""
        return LowRankChain(initial, weights)


def given_chain(initial: ArrayLike, transition: ArrayLike | Factored) -> ChainLaw:
    """Build a chain from given probabilities; raise an `InputError` that names the wrong row.

    Parameters
    ----------
    initial : (K,)
    transition : (K, K), or what `LowRank.from_parameters` returns
    """
    if not isinstance(transition, Factored):
        return check_chain(initial, transition)
    first = numbers("initial", initial)
    if first.shape != (transition.n_states,):
        raise InputError(f"initial has the shape {first.shape}, but the factors have {transition.n_states} states.")
    check_distribution("initial", first)
    return LowRankChain(first, transition.weights)


@dataclasses.dataclass
class LowRankDirichlet(Record, FixedHyperparameters, ChainDefaults):
    """Prior or posterior over the initial distribution and both factors.

    Attributes
    ----------
    initial : over first states
    concentration : (K, 2, f), Dirichlet distributions of the features of each state along the last axis of `[:, 0]`,
        and of the states of each feature along the first axis of `[:, 1]`
    """

    initial: Initial
    concentration: Array = array("K2F", POSITIVE)

    @property
    def n_features(self) -> int:
        return self.concentration.shape[2]

    @cached_property
    def operator(self) -> Factored:
        """The expected transitions, which initial distributions may ask for."""
        return Factored(self._halves(simplex.normalized))

    def _halves(self, function: Any, *more: Any) -> Array:
        """Return what a function of concentrations and an axis gives for both factors, (K, 2, f)."""
        halves = (function(self.concentration[:, side], 1 - side, *more) for side in (0, 1))
        return np.maximum(np.stack(tuple(halves), axis=1), LEAST)

    @cached_property
    def _moments(self) -> tuple[simplex.LogMoments, simplex.LogMoments]:
        return simplex.log_moments(self.concentration[:, 0], 1), simplex.log_moments(self.concentration[:, 1], 0)

    def own(self, sums: ChainSums) -> FactoredSums:
        """Return counts by features; raise an `InputError` for those of a matrix, which do not say what they are."""
        if not isinstance(sums, FactoredSums):
            raise InputError(
                "low-rank transitions are learned from the expected counts of both of their halves, and counts of "
                "pairs of states were given; an engine makes them by `accumulate` of the surrogate's transitions."
            )
        return sums

    def start(self, sums: ChainSums) -> FactoredSums:
        """Return guessed counts for a start; those of a matrix are divided among the features."""
        return sums if isinstance(sums, FactoredSums) else FactoredSums.of_matrix(sums, self.n_features)

    def update(self, sums: ChainSums) -> LowRankDirichlet:
        counts = self.own(sums)
        return LowRankDirichlet(self.initial.update(counts.initial), self.concentration + counts.pairs)

    def mean(self) -> LowRankChain:
        return LowRankChain(self.initial.mean(self.operator), self._halves(simplex.normalized))

    predictive = mean

    def mode(self) -> LowRankChain:
        return LowRankChain(self.initial.mode(self.operator), self._halves(simplex.mode))

    def next_mode(self, sums: ChainSums, previous: ChainLaw | None) -> tuple[LowRankChain, list[str]]:
        """Return the mode; rows of states that are never left, and of features that are never used, stay as before."""
        mode, counts = self.mode(), self.own(sums).pairs
        if isinstance(previous, LowRankChain):
            unleft, unused = counts[:, 0].sum(axis=1) < EMPTY, counts[:, 1].sum(axis=0) < EMPTY
            mode.weights[unleft, 0] = previous.weights[unleft, 0]
            mode.weights[:, 1, unused] = previous.weights[:, 1, unused]
        return mode, []

    def _expected_logs(self) -> Array:
        return np.stack(tuple(moments.expected for moments in self._moments), axis=1)

    def expected_log(self) -> LowRankChain:
        weights = np.maximum(np.exp(self._expected_logs()), LEAST)
        return LowRankChain(self.initial.expected_log(self.operator), weights)

    def log_surrogate(self) -> LowRankChain:
        return LowRankChain(self.initial.log_surrogate(self.operator), self._expected_logs())

    def sample(self, rng: np.random.Generator) -> LowRankChain:
        return LowRankChain(self.initial.sample(self.operator, rng), self._halves(simplex.draw, rng))

    def kl(self, prior: LowRankDirichlet) -> float:
        return self.initial.kl(prior.initial) + sum(
            simplex.divergence(self.concentration[:, side], ours, prior.concentration[:, side], theirs)
            for side, (ours, theirs) in enumerate(zip(self._moments, prior._moments, strict=True))
        )

    def log_density(self, chain: ChainLaw) -> float:
        return self.initial.log_density(chain.initial) + simplex.log_density(self.concentration, chain.weights)

    def log_evidence(self, sums: ChainSums) -> float:
        counts = self.own(sums)
        of_first = self.initial.log_evidence(counts.initial, self.update(counts).operator)
        return of_first + sum(
            simplex.log_evidence(self.concentration[:, side], counts.pairs[:, side], axis=1 - side) for side in (0, 1)
        )

    def n_free(self) -> int:
        n_states, _, n_features = self.concentration.shape
        return self.initial.n_free() + n_states * (n_features - 1) + n_features * (n_states - 1)

    def concentrations(self) -> tuple[Array, Array]:
        """Return the concentrations of the first states, (K,), and of both factors, (K, 2, f)."""
        first = getattr(self.initial, "concentration", None)
        return (np.zeros(len(self.concentration)) if first is None else first), self.concentration

    def incremental(self, sums: ChainSums) -> IncrementalChain:
        return IncrementalChain(self, self.own(sums))

    def dense(self, what: str) -> NoReturn:
        """Raise an `InputError`: a distribution over factors is none over matrices."""
        raise InputError(
            f"{what} needs a prior over whole transition matrices, and LowRank(features={self.n_features}) has one "
            "over their factors; use EM, VI, SVI or SCVI, or transition=Dirichlet()."
        )

    def row_prior(self) -> NoReturn:
        self.dense("collapsed inference")


class LowRank(TransitionPrior):
    """Transitions of low rank: a product of two factors, in O(K f) a step.

    Use it for many states. In an `HMM` both factors are stochastic and learned with Dirichlet priors, by `EM`, `VI`,
    `SVI` and `SCVI`. In a `NeuralHMM` they are functions of embeddings with positive features
    (Chiu, Deng & Rush 2021), and priors are not used.

    Parameters
    ----------
    features : int
        Number of features, f: the rank of the transition matrix is at most f.
    concentration : float, optional
        Concentration of the features of each state; 1 by default, which is uniform and makes the mode the
        maximum-likelihood estimate.
    feature_concentration : float, optional
        Concentration of the states of each feature; 1 by default.
    initial : "learned" or (K,)
        Distribution of the first state.
    initial_concentration : float or (K,), optional
        Concentration of the initial distribution; 1 by default.
    frozen : bool
        Whether to keep the chain of the start (`init=` a model).

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import EM, HMM, LowRank
    >>> x = np.random.default_rng(0).integers(0, 9, 500)
    >>> model = HMM(20, "categorical", LowRank(features=3), EM(max_iter=3, tolerance=0.0), random_state=0).fit(x)
    >>> [factor.shape for factor in model.point_.chain.operator.factors]
    [(20, 3), (3, 20)]
    """

    def __init__(
        self,
        features: int = 256,
        concentration: Any = None,
        feature_concentration: Any = None,
        initial: Any = "learned",
        initial_concentration: Any = None,
        frozen: Any = False,
    ) -> None:
        self.features = features
        self.concentration = concentration
        self.feature_concentration = feature_concentration
        self.initial = initial
        self.initial_concentration = initial_concentration
        self.frozen = frozen

    @staticmethod
    def from_parameters(left: ArrayLike, right: ArrayLike) -> Factored:
        """Build transitions from given factors, (K, f) and (f, K), for `HMM.from_parameters`.

        Rows of both sum to one. Zeros become 1e-45.

        Examples
        --------
        >>> from subchain import LowRank
        >>> LowRank.from_parameters([[1.0], [1.0]], [[0.25, 0.75]]).dense()
        array([[0.25, 0.75],
               [0.25, 0.75]])
        """
        out_of, into = numbers("left", left), numbers("right", right)
        if out_of.ndim != 2 or into.shape != out_of.shape[::-1]:
            raise InputError(
                f"the factors have the shapes {out_of.shape} and {into.shape}; expected (K, f) and (f, K)."
            )
        for name, table, column in (("left", out_of, "feature"), ("right", into, "state")):
            for number, row in enumerate(table):
                check_distribution(f"row {number} of the {name} factor", row, column)
        return Factored(np.maximum(np.stack((out_of, into.T), axis=1), LEAST))

    @property
    def exact(self) -> bool:
        return True

    @property
    def n_features(self) -> int:
        """Number of features; raises an `InputError` if it is none."""
        if isinstance(self.features, bool) or not isinstance(self.features, (int, np.integer)) or self.features < 1:
            raise InputError(f"features must be a whole number of at least 1, not {self.features!r}.")
        return int(self.features)

    def check_start(self, chain: ChainLaw) -> None:
        if not isinstance(chain, LowRankChain):
            raise InputError("init has a transition matrix, but LowRank needs a start with factors; leave init out.")
        if chain.n_features != self.n_features:
            raise InputError(f"init has {chain.n_features} features, but LowRank has features={self.n_features}.")

    def prior(self, n_states: int, *, flat: bool) -> LowRankDirichlet:
        if not isinstance(self.frozen, (bool, np.bool_)):
            raise InputError(
                f"LowRank: frozen must be True or False, not {self.frozen!r}: states share features, so that some of "
                "them cannot be kept."
            )
        if isinstance(self.initial, str) and self.initial == "stationary":
            raise InputError("LowRank learns first states or takes probabilities: initial='learned' or (K,) numbers.")
        n_features = self.n_features
        concentration = np.empty((n_states, 2, n_features))
        for side, name in enumerate(("concentration", "feature_concentration")):
            concentration[:, side] = hyperparameter(name, getattr(self, name), (), flat)
        return LowRankDirichlet(initial_of(self.initial, self.initial_concentration, n_states, flat), concentration)
