"""Dirichlet prior over each row of the transition matrix: the standard prior of a hidden chain.

Entries can be forbidden (`mask`: exact structural zeros) or fixed to a given probability. The remaining probability of
each row is distributed over its free entries, which have a Dirichlet prior; `stickiness` adds to the diagonal.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.ranges import FRACTIONS, NOT_NEGATIVE, SUM_TOLERANCE
from subchain.core.records import Record, array
from subchain.errors import InputError
from subchain.numerics import simplex
from subchain.transitions.base import Chain, ChainDefaults, ChainLaw, ChainSums, TransitionPrior
from subchain.transitions.final import AnyFinal, Final, final_of
from subchain.transitions.incremental import IncrementalDirichlet
from subchain.transitions.initial import Initial
from subchain.transitions.initial_settings import hyperparameter, initial_of
from subchain.transitions.layout import Layout, Square, band_of
from subchain.transitions.operators import Dense, TransitionOperator
from subchain.transitions.stationary_mode import TOO_MANY, UNSOLVED, StationaryRows
from subchain.transitions.sums import EMPTY, MOST_DENSE
from subchain.transitions.topology import checked_mask

if TYPE_CHECKING:
    from subchain.propagation.collapsed.rows import RowPrior

Array = NDArray[np.float64]


@dataclasses.dataclass
class DirichletRows(Record):
    """Independent Dirichlet distributions over the free entries of each row.

    Attributes
    ----------
    concentration : (K, K), zero where an entry is not free
    fixed : (K, K), the probabilities of fixed entries, zero elsewhere
    """

    concentration: Array = array("KK", NOT_NEGATIVE)
    fixed: Array = array("KK", FRACTIONS)

    def check_fields(self) -> None:
        total, free = self.fixed.sum(axis=1), self.free
        if (self.fixed[free] > 0.0).any() or (total > 1.0 + SUM_TOLERANCE).any():
            raise ValueError("fixed probabilities of a row sum to more than 1, or are learned")
        if (np.abs(total - 1.0)[~free.any(axis=1)] > SUM_TOLERANCE).any():
            raise ValueError("a row has no free entry, and its fixed probabilities do not sum to 1")

    @property
    def free(self) -> NDArray[np.bool_]:
        return self.concentration > 0.0

    @property
    def share(self) -> Array:
        """Total probability of the free entries of each row, (K, 1)."""
        return 1.0 - self.fixed.sum(axis=1, keepdims=True)

    def _matrix(self, parts: Array) -> Array:
        """Return the transition matrix whose free entries have the given parts, (K, K), of the free probability."""
        return np.where(self.free, self.share * parts, self.fixed)

    def update(self, pairs: Array) -> DirichletRows:
        return DirichletRows(np.where(self.free, self.concentration + pairs, 0.0), self.fixed)

    @cached_property
    def _moments(self) -> simplex.LogMoments:
        return simplex.log_moments(self.concentration, axis=1)

    def mean(self) -> Array:
        return self._matrix(simplex.normalized(self.concentration, axis=1))

    def mode(self) -> Array:
        return self._matrix(simplex.mode(self.concentration, axis=1))

    def expected_log(self) -> Array:
        return self._matrix(np.exp(self._moments.expected))

    def log_surrogate(self) -> Array:
        """Return log `expected_log`, (K, K), also where that underflows; −inf for impossible transitions."""
        return simplex.logs(np.where(self.free, self.share, self.fixed)) + self._moments.expected

    def sample(self, rng: np.random.Generator) -> Array:
        return self._matrix(simplex.draw(self.concentration, 1, rng))

    def kl(self, prior: DirichletRows) -> float:
        return simplex.divergence(self.concentration, self._moments, prior.concentration, prior._moments)

    def log_density(self, transition: Array) -> float:
        return simplex.log_density(self.concentration, transition / np.where(self.share > 0.0, self.share, 1.0))

    def log_evidence(self, pairs: Array) -> float:
        """Return the log probability of transition counts (K, K) with the free entries integrated out.

        It is −inf if an impossible transition has a positive count.
        """
        given = np.where(self.free, self.share, self.fixed)
        return simplex.log_evidence(self.concentration, pairs, axis=1) + simplex.log_weight(pairs, given)

    def n_free(self) -> int:
        return int(np.maximum(self.free.sum(axis=1) - 1, 0).sum())


@dataclasses.dataclass
class DirichletChain(Record, FixedHyperparameters, ChainDefaults):
    """Prior or posterior over the initial distribution, the transition matrix and how sequences end."""

    initial: Initial
    rows: DirichletRows
    final: Final = dataclasses.field(default_factory=AnyFinal, kw_only=True)

    def update(self, sums: ChainSums) -> DirichletChain:
        return DirichletChain(
            self.initial.update(sums.initial), self.rows.update(sums.pairs), final=self.final.update(sums)
        )

    def law(self, initial: Array, weights: Array) -> ChainLaw:
        """Return weights in the form of the rows as a chain."""
        return Chain(initial, weights)

    def moves(self, weights: Array) -> TransitionOperator:
        """Return weights in the form of the rows as an operator."""
        return Dense(weights)

    def mean(self) -> ChainLaw:
        weights = self.rows.mean()
        return self.final.closed(self.law(self.initial.mean(self.moves(weights)), weights), "mean")

    predictive = mean

    def mode(self) -> ChainLaw:
        weights = self.rows.mode()
        return self.final.closed(self.law(self.initial.mode(self.moves(weights)), weights), "mode")

    def next_mode(self, sums: ChainSums, previous: ChainLaw | None) -> tuple[ChainLaw, list[str]]:
        """Return the mode, given the counts that made this posterior and the chain before, and what was not exact.

        Rows that are never left keep what they were. In a stationary chain the first states depend on the transitions.
        """
        mode, unleft = self.mode(), sums.pairs.sum(axis=1) < EMPTY
        if previous is not None and unleft.any():
            mode.weights[unleft] = self.weights_of(previous)[unleft]
        if not self.initial.is_stationary:
            return mode, []
        if len(unleft) > MOST_DENSE:
            return mode, [TOO_MANY]
        rows = self.dense("first states that follow from the transitions").rows
        powers = np.where(rows.free, rows.concentration - 1.0, 0.0)
        problem = StationaryRows(powers, rows.free, rows.fixed, sums.initial)
        starts = [mode.transition] if previous is None else [mode.transition, previous.transition]
        start = max(starts, key=problem.value)
        best = problem.climb(start)
        weights = self.weights_of(Chain(mode.initial, start if best is None else best))
        found = mode.with_weights(self.initial.mode(self.moves(weights)), weights)
        return found, [UNSOLVED] if best is None else []

    def with_given_rows(self, states: NDArray[np.bool_], chain: ChainLaw) -> DirichletChain:
        """Return this prior with the transitions out of some states, (K,), fixed at those of a chain."""
        given, kept = self.weights_of(chain), states[:, None]
        rows = dataclasses.replace(
            self.rows,
            concentration=np.where(kept, 0.0, self.rows.concentration),
            fixed=np.where(kept, given, self.rows.fixed),
        )
        return dataclasses.replace(self, rows=rows)

    def dense(self, what: str) -> DirichletChain:
        """Return the same distribution with rows of all K entries; raise an `InputError` if there are too many."""
        return self

    def weights_of(self, chain: ChainLaw) -> Array:
        """Return the transition weights of a chain in the form of the rows."""
        return chain.transition

    def expected_log(self) -> ChainLaw:
        weights = self.rows.expected_log()
        long_run = self.rows.mean() if self.initial.is_stationary else weights  # other beginnings do not ask for it
        return self.final.closed(self.law(self.initial.expected_log(self.moves(long_run)), weights), "expected_log")

    def log_surrogate(self) -> ChainLaw:
        return self.law(self.initial.log_surrogate(self.moves(self.rows.mean())), self.rows.log_surrogate())

    def sample(self, rng: np.random.Generator) -> ChainLaw:
        weights = self.rows.sample(rng)
        return self.final.sampled(self.law(self.initial.sample(self.moves(weights), rng), weights), rng)

    def kl(self, prior: DirichletChain) -> float:
        return self.initial.kl(prior.initial) + self.rows.kl(prior.rows) + self.final.kl(prior.final)

    def log_density(self, chain: ChainLaw) -> float:
        of_first = self.initial.log_density(chain.initial)
        return of_first + self.rows.log_density(chain.weights) + self.final.log_density(chain)

    def log_evidence(self, sums: ChainSums) -> float:
        expected = self.moves(self.rows.update(sums.pairs).mean())
        of_first = self.initial.log_evidence(sums.initial, expected)
        return of_first + self.rows.log_evidence(sums.pairs) + self.final.log_evidence(sums)

    def n_free(self) -> int:
        return self.initial.n_free() + self.rows.n_free() + self.final.n_free()

    def concentrations(self) -> tuple[Array, Array]:
        """Return the concentrations of the first states, (K,), and of the transitions, (K, K)."""
        first = getattr(self.initial, "concentration", None)
        return (np.zeros(len(self.rows.concentration)) if first is None else first), self.rows.concentration

    def incremental(self, sums: ChainSums) -> IncrementalDirichlet:
        return IncrementalDirichlet(self, sums)

    def row_prior(self) -> RowPrior:
        """What is known of the rows beforehand, for counts of collapsed inference."""
        from subchain.propagation.collapsed.rows import RowPrior

        concentration, law = self.initial.row(self.rows.concentration.shape[1])
        return RowPrior(
            np.vstack((self.rows.concentration, concentration)),
            np.vstack((self.rows.fixed, law)),
            self.initial.is_stationary,
        )


class Dirichlet(TransitionPrior):
    """Dirichlet prior over each row of the transition matrix and over the initial distribution.

    Parameters
    ----------
    concentration : float or (K, K), optional
        Concentration of the rows; 1 by default, which is uniform and makes the mode the maximum-likelihood estimate.
    stickiness : float
        Added to the concentration of self-transitions.
    mask : (K, K) of bool, or a function of K, optional
        Allowed transitions; see `left_right`, `banded`, `cyclic`.
    fixed : (K, K), optional
        Known probabilities; nan where they are learned.
    initial : "learned", "stationary" or (K,)
        Distribution of the first state. "stationary" is the stationary distribution of the transition matrix. `EM`
        maximises the likelihood of such chains, with two exceptions, of which `fit` warns: more than 1024 states, and
        chains with parts that never meet. Variational inference takes the stationary distribution of the posterior
        mean, so that its bound is approximate and may decrease; `EM(batch=...)` takes that of the transitions' mode.
    initial_concentration : float or (K,), optional
        Concentration of the initial distribution; 1 by default.
    final : (K,) of bool, list of states, (K,) probabilities, or "learned", optional
        How sequences end. Booleans or a list: every sequence is known to end in one of these states. Numbers between 0
        and 1: after a position in state k the sequence ends with the given probability, and otherwise goes on.
        "learned": these probabilities are learned, with uniform priors, by `EM`, `VI` and `Gibbs` with sampled
        parameters. By default the end of a sequence says nothing about its states.
    frozen : bool or list of states
        Whether to keep the chain of the start (`init=` a model); of a list of states, the transitions out of these.

    Examples
    --------
    >>> from subchain.transitions import Dirichlet, left_right
    >>> prior = Dirichlet(mask=left_right(3), initial=[1, 0, 0]).prior(3, flat=False)
    >>> prior.mean().transition.round(3)
    array([[0.333, 0.333, 0.333],
           [0.   , 0.5  , 0.5  ],
           [0.   , 0.   , 1.   ]])
    """

    def __init__(
        self,
        concentration: Any = None,
        stickiness: float = 0.0,
        mask: ArrayLike | Callable[[int], NDArray[np.bool_]] | None = None,
        fixed: ArrayLike | None = None,
        initial: Any = "learned",
        initial_concentration: Any = None,
        frozen: Any = False,
        final: Any = None,
    ) -> None:
        self.concentration = concentration
        self.stickiness = stickiness
        self.mask = mask
        self.fixed = fixed
        self.initial = initial
        self.initial_concentration = initial_concentration
        self.frozen = frozen
        self.final = final

    @property
    def exact(self) -> bool:
        return not (isinstance(self.initial, str) and self.initial == "stationary")

    @property
    def states_are_exchangeable(self) -> bool:
        alike = all(np.ndim(given) == 0 for given in (self.concentration, self.initial_concentration))
        structured = self.mask is not None or self.fixed is not None or not isinstance(self.initial, str)
        return alike and not structured and not self.frozen

    def prior(self, n_states: int, *, flat: bool) -> DirichletChain:
        mask = checked_mask(self.mask, n_states)
        layout = band_of(mask) if mask is not None else None
        form: Square | Layout = Square(n_states) if layout is None else layout
        fixed, free = self._structure(mask, form)
        shape = (n_states, n_states)
        advice = " Use mask= to forbid transitions."
        concentration = form.gather(hyperparameter("concentration", self.concentration, shape, flat, advice))
        stickiness = np.asarray(self.stickiness, dtype=np.float64)
        if stickiness.ndim or not np.isfinite(stickiness) or stickiness < 0.0:
            raise InputError(f"stickiness must be a number of at least 0, not {self.stickiness!r}.")
        concentration = np.where(free, concentration + stickiness * form.diagonal(), 0.0)
        initial = initial_of(self.initial, self.initial_concentration, n_states, flat)
        final = final_of(self.final, n_states)
        if layout is None:
            return DirichletChain(initial, DirichletRows(concentration, fixed), final=final)
        from subchain.transitions.banded_rows import BandedDirichletChain, BandedRows

        return BandedDirichletChain(initial, BandedRows(concentration, fixed), layout.first, final=final)

    def _structure(self, mask: NDArray[np.bool_] | None, form: Square | Layout) -> tuple[Array, NDArray[np.bool_]]:
        """Fixed probabilities, and which entries are left to learn, in the given form."""
        n_states = form.n_states
        allowed = np.ones(form.shape, dtype=np.bool_) if mask is None else form.gather(mask)
        given = np.full(form.shape, np.nan)
        if self.fixed is not None:
            given = form.gather(self._fixed(mask, n_states))
        known = ~np.isnan(given)
        fixed = np.where(known, given, 0.0)
        free = allowed & ~known
        total = fixed.sum(axis=1)
        for row in range(n_states):
            if total[row] > 1.0 + 1e-9 or (not free[row].any() and abs(total[row] - 1.0) > 1e-9):
                raise InputError(f"the fixed probabilities of row {row} sum to {total[row]:.6g}, not to 1.")
        return fixed, free & (total < 1.0 - 1e-12)[:, None]

    def _fixed(self, mask: NDArray[np.bool_] | None, n_states: int) -> Array:
        """Probabilities that were given, (K, K)."""
        given = np.asarray(self.fixed, dtype=np.float64)
        if given.shape != (n_states, n_states):
            raise InputError(f"fixed has shape {given.shape}, but {n_states} states need {(n_states, n_states)}.")
        known = ~np.isnan(given)
        if (given[known] < 0.0).any() or (given[known] > 1.0).any():
            raise InputError("fixed transition probabilities must be between 0 and 1, or nan where they are learned.")
        forbidden = np.zeros_like(known) if mask is None else known & ~mask & (np.nan_to_num(given) > 0.0)
        if forbidden.any():
            row, column = np.argwhere(forbidden)[0]
            raise InputError(f"transition {row} → {column} is fixed to {given[row, column]} but the mask forbids it.")
        return given
