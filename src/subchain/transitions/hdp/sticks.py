"""Stick breaking on both levels, with variational posteriors of all sticks (Zhang, Gultekin & Paisley 2016).

Row k is broken into sticks of its own: stick m has a Beta(a, b) posterior and points at state j with probability φ_kmj.
The sticks of the states at the top level have posteriors Beta(c, d). The remainder of a row after its last stick
follows the top level. The surrogate weight of the transition k → j is Σ_m φ_kmj exp E[log size_km] plus the remainder's
part. Expected transitions are divided among the sticks in proportion to these terms, so that expected transition counts
are all that the update needs.

The published update of φ uses how well the state that a stick points at explains the next observation, and thus ignores
all later observations. The update here uses the gain of all expected transitions to a state if the stick points at it,

    log φ_kmj = E[log top_j] + N_kj · log(1 + size_km / others_kj) + const,

where `others` is the weight of the transition from the other sticks and the remainder. The counts N come from forward
and backward messages, so they include later observations. All other steps increase the objective; this one may lower
it, rarely after the first iteration, and runs report when it does.

A sticky row is a mixture: with probability w ~ Beta(stickiness, concentration) it makes a self-transition, otherwise
one from the sticks. This is equivalent to a process whose base measure has an atom of mass `stickiness` at the row's
own state.

In stochastic inference the counts are running averages. Given the other sticks, log φ is linear in the counts, so that
averaging the counts averages log φ, as a natural-gradient step would; φ itself is recomputed.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, xlogy

from subchain.core.hyperparameters import states_differ
from subchain.core.ranges import FINITE, FRACTIONS, NOT_NEGATIVE, POSITIVE, RANKS, SUM_TOLERANCE, WHOLE_NUMBERS
from subchain.core.records import Record, array
from subchain.errors import InputError
from subchain.numerics import simplex
from subchain.transitions.base import Chain, ChainDefaults, ChainSums
from subchain.transitions.hdp.hierarchy import BOUNDS, LEAST_WEIGHT, ROUNDS, Hierarchy, by_size, in_order, tables_behind
from subchain.transitions.hdp.stick_kernels import count_dishes, share_transitions, update_pointers, weigh_transitions
from subchain.transitions.incremental import IncrementalChain

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Sticks with a smaller expected number of transitions are dropped, except for one spare stick per row.
IDLE = 0.1
#: Initial probability that a stick points at its state.
SURE = 0.9
#: Smallest remainder of a row: without a remainder some transitions would be impossible.
LEAST_REST = 1e-100
#: Largest size, in bytes, of the pointers of all sticks; further sticks are left to the remainder of the row.
MOST_BYTES = 160_000_000
#: Copies of the pointers that an iteration holds at once: prior, posterior, updated and reordered.
POINTERS = 4


class Sizes(NamedTuple):
    """Expected logs of the fractions of the rest of a row that sticks take and leave, and of their sizes; (R, M)."""

    taken: Array
    left: Array
    size: Array


class Shared(NamedTuple):
    """Expected transitions by origin: sticks (1 + K, M), remainder (1 + K, K), sticky self-transitions (K,)."""

    sticks: Array
    rest: Array
    stays: Array


@dataclasses.dataclass
class SticksChain(Record, ChainDefaults):
    """Posterior of all sticks; the same class for the prior with its current hyperparameters.

    Attributes
    ----------
    hierarchy : scalar hyperparameters
    points : (1 + K, M, K) pointers, the probability that each stick points at each state; row 0 is the initial one
    negentropy : (1 + K, M) Σ p log p of each pointer
    used : (1 + K,) number of sticks of each row
    a, b : (1 + K, M) parameters of the Beta posteriors of the rows' sticks
    c, d : (K,) parameters of the Beta posteriors of the states' sticks at the top
    order : (K,) rank of each state's stick at the top, from 0; the last takes the remainder
    stay, go : (K,) parameters of the Beta posteriors of sticky self-transitions; unused without stickiness
    """

    hierarchy: Hierarchy
    points: Array = array("RMK", FRACTIONS)
    negentropy: Array = array("RM", FINITE)
    used: Index = array("R", WHOLE_NUMBERS)
    a: Array = array("RM", POSITIVE)
    b: Array = array("RM", POSITIVE)
    c: Array = array("K", POSITIVE)
    d: Array = array("K", POSITIVE)
    order: Array = array("K", RANKS)
    stay: Array = array("K", NOT_NEGATIVE)
    go: Array = array("K", POSITIVE)

    def check_fields(self) -> None:
        if self.used.max() > self.a.shape[1] or (self.a.shape[1] and self.used.min() < 1):
            raise ValueError(f"rows of {self.a.shape[1]} sticks cannot use {self.used.min()} to {self.used.max()}")
        if (np.abs(self.points.sum(axis=2) - 1.0)[self._active] > SUM_TOLERANCE).any():
            raise ValueError("a stick in use points at states with probabilities that do not sum to 1")

    @property
    def is_learned(self) -> bool:
        return True

    @property
    def learns_top(self) -> bool:
        """Whether the number of states is learned."""
        return True

    @property
    def n_states(self) -> int:
        return len(self.c)

    def take(self, order: Index) -> Self:
        rows = np.append(0, 1 + order)
        return dataclasses.replace(
            self, points=self.points[rows][:, :, order], negentropy=self.negentropy[rows], used=self.used[rows],
            a=self.a[rows], b=self.b[rows], c=self.c[order], d=self.d[order], order=self.order[order],
            stay=self.stay[order], go=self.go[order],
        )  # fmt: skip

    # ---- expectations ------------------------------------------------------------------------------------------------

    @cached_property
    def _active(self) -> NDArray[np.bool_]:
        return np.arange(self.a.shape[1])[None] < self.used[:, None]

    @cached_property
    def _sizes(self) -> Sizes:
        whole = digamma(self.a + self.b)
        taken = np.where(self._active, digamma(self.a) - whole, -np.inf)
        left = np.where(self._active, digamma(self.b) - whole, 0.0)
        before = np.cumsum(left, axis=1) - left
        return Sizes(taken, left, taken + before + self._goes[:, None])

    @cached_property
    def _goes(self) -> Array:
        """E[log probability] that a transition of each row is not a sticky self-transition, (1 + K,)."""
        if self.hierarchy.stickiness == 0.0:
            return np.zeros(1 + self.n_states)
        return np.append(0.0, digamma(self.go) - digamma(self.stay + self.go))

    @cached_property
    def _stays(self) -> Array:
        """Weights of sticky self-transitions, (1 + K, K), on the diagonal of rows 1 to K."""
        out = np.zeros((1 + self.n_states, self.n_states))
        if self.hierarchy.stickiness > 0.0:
            np.einsum("jj->j", out[1:])[:] = np.exp(digamma(self.stay) - digamma(self.stay + self.go))
        return out

    @cached_property
    def _log_top(self) -> Array:
        """E[log weight] of each state at the top, (K,)."""
        inner = self.order < self.n_states - 1
        whole = digamma(self.c + self.d)
        taken = np.where(inner, digamma(self.c) - whole, 0.0)
        left = np.where(inner, digamma(np.where(inner, self.d, 1.0)) - whole, 0.0)
        return np.maximum(in_order(taken, left, self.order), np.log(LEAST_WEIGHT))

    @cached_property
    def _rest(self) -> Array:
        """Weights of the transitions from the remainder of each row, (1 + K, K)."""
        left = np.maximum(self._sizes.left.sum(axis=1) + self._goes, np.log(LEAST_REST))
        return np.asarray(np.exp(left[:, None] + self._log_top))

    @cached_property
    def _weights(self) -> Array:
        """exp E[log probability] of each first state (row 0) and transition, (1 + K, K)."""
        out = np.empty((1 + self.n_states, self.n_states))
        weigh_transitions(self.points, np.exp(self._sizes.size), self.used, self._rest + self._stays, out)
        return out

    @cached_property
    def _dishes(self) -> Array:
        """Expected number of sticks of each row that point at each state, (1 + K, K)."""
        out = np.empty((1 + self.n_states, self.n_states))
        count_dishes(self.points, self.used, out)
        return out

    # ---- updates -----------------------------------------------------------------------------------------------------

    def update(self, sums: ChainSums) -> SticksChain:
        """Return the posterior of the sticks' sizes given expected counts, with pointers and top level unchanged."""
        counts = np.maximum(np.vstack([sums.initial, sums.pairs]), 0.0)
        if not self.a.shape[1]:
            return self._begun(counts)
        shared = self._shared(counts)
        return self._broken(shared.sticks, shared.rest.sum(axis=1), shared.stays)

    def _shared(self, counts: Array) -> Shared:
        """Divide expected counts (1 + K, K) by origin, in proportion to the terms of each transition's weight."""
        shares = np.empty(self.a.shape)
        share_transitions(counts, self._weights, self.points, np.exp(self._sizes.size), self.used, shares)
        each = counts / self._weights
        return Shared(shares, each * self._rest, np.diagonal(each[1:] * self._stays[1:]))

    def _broken(self, shares: Array, rest: Array, stays: Array) -> SticksChain:
        """Return the Beta posteriors of the sticks' sizes.

        Parameters
        ----------
        shares : (1 + K, M) expected transitions made by each stick
        rest : (1 + K,) expected transitions made by the remainder of each row
        stays : (K,) expected sticky self-transitions
        """
        hierarchy, behind = self.hierarchy, np.cumsum(shares[:, ::-1], axis=1)[:, ::-1] - shares
        gone = (shares.sum(axis=1) + rest)[1:]
        return dataclasses.replace(
            self, a=1.0 + shares, b=hierarchy.concentration + behind + rest[:, None],
            stay=hierarchy.stickiness + stays, go=hierarchy.concentration + gone,
        )  # fmt: skip

    def begin(self, sums: ChainSums) -> SticksChain:
        """Return new sticks that point at the states in the order of each row's expected counts."""
        return self._begun(np.maximum(np.vstack([sums.initial, sums.pairs]), 0.0))

    def _begun(self, counts: Array) -> SticksChain:
        """Initialise the sticks from expected counts (1 + K, K): one per frequent transition, and a spare one."""
        n_rows, n_states = counts.shape
        stays = SURE * np.diagonal(counts[1:]) if self.hierarchy.stickiness > 0.0 else np.zeros(n_states)
        counts = counts - np.vstack([np.zeros(n_states), np.diag(stays)])
        used = np.minimum((counts > IDLE).sum(axis=1) + 1, most_sticks(n_states))
        width = int(used.max())
        targets = np.argsort(-counts, axis=1, kind="stable")[:, :width]
        points = np.full((n_rows, width, n_states), (1.0 - SURE) / max(n_states - 1, 1))
        np.put_along_axis(points, targets[:, :, None], SURE, axis=2)
        active = np.arange(width)[None] < used[:, None]
        shares = np.where(active, np.take_along_axis(counts, targets, axis=1), 0.0)
        doubt = (1.0 - SURE) / max(n_states - 1, 1)
        entropy = np.full((n_rows, width), xlogy(SURE, SURE) + (n_states - 1) * xlogy(doubt, doubt))
        begun = dataclasses.replace(self, points=points, negentropy=entropy, used=used, a=shares, b=shares)
        begun = begun._broken(shares, counts.sum(axis=1) - shares.sum(axis=1), stays)
        return begun._with_top(begun._dishes.sum(axis=0))

    def update_hyperparameters(self, sums: ChainSums, rate: float = 1.0) -> SticksChain:
        """Update the pointers, the sizes and order of the sticks, the top level, and then the concentrations."""
        counts = np.maximum(np.vstack([sums.initial, sums.pairs]), 0.0)
        found = self if self.a.shape[1] else self._begun(counts)
        found = found.pointed(counts).ordered(counts).topped(counts)
        hierarchy = dataclasses.replace(self.hierarchy, n_updates=self.hierarchy.n_updates + 1)
        if states_differ(sums.pairs, hierarchy.n_updates):
            if hierarchy.learns_concentration:
                hierarchy.concentration = found._best_concentration()
            if hierarchy.learns_top_concentration:
                hierarchy.top_concentration = found._best_top_concentration()
        return dataclasses.replace(found, hierarchy=hierarchy)

    def pointed(self, counts: Array) -> SticksChain:
        """Return the posterior with updated pointers (the equation for log φ above)."""
        points, negentropy, sizes = self.points.copy(), self.negentropy.copy(), np.exp(self._sizes.size)
        update_pointers(counts, sizes, self.used, self._rest + self._stays, self._log_top, points, negentropy)
        return dataclasses.replace(self, points=points, negentropy=negentropy)

    def ordered(self, counts: Array) -> SticksChain:
        """Return the posterior with updated sizes, the most used sticks first; idle sticks join the remainder."""
        shares, rest, stays = self._shared(counts)
        ranks = np.argsort(-shares, axis=1, kind="stable")
        shares = np.take_along_axis(shares, ranks, axis=1)
        used = np.minimum((shares > IDLE).sum(axis=1) + 1, most_sticks(self.n_states))
        width, had = int(used.max()), self.a.shape[1]
        idle = np.arange(had)[None] >= used[:, None]
        left = rest.sum(axis=1) + np.where(idle, shares, 0.0).sum(axis=1)
        every = np.arange(len(ranks))[:, None]
        points, negentropy = self.points[every, ranks[:, :width]], self.negentropy[every, ranks[:, :width]]
        kept = np.where(idle, 0.0, shares)[:, :width]
        if width > had:  # a row whose sticks are all in use gets a spare one
            points = np.pad(points, ((0, 0), (0, width - had), (0, 0)))
            negentropy, kept = (np.pad(table, ((0, 0), (0, width - had))) for table in (negentropy, kept))
        rows, sticks = np.nonzero(
            (np.arange(width)[None] >= self.used[:, None]) & (np.arange(width)[None] < used[:, None])
        )
        base = self._mean_top()
        points[rows, sticks], negentropy[rows, sticks] = base, xlogy(base, base).sum()
        found = dataclasses.replace(self, points=points, negentropy=negentropy, used=used, a=kept, b=kept)
        return found._broken(kept, left, stays)

    def topped(self, counts: Array) -> SticksChain:
        """Return the posterior with the top level updated for the pointers and the transitions of the remainders."""
        return self._with_top((self._dishes + self._shared(counts).rest).sum(axis=0))

    def _with_top(self, dishes: Array) -> SticksChain:
        """Return the posterior with the top level updated for numbers of sticks per state, (K,).

        The sticks at the top are ordered by size, unless the present order has a larger evidence.
        """
        same, sorted_ = (self._in_order(dishes, order) for order in (self.order, by_size(dishes)[0]))
        return sorted_ if sorted_._log_top_evidence() >= same._log_top_evidence() else same

    def _in_order(self, dishes: Array, order: Array) -> SticksChain:
        behind = self.hierarchy.top_concentration + tables_behind(dishes, order)
        return dataclasses.replace(self, c=1.0 + dishes, d=behind, order=order)

    def _log_top_evidence(self) -> float:
        """Return the log evidence of the pointers, up to a constant, with the sticks at the top integrated out."""
        inner = self.order < self.n_states - 1
        return float(betaln(self.c[inner], self.d[inner]).sum())

    def _best_concentration(self) -> float:
        """Return the concentration that maximises the bound given the rows' sticks and sticky self-transitions."""
        chosen, left = self._active.sum(), -self._sizes.left[self._active].sum() - self._goes.sum()
        value, stickiness = self.hierarchy.concentration, self.hierarchy.stickiness
        for _ in range(ROUNDS):
            went = self.n_states * value * (digamma(value + stickiness) - digamma(value))
            value = float(np.clip((chosen + went) / max(left, 1e-300), *BOUNDS))
        return value

    def _best_top_concentration(self) -> float:
        inner = self.order < self.n_states - 1
        left = (digamma(self.c + self.d) - digamma(self.d))[inner].sum()
        return float(np.clip((self.n_states - 1) / max(left, 1e-300), *BOUNDS))

    # ---- surrogates, points and divergences --------------------------------------------------------------------------

    def concentrations(self) -> tuple[Array, Array]:
        """Return concentrations (K,) and (K, K) of Dirichlet rows that approximate these, to rank merge proposals."""
        base = self.hierarchy.concentration * np.exp(self._log_top)
        return base, base + self.hierarchy.stickiness * np.eye(self.n_states)

    def expected_log(self) -> Chain:
        weights = self._weights
        return Chain(weights[0].copy(), weights[1:].copy())

    def log_surrogate(self) -> Chain:
        weights = np.log(self._weights)
        return Chain(weights[0], weights[1:])

    def mean(self) -> Chain:
        taken = np.where(self._active, self.a / (self.a + self.b), 0.0)
        sizes, left = _pieces(taken)
        out = np.empty_like(self._weights)
        weigh_transitions(self.points, sizes, self.used, left * self._mean_top(), out)
        return self._chain(out, self.stay / (self.stay + self.go))

    def _chain(self, table: Array, stays: Array) -> Chain:
        """Return the chain with rows ∝ `table` (1 + K, K) and sticky self-transitions of probability `stays` (K,)."""
        rows = simplex.normalized(table, 1)
        if self.hierarchy.stickiness == 0.0:
            return Chain(rows[0], rows[1:])
        return Chain(rows[0], (1.0 - stays)[:, None] * rows[1:] + np.diag(stays))

    mode = predictive = mean

    def _mean_top(self) -> Array:
        """Return exp E[log top], normalised to sum to one, (K,)."""
        return simplex.normalized(np.exp(self._log_top), 0)

    def sample(self, rng: np.random.Generator) -> Chain:
        broken = np.where(self._active, rng.beta(self.a, self.b), 0.0)
        sizes, left = _pieces(broken)
        table = left * self._mean_top()
        rows, sticks = np.nonzero(self._active)
        cumulative = np.cumsum(self.points[rows, sticks], axis=1)
        heights = rng.random((len(rows), 1)) * cumulative[:, -1:]
        targets = np.minimum((cumulative <= heights).sum(axis=1), self.n_states - 1)
        np.add.at(table, (rows, targets), sizes[rows, sticks])
        return self._chain(table, rng.beta(np.maximum(self.stay, LEAST_WEIGHT), self.go))

    def kl(self, prior: Any) -> float:
        """Return the Kullback-Leibler divergence of all sticks and pointers from their prior."""
        inner = self.order < self.n_states - 1
        concentration, stickiness = self.hierarchy.concentration, self.hierarchy.stickiness
        of_breaks = _beta_divergence(self.a, self.b, 1.0, concentration)[self._active].sum()
        of_top = _beta_divergence(self.c[inner], self.d[inner], 1.0, self.hierarchy.top_concentration).sum()
        of_points = self.negentropy[self._active].sum() - (self._dishes * self._log_top).sum()
        of_stays = _beta_divergence(self.stay, self.go, stickiness, concentration).sum() if stickiness > 0.0 else 0.0
        return float(of_breaks + of_top + of_points + of_stays)

    def log_hyperprior(self) -> float:
        return 0.0

    def log_density(self, chain: Chain) -> float:
        return 0.0

    def log_evidence(self, sums: ChainSums) -> float:
        """Return the log evidence of counts under Dirichlet rows that approximate these (`concentrations`)."""
        first, rows = self.concentrations()
        return simplex.log_evidence(first, sums.initial, axis=0) + simplex.log_evidence(rows, sums.pairs, axis=1)

    def n_free(self) -> int:
        return self.n_states**2 - 1

    def incremental(self, sums: ChainSums) -> IncrementalChain:
        return IncrementalChain(self, sums)

    def row_prior(self) -> Any:
        raise InputError("sticks cannot be summed out; use HDP(construction='collapsed') or construction='direct'.")


def _pieces(taken: Array) -> tuple[Array, Array]:
    """Return the sizes of sticks that take fractions `taken` (R, M), and the remainders (R, 1)."""
    left = np.concatenate((np.ones((len(taken), 1)), np.cumprod(1.0 - taken, axis=1)), axis=1)
    return taken * left[:, :-1], left[:, -1:]


def _beta_divergence(a: Array, b: Array, first: float, second: float) -> Array:
    """Return KL(Beta(a, b) ‖ Beta(first, second)), elementwise."""
    whole = digamma(a + b)
    return np.asarray(
        betaln(first, second) - betaln(a, b) + (a - first) * (digamma(a) - whole) + (b - second) * (digamma(b) - whole)
    )


def most_sticks(n_states: int) -> int:
    """Return the largest number of sticks of a row, such that all pointers fit into `MOST_BYTES`."""
    return min(n_states, max(1, MOST_BYTES // (8 * (1 + n_states) * n_states)))


def pointer_bytes(n_states: int) -> int:
    """Return the size in bytes of all pointers if every row has `most_sticks`."""
    return 8 * (1 + n_states) * most_sticks(n_states) * n_states


def no_sticks(hierarchy: Hierarchy, n_states: int) -> SticksChain:
    """Build the prior before the first counts: rows without sticks, and equal weights at the top level."""
    nothing = np.empty((1 + n_states, 0))
    rest = np.arange(n_states - 1.0, -1.0, -1.0)
    return SticksChain(
        hierarchy, np.empty((1 + n_states, 0, n_states)), nothing, np.zeros(1 + n_states, dtype=np.int64), nothing,
        nothing, np.ones(n_states), np.maximum(rest, 1e-12), np.arange(float(n_states)),
        np.full(n_states, hierarchy.stickiness), np.full(n_states, hierarchy.concentration),
    )  # fmt: skip
