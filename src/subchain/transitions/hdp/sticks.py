"""Two levels of sticks with posteriors on all of them (Zhang, Gultekin & Paisley 2016).

Every row is broken into sticks of its own, stick m of row k is Beta(a, b), and points at state j with probability
φ_kmj; the states' own sticks at the top are Beta(c, d). What is left of a row after its last stick follows the top
level. The surrogate of a move is Σ_m φ_kmj exp E[log size_km], and the rest; moves are shared among sticks in
proportion to what gives them their weight, which needs expected counts of moves and nothing else.

The published update of φ asks how well the state that a stick points at explains the next observation, and so forgets
all that comes after it. Here it asks what all counted moves to a state gain if the stick points at it,

    log φ_kmj = E[log top_j] + N_kj · log(1 + size_km / others_kj) + const,

`others` being what the other sticks and the rest give to the move. Counts come from forward and backward messages, so
they know the future. All other steps can only raise the objective; this one may lower it, hardly ever after the first
iteration, and a run tells when that happens.

A row that tends to stay is w of staying and 1 − w of sticks as above, w being Beta(stickiness, concentration): that is
the same as a process whose base has the stickiness for an atom, and needs no stick to point at the row's own state.

In stochastic inference the counts are running averages. Given what the other sticks give, the logarithm of φ is linear
in them, so that averaging counts averages it, as a step along its natural gradient would; φ itself is taken anew.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, xlogy

from subchain.core.hyperparameters import states_differ
from subchain.core.records import Record, states_on
from subchain.errors import InputError
from subchain.numerics import simplex
from subchain.transitions.base import Chain
from subchain.transitions.hdp.hierarchy import BOUNDS, LEAST_WEIGHT, ROUNDS, Hierarchy, by_size, in_order, tables_behind
from subchain.transitions.hdp.stick_kernels import count_dishes, point_anew, share_moves, weigh_moves
from subchain.transitions.incremental import IncrementalChain

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Sticks that are expected to be used less often are not kept, but for one that waits for work.
IDLE = 0.1
#: How surely sticks point at a state to begin with.
SURE = 0.9
#: What is left of a row does not fall below this: sticks that take all but nothing would make moves impossible.
LEAST_REST = 1e-100
#: Bytes that the pointers of all sticks may take; rows that need more sticks leave them to the rest.
MOST_BYTES = 160_000_000
#: Tables of pointers that an iteration holds at once: those of the prior and of the posterior, anew, and in order.
POINTERS = 4


class Sizes(NamedTuple):
    """Expected logarithms: of what sticks take of what is left, of what they leave, and of their sizes, each (R, M)."""

    taken: Array
    left: Array
    size: Array


class Shared(NamedTuple):
    """Counted moves by what they were made by: sticks, (1 + K, M), the rest, (1 + K, K), stays for their sake, (K,)."""

    sticks: Array
    rest: Array
    stays: Array


@dataclasses.dataclass
class SticksChain(Record):
    """Posterior of all sticks; the same class for the prior of the moment.

    Attributes
    ----------
    hierarchy : the numbers
    points : (1 + K, M, K) where the sticks of each row point; row 0 is that of the first states
    negentropy : (1 + K, M) Σ p log p of that, for each stick
    used : (1 + K,) number of sticks of each row
    a, b : (1 + K, M) the Beta posteriors of their breaks
    c, d : (K,) those of the states' sticks at the top
    order : (K,) which stick is a state's, from 0; the last takes what is left
    stay, go : (K,) the Beta posteriors of staying in a state for staying's sake; without stickiness nobody does
    """

    hierarchy: Hierarchy
    points: Array = states_on(2)
    negentropy: Array = states_on()
    used: Index = states_on()
    a: Array = states_on()
    b: Array = states_on()
    c: Array = states_on(0)
    d: Array = states_on(0)
    order: Array = states_on(0)
    stay: Array = states_on(0)
    go: Array = states_on(0)

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
        """E[log probability] that each row does not stay for staying's sake, (1 + K,)."""
        if self.hierarchy.stickiness == 0.0:
            return np.zeros(1 + self.n_states)
        return np.append(0.0, digamma(self.go) - digamma(self.stay + self.go))

    @cached_property
    def _stays(self) -> Array:
        """Weights of staying for staying's sake, (1 + K, K), on the diagonal of the moves."""
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
        """What is left of each row, as weights of states, (1 + K, K)."""
        left = np.maximum(self._sizes.left.sum(axis=1) + self._goes, np.log(LEAST_REST))
        return np.asarray(np.exp(left[:, None] + self._log_top))

    @cached_property
    def _weights(self) -> Array:
        """exp E[log probability] of each first state and move, (1 + K, K)."""
        out = np.empty((1 + self.n_states, self.n_states))
        weigh_moves(self.points, np.exp(self._sizes.size), self.used, self._rest + self._stays, out)
        return out

    @cached_property
    def _dishes(self) -> Array:
        """Expected sticks of each row that point at each state, (1 + K, K)."""
        out = np.empty((1 + self.n_states, self.n_states))
        count_dishes(self.points, self.used, out)
        return out

    # ---- steps -------------------------------------------------------------------------------------------------------

    def update(self, initial: Array, pairs: Array) -> SticksChain:
        """The posterior of the breaks given expected moves, which are shared among the sticks as they stand."""
        counts = np.maximum(np.vstack([initial, pairs]), 0.0)
        if not self.a.shape[1]:
            return self._begun(counts)
        shared = self._shared(counts)
        return self._broken(shared.sticks, shared.rest.sum(axis=1), shared.stays)

    def _shared(self, counts: Array) -> Shared:
        """Which of the counted moves were made by what."""
        shares = np.empty(self.a.shape)
        share_moves(counts, self._weights, self.points, np.exp(self._sizes.size), self.used, shares)
        each = counts / self._weights
        return Shared(shares, each * self._rest, np.diagonal(each[1:] * self._stays[1:]))

    def _broken(self, shares: Array, rest: Array, stays: Array) -> SticksChain:
        """Breaks given how often sticks were used, (1 + K, M), moves behind the last, (1 + K,), and stays, (K,)."""
        hierarchy, behind = self.hierarchy, np.cumsum(shares[:, ::-1], axis=1)[:, ::-1] - shares
        gone = (shares.sum(axis=1) + rest)[1:]
        return dataclasses.replace(
            self, a=1.0 + shares, b=hierarchy.concentration + behind + rest[:, None],
            stay=hierarchy.stickiness + stays, go=hierarchy.concentration + gone,
        )  # fmt: skip

    def begin(self, initial: Array, pairs: Array) -> SticksChain:
        """Sticks that point at the states in the order of how often each row went there; nothing else is remembered."""
        return self._begun(np.maximum(np.vstack([initial, pairs]), 0.0))

    def _begun(self, counts: Array) -> SticksChain:
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

    def update_hyperparameters(self, initial: Array, pairs: Array, rate: float = 1.0) -> SticksChain:
        """Sticks point anew, break anew, in the order of their use, and the top level follows."""
        counts = np.maximum(np.vstack([initial, pairs]), 0.0)
        found = self if self.a.shape[1] else self._begun(counts)
        found = found.pointed(counts).ordered(counts).topped(counts)
        hierarchy = dataclasses.replace(self.hierarchy, renewals=self.hierarchy.renewals + 1)
        if states_differ(pairs, hierarchy.renewals):
            if hierarchy.learns_concentration:
                hierarchy.concentration = found._best_concentration()
            if hierarchy.learns_top_concentration:
                hierarchy.top_concentration = found._best_top_concentration()
        return dataclasses.replace(found, hierarchy=hierarchy)

    def pointed(self, counts: Array) -> SticksChain:
        """Every stick in turn points where it is needed."""
        points, negentropy, sizes = self.points.copy(), self.negentropy.copy(), np.exp(self._sizes.size)
        point_anew(counts, sizes, self.used, self._rest + self._stays, self._log_top, points, negentropy)
        return dataclasses.replace(self, points=points, negentropy=negentropy)

    def ordered(self, counts: Array) -> SticksChain:
        """Breaks given how often the sticks are used, the most used first; idle ones are left to the rest."""
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
        if width > had:  # a row whose sticks are all in use gets another
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
        """The top level given what sticks point at, and moves that followed the rest."""
        return self._with_top((self._dishes + self._shared(counts).rest).sum(axis=0))

    def _with_top(self, dishes: Array) -> SticksChain:
        """The top level that these numbers of sticks speak for; the states take theirs by size unless that is worse."""
        same, sorted_ = (self._in_order(dishes, order) for order in (self.order, by_size(dishes)[0]))
        return sorted_ if sorted_._log_top_evidence() >= same._log_top_evidence() else same

    def _in_order(self, dishes: Array, order: Array) -> SticksChain:
        behind = self.hierarchy.top_concentration + tables_behind(dishes, order)
        return dataclasses.replace(self, c=1.0 + dishes, d=behind, order=order)

    def _log_top_evidence(self) -> float:
        """How probable it is that sticks point where they do, if the top level's posterior is the best one."""
        inner = self.order < self.n_states - 1
        return float(betaln(self.c[inner], self.d[inner]).sum())

    def _best_concentration(self) -> float:
        """The concentration that the breaks of the rows speak for, and how often they did not stay."""
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

    # ---- what inference asks for -------------------------------------------------------------------------------------

    def concentrations(self) -> tuple[Array, Array]:
        """Concentrations of Dirichlet rows that resemble these, for a first look at proposals."""
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
        weigh_moves(self.points, sizes, self.used, left * self._mean_top(), out)
        return self._chain(out, self.stay / (self.stay + self.go))

    def _chain(self, table: Array, stays: Array) -> Chain:
        """The chain that goes by a table, (1 + K, K), but for stays with these probabilities."""
        rows = simplex.normalized(table, 1)
        if self.hierarchy.stickiness == 0.0:
            return Chain(rows[0], rows[1:])
        return Chain(rows[0], (1.0 - stays)[:, None] * rows[1:] + np.diag(stays))

    mode = predictive = mean

    def _mean_top(self) -> Array:
        """What stands for the top level, (K,), sums to one."""
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
        """Divergence of all sticks, and of where they point, from what they were beforehand."""
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

    def log_evidence(self, initial: Array, pairs: Array) -> float:
        """That of counts under Dirichlet rows that resemble these."""
        first, rows = self.concentrations()
        return simplex.log_evidence(first, initial, axis=0) + simplex.log_evidence(rows, pairs, axis=1)

    def n_free(self) -> int:
        return self.n_states**2 - 1

    def incremental(self, initial: Array, pairs: Array) -> IncrementalChain:
        return IncrementalChain(self, initial, pairs)

    def row_prior(self) -> Any:
        raise InputError("sticks cannot be summed out; use HDP(construction='collapsed') or construction='direct'.")


def _pieces(taken: Array) -> tuple[Array, Array]:
    """Sizes of sticks that take such parts of what is left, and what is left in the end, (R, M) and (R, 1)."""
    left = np.concatenate((np.ones((len(taken), 1)), np.cumprod(1.0 - taken, axis=1)), axis=1)
    return taken * left[:, :-1], left[:, -1:]


def _beta_divergence(a: Array, b: Array, first: float, second: float) -> Array:
    """Kullback-Leibler divergence of Beta(a, b) from Beta(first, second)."""
    whole = digamma(a + b)
    return np.asarray(
        betaln(first, second) - betaln(a, b) + (a - first) * (digamma(a) - whole) + (b - second) * (digamma(b) - whole)
    )


def most_sticks(n_states: int) -> int:
    """The largest number of sticks of a row."""
    return min(n_states, max(1, MOST_BYTES // (8 * (1 + n_states) * n_states)))


def pointer_bytes(n_states: int) -> int:
    """Bytes that the pointers of all sticks take if every row has all that it may have."""
    return 8 * (1 + n_states) * most_sticks(n_states) * n_states


def no_sticks(hierarchy: Hierarchy, n_states: int) -> SticksChain:
    """Rows that are not broken yet, under a top level in which all states are alike."""
    nothing = np.empty((1 + n_states, 0))
    rest = np.arange(n_states - 1.0, -1.0, -1.0)
    return SticksChain(
        hierarchy, np.empty((1 + n_states, 0, n_states)), nothing, np.zeros(1 + n_states, dtype=np.int64), nothing,
        nothing, np.ones(n_states), np.maximum(rest, 1e-12), np.arange(float(n_states)),
        np.full(n_states, hierarchy.stickiness), np.full(n_states, hierarchy.concentration),
    )  # fmt: skip
