"""The hierarchy above the transitions of an infinite hidden Markov model, drawn given counts.

All rows of transitions are draws around common top weights, of which the states in use have some and all others,
possibly endlessly many, share the rest. Of n_all states each has top_concentration / n_all of a Dirichlet prior;
without end this is the Dirichlet process. Given the counts of transitions, the metaphor is a franchise of restaurants
(Teh et al. 2006): a row is a restaurant, a transition is a customer, and new tables choose their dish, the state, by
the top weights. Numbers of tables are drawn given the counts, top weights given the numbers of tables, rows given the
top weights.

Chains that tend to stay (Fox et al. 2011) serve the house's own dish more often than the top weights say. Which tables
do so for this reason alone is drawn too, and these tables say nothing of the top weights.

Concentrations c that are learned have a Gamma prior. n customers at m tables have a probability proportional to
cᵐ Γ(c) / Γ(c + n), and Γ(c) / Γ(c + n) is proportional to the integral of wᶜ⁻¹ (1 − w)ⁿ⁻¹; with w drawn too, the
concentration is a Gamma variable again (the idea of Escobar and West 1995).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.core.ranges import SUM_TOLERANCE, Range, stored
from subchain.errors import FileFormatError
from subchain.numerics.simplex import draw_uneven, log_evidence, log_gammas
from subchain.propagation.beam import seat

Array = NDArray[np.float64]


class Hyperprior(NamedTuple):
    """Which concentrations are learned, and shape and rate of their Gamma prior."""

    learns_concentration: bool
    learns_top_concentration: bool
    shape: float
    rate: float


class Top(NamedTuple):
    """What is above the rows.

    Attributes
    ----------
    weights : (K,) of the states
    rest : weight of all states that are not among these
    n_all : how many states there are in all, or infinity
    concentration, top_concentration, stickiness : of the rows, of the weights, of staying in a state
    """

    weights: Array
    rest: float
    n_all: float
    concentration: float
    top_concentration: float
    stickiness: float

    @property
    def n_states(self) -> int:
        return len(self.weights)

    def restored(self, memory: Memory, name: str) -> Top:
        """Return what a run with the same settings has stored; raise a `FileFormatError` if it is out of range."""
        numbers = stored(memory, name, Range(least=0.0, allows_infinity=True), (None,))
        found = Top(numbers[:-5], *numbers[-5:].tolist()) if len(numbers) > 5 else self
        is_whole = abs(found.weights.sum() + found.rest - 1.0) <= SUM_TOLERANCE
        finite = min(found.concentration, found.top_concentration) > 0.0 and math.isfinite(sum(found[3:]))
        if found is self or not (is_whole and finite and found.n_states <= found.n_all == self.n_all):
            raise FileFormatError(f"{name} does not hold weights of states that sum to 1, and what is above them")
        return found

    def rows(self) -> Array:
        """Concentrations of all rows, (K + 1, K + 1): row K for first states, column K for all other states."""
        shared = self.concentration * np.append(self.weights, self.rest)
        rows = np.tile(shared, (self.n_states + 1, 1))
        staying = np.arange(self.n_states)
        rows[staying, staying] += self.stickiness
        return rows

    def log_evidence(self, counts: Array) -> float:
        """Log probability of counted transitions (K + 1, K), first states in row K, the rows being summed out."""
        return log_evidence(self.rows(), np.pad(counts, ((0, 0), (0, 1))), axis=1)


# ---- rows ------------------------------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """Rows that were drawn: `moves` (K + 1, K), and what each leaves for states that are not there yet, (K + 1,)."""

    moves: Array
    leftover: Array


def draw_rows(top: Top, counts: Array, rng: np.random.Generator) -> Drawn:
    """All rows given counts of transitions (K + 1, K)."""
    drawn = draw_uneven(top.rows() + np.pad(counts, ((0, 0), (0, 1))), rng)
    return Drawn(drawn[:, :-1], drawn[:, -1])


def extend(top: Top, rows: Drawn, n: int, rng: np.random.Generator) -> tuple[Top, Drawn]:
    """Break at most n more states off what is left at the top and in every row.

    They come in the order of a lottery in which weights are chances, so that those that matter come first.
    """
    others = top.n_all - top.n_states - np.arange(1.0, min(n, top.n_all - top.n_states) + 1.0)
    if math.isinf(top.n_all):
        broken = rng.beta(1.0, top.top_concentration, n)
    else:
        share = top.top_concentration / top.n_all
        broken = np.where(others > 0.0, rng.beta(1.0 + share, share * np.maximum(others, 1.0)), 1.0)
    left = np.cumprod(1.0 - broken)
    fresh = top.rest * broken * np.append(1.0, left[:-1])
    wider = top._replace(weights=np.append(top.weights, fresh), rest=top.rest * float(left[-1]))
    shares = draw_uneven(np.tile(top.concentration * np.append(fresh, wider.rest), (len(rows.moves), 1)), rng)
    old = np.hstack((rows.moves, rows.leftover[:, None] * shares[:, :-1]))
    new = draw_uneven(wider.rows()[top.n_states : -1], rng)
    moves = np.vstack((old[:-1], new[:, :-1], old[-1:]))
    leftover = rows.leftover * shares[:, -1]
    return wider, Drawn(moves, np.concatenate((leftover[:-1], new[:, -1], leftover[-1:])))


# ---- the top ---------------------------------------------------------------------------------------------------------


def redraw(
    top: Top, counts: Array, hyperprior: Hyperprior, key: NDArray[np.unsignedinteger], sweep: int, first: int,
    rng: np.random.Generator,
) -> Top:  # fmt: skip
    """Tables given counts of transitions (K + 1, K), then concentrations and top weights given tables.

    Parameters
    ----------
    key, sweep, first : which random numbers `propagation.beam.seat` uses
    """
    tables = np.empty(counts.shape)
    seat(counts, top.rows()[:, :-1], key, sweep, first, tables)
    chosen = tables - _stayed(top, tables, rng)
    served = chosen.sum(axis=0)
    if hyperprior.learns_concentration:
        totals = np.full(len(counts), top.concentration)
        totals[:-1] += top.stickiness
        sigma = _draw_concentration(totals, counts.sum(axis=1), chosen.sum(), hyperprior, rng)
        top = top._replace(concentration=sigma)
    shares = np.full(top.n_states + 1, 1.0 / top.n_all)
    shares[-1] = 1.0 - top.n_states / top.n_all
    if hyperprior.learns_top_concentration:
        dishes = np.empty((1, top.n_states))
        seat(served[None], top.top_concentration * shares[None, :-1], key, sweep, first + int(counts.sum()), dishes)
        total, customers = np.array([top.top_concentration]), np.array([served.sum()])
        gamma = _draw_concentration(total, customers, dishes.sum(), hyperprior, rng)
        top = top._replace(top_concentration=gamma)
    weights = draw_uneven(top.top_concentration * shares + np.append(served, 0.0), rng)
    return top._replace(weights=weights[:-1], rest=float(weights[-1]))


def _stayed(top: Top, tables: Array, rng: np.random.Generator) -> Array:
    """Tables (K + 1, K) that serve the house's own dish because it is that."""
    stayed = np.zeros(tables.shape)
    if top.stickiness > 0.0:
        own = np.arange(top.n_states)
        share = top.stickiness / (top.stickiness + top.concentration * top.weights)
        stayed[own, own] = rng.binomial(tables[own, own].astype(np.int64), share)
    return stayed


def _draw_concentration(
    totals: Array, customers: Array, n_tables: float, hyperprior: Hyperprior, rng: np.random.Generator
) -> float:
    """A concentration given that so many customers opened so many tables.

    Parameters
    ----------
    totals : (J,) concentration of each restaurant before, what never changes included
    customers : (J,)
    n_tables : those whose number speaks of the concentration
    """
    used = customers > 0.0
    ours, theirs = log_gammas(totals[used], rng), log_gammas(customers[used], rng)
    rate = hyperprior.rate - (ours - np.logaddexp(ours, theirs)).sum()
    return float(rng.standard_gamma(hyperprior.shape + n_tables) / rate)
