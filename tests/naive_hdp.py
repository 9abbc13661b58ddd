"""Slow, obviously right versions of what hierarchical priors ask of marginals: whether moves happen, and tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import naive
import naive_cvi
import numpy as np
from naive_collapsed import Problem, Table
from numpy.typing import NDArray
from scipy.special import digamma, gammaln
from scipy.stats import beta

Array = NDArray[np.float64]
Path = tuple[int, ...]


def pair_marginals(alpha: Array, weighted: Array, transition: Array) -> Array:
    """Probability (T − 1, K, K) of neighbouring pairs from messages (T, K) of one chain."""
    return alpha[:-1, :, None] * transition * weighted[1:, None, :]


def pairs_occurrence(pairs: Array) -> Array:
    """−Σ log(1 − q) over pair marginals (T − 1, K, K)."""
    return -np.log1p(-np.minimum(pairs, 1.0 - 1e-12)).sum(axis=0)


def chain_paths(log_likelihood: Array, initial: Array, transition: Array) -> Iterator[tuple[Path, float]]:
    """Every path of a chain with its probability given the observations."""
    paths, joint = naive.all_paths(log_likelihood, initial, transition)
    for path, probability in zip(paths, np.exp(joint - naive.log_sum(joint)), strict=True):
        yield tuple(path), float(probability)


def independent_paths(marginals: Array) -> Iterator[tuple[Path, float]]:
    """Every path of positions (T, K) that know nothing of each other, with its probability."""
    for path in itertools.product(range(marginals.shape[1]), repeat=len(marginals)):
        yield path, float(np.prod(marginals[np.arange(len(marginals)), path]))


def absent(paths: Iterator[tuple[Path, float]], n_states: int) -> Array:
    """Probability (K, K) that a move is on none of the path's steps."""
    out = np.zeros((n_states, n_states))
    for path, probability in paths:
        seen = np.zeros((n_states, n_states), dtype=bool)
        seen[list(path[:-1]), list(path[1:])] = True
        out += np.where(seen, 0.0, probability)
    return out


def simulated_paths(first: Array, moves: Array) -> Iterator[tuple[Path, float]]:
    """Every path of a Markov chain, `first` (K,) and `moves` (T − 1, K, K), with its probability."""
    for path in itertools.product(range(len(first)), repeat=len(moves) + 1):
        steps = [moves[t, j, k] for t, (j, k) in enumerate(itertools.pairwise(path))]
        yield path, float(first[path[0]] * np.prod(steps))


# ---- tables ----------------------------------------------------------------------------------------------------------


def seat(base: float, n_customers: int, n_times: int, rng: np.random.Generator) -> Array:
    """Numbers of tables (n_times,) that customers open who come one by one."""
    tables = np.zeros(n_times)
    for seated in range(n_customers):
        tables += rng.random(n_times) < base / (base + seated)
    return tables


def tables_of(base: float, n_customers: int) -> float:
    """Expected number of tables: the chances of every customer to open one."""
    return sum(base / (base + seated) for seated in range(n_customers))


def tables_of_paths(base: Array, paths: Iterator[tuple[Path, float]]) -> Array:
    """Expected number of tables (K, K) over all paths; `base` (K, K)."""
    out = np.zeros_like(base)
    for path, probability in paths:
        counts = np.zeros(base.shape, dtype=int)
        np.add.at(counts, (list(path[:-1]), list(path[1:])), 1)
        out += probability * np.vectorize(tables_of)(base, counts)
    return out


def counts_of_paths(paths: Iterator[tuple[Path, float]], n_states: int) -> Array:
    """Expected number of moves (K, K) over all paths."""
    out = np.zeros((n_states, n_states))
    for path, probability in paths:
        np.add.at(out, (list(path[:-1]), list(path[1:])), probability)
    return out


def tables_by_stirling(base: float, n_customers: int) -> float:
    """The same from the distribution of the number of tables: unsigned Stirling numbers times powers of the base."""
    stirling = [1]
    for seated in range(n_customers):
        stirling = [
            (stirling[s - 1] if s else 0) + seated * (stirling[s] if s < len(stirling) else 0)
            for s in range(len(stirling) + 1)
        ]
    weights = np.array([float(count) * base**s for s, count in enumerate(stirling)])
    return float(weights @ np.arange(len(weights)) / weights.sum())


def believed_tables(base: Array, counts: Array, never: Array) -> Array:
    """(5.35) entry by entry: probability of a customer times the tables of as many as there are if there is any."""
    out = np.zeros_like(counts)
    for place, count in np.ndenumerate(counts):
        probability = min(1.0 - np.exp(-never[place]), count)
        if probability > 0.0:
            a = base[place]
            out[place] = probability * a * (digamma(a + count / probability) - digamma(a))
    return out


def sticky_franchise(
    top: Array, concentration: float, stickiness: float, state: int, n_customers: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """One restaurant whose house dish is `state`: customers (K,) of every dish, and tables (K,) that asked the top.

    A new table takes the house dish in proportion to the stickiness, and else asks the top for one.
    """
    dishes: list[int] = []
    seated: list[int] = []
    asked = np.zeros(len(top))
    whole = concentration + stickiness
    for customer in range(n_customers):
        if rng.random() < customer / (customer + whole):
            seated[rng.choice(len(seated), p=np.array(seated) / customer)] += 1
            continue
        if rng.random() < stickiness / whole:
            dishes.append(state)
        else:
            dishes.append(int(rng.choice(len(top), p=top)))
            asked[dishes[-1]] += 1
        seated.append(1)
    return np.bincount(dishes, seated, minlength=len(top)), asked


# ---- collapsed inference ---------------------------------------------------------------------------------------------


class Top(NamedTuple):
    """The top level of collapsed inference.

    Attributes
    ----------
    u, v : (K,) Beta posteriors of the sticks
    order : which state takes which stick: the state of stick 0, of stick 1, …
    first, moves : (K,), (K, K) how much −log q(never) exceeds the expected numbers of first states and moves
    concentration, top_concentration, stickiness : the numbers of the hierarchy
    """

    u: Array
    v: Array
    order: list[int]
    first: Array
    moves: Array
    concentration: float
    top_concentration: float
    stickiness: float = 0.0


def weights(top: Top) -> Array:
    """Geometric means of the states' weights, stick by stick, normalised."""
    found, left = np.zeros(len(top.u)), 0.0
    for state in top.order:
        whole = digamma(top.u[state] + top.v[state])
        found[state] = np.exp(left + digamma(top.u[state]) - whole)
        left += digamma(top.v[state]) - whole
    return found / found.sum()


def prior_rows(top: Top) -> tuple[Array, Array]:
    """Concentrations of the first states, (K,), and of the moves, (K, K)."""
    base = top.concentration * weights(top)
    return base, np.array([base + top.stickiness * (np.arange(len(base)) == j) for j in range(len(base))])


def under(top: Top, problem: Problem) -> Problem:
    """The problem under the prior of the moment."""
    first, rows = prior_rows(top)
    return problem._replace(alpha_initial=first, alpha_rows=rows)


def looked_at(top: Top, counts: Table, problem: Problem) -> Top:
    """How much −log q(never), pair by pair under the predictive surrogate of all counts, exceeds the counts."""
    surrogate = naive_cvi.predictive(counts, under(top, problem))
    first, moves = -counts.initial, -counts.rows
    for i in range(len(problem.data)):
        chain = naive_cvi.sequence_under(surrogate, problem, i)
        first += pairs_occurrence(chain.marginals[:1])
        moves += (chain.pairs + quick_surplus(chain.pairs)).sum(axis=0)
    return top._replace(first=first, moves=moves)


def quick_surplus(pairs: Array) -> Array:
    """−log(1 − q) − q as a run computes it: nothing for q below 0.01, five terms of the series up to 0.1."""
    series = sum(pairs**power / power for power in range(2, 7))
    exact = -np.log1p(-np.minimum(pairs, 1.0 - 1e-12)) - pairs
    return np.where(pairs > 0.01, np.where(pairs > 0.1, exact, series), 0.0)


def renewed(top: Top, counts: Table) -> Top:
    """(5.25)-(5.26), the states taking their sticks in the order of their tables."""
    base = np.vstack(prior_rows(top))
    expected = np.vstack([counts.initial, counts.rows])
    tables = believed_tables(base, expected, np.maximum(expected + np.vstack([top.first, top.moves]), 0.0))
    for j in range(len(top.u)):
        asks = top.concentration * weights(top)[j]
        tables[1 + j, j] *= asks / (asks + top.stickiness)
    dishes = tables.sum(axis=0)
    order = sorted(range(len(dishes)), key=lambda state: -dishes[state])
    v = np.zeros_like(dishes)
    for rank, state in enumerate(order):
        v[state] = top.top_concentration + sum(dishes[after] for after in order[rank + 1 :])
    return top._replace(u=1.0 + dishes, v=v, order=order)


def log_worth(top: Top, counts: Table) -> float:
    """What first states and moves are worth with rows summed out, less the divergence of the sticks."""
    total = 0.0
    base = np.vstack(prior_rows(top))
    expected = np.vstack([counts.initial, counts.rows])
    never = expected + np.vstack([top.first, top.moves])
    for j in range(len(base)):
        for k in range(base.shape[1]):
            total += _rising(base[j, k], expected[j, k], never[j, k])
        total -= _rising(base[j].sum(), expected[j].sum(), never[j].sum())
    for a, b in zip(top.u, top.v, strict=True):
        own, prior = beta(a, b), beta(1.0, top.top_concentration)
        total -= float(own.expect(lambda x, own=own, prior=prior: own.logpdf(x) - prior.logpdf(x)))
    return total


def _rising(base: float, count: float, never: float) -> float:
    probability = min(1.0 - np.exp(-never), count)
    if probability <= 0.0:
        return 0.0
    return float(probability * (gammaln(base + count / probability) - gammaln(base)))
