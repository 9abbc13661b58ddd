"""Slow and obvious versions of the infinite hidden Markov model: drawn from its prior, and enumerated.

States are told apart by nothing but what they do, so paths are named by the order in which their states appear.
"""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, perm


class Hierarchy(NamedTuple):
    concentration: float
    top_concentration: float
    stickiness: float = 0.0


class Prior(NamedTuple):
    """A draw: paths with states named by their appearance, top weights of these, and of all others that were met."""

    states: np.ndarray
    top: np.ndarray
    others: np.ndarray

    @property
    def rest(self):
        return 1.0 - self.top.sum()


def draw_prior(hierarchy, offsets, rng, n_states=None):
    """Paths from the prior: sticks at the top are broken when somebody reaches for them, rows are urns.

    With `n_states` there are exactly so many states, the top weights being Dirichlet(top_concentration / n_states).
    """
    concentration, top_concentration, stickiness = hierarchy
    closed = n_states is not None
    sticks = list(rng.dirichlet(np.full(n_states, top_concentration / n_states))) if closed else []
    left = 1.0 - sum(sticks) if closed else 1.0

    def reach():
        nonlocal left
        point, so_far, k = rng.random(), 0.0, 0
        while True:
            if k == len(sticks):
                if closed:
                    return k - 1
                broken = rng.beta(1.0, top_concentration)
                sticks.append(left * broken)
                left *= 1.0 - broken
            so_far += sticks[k]
            if point < so_far:
                return k
            k += 1

    urns, states = {}, []
    for first, stop in itertools.pairwise(offsets):
        before = None
        for _ in range(first, stop):
            urn = urns.setdefault(before, [])
            stay = 0.0 if before is None else stickiness
            point = rng.random() * (len(urn) + concentration + stay)
            if point < len(urn):
                state = urn[int(point)]
            elif point < len(urn) + stay:
                state = before
            else:
                state = reach()
            urn.append(state)
            states.append(state)
            before = state
    names = list(dict.fromkeys(states))
    top = np.array([sticks[name] for name in names])
    others = np.array([stick for name, stick in enumerate(sticks) if name not in names])
    return Prior(np.array([names.index(state) for state in states]), top, others)


# ---- enumeration -----------------------------------------------------------------------------------------------------


def named_paths(n):
    """All paths of n positions whose states are named by their appearance: restricted growth strings."""
    paths = [[0]]
    for _ in range(n - 1):
        paths = [[*path, k] for path in paths for k in range(max(path) + 2)]
    return paths


@cache
def stirling(n):
    """Unsigned Stirling numbers of the first kind of n, for 0 … n."""
    if n == 0:
        return (1.0,)
    before = (*stirling(n - 1), 0.0)
    return tuple((before[m - 1] if m else 0.0) + (n - 1) * before[m] for m in range(n + 1))


def log_prior_of_path(path, offsets, hierarchy, n_all=None):
    """Log probability of a named path: all numbers of tables are summed over, the top weights integrated out.

    Without stickiness. With `n_all`, of so many states with a symmetric prior over their top weights.
    """
    concentration, top_concentration, _ = hierarchy
    n_states = max(path) + 1
    counts = np.zeros((n_states + 1, n_states), dtype=int)
    for first, stop in itertools.pairwise(offsets):
        for t in range(first, stop):
            counts[n_states if t == first else path[t - 1], path[t]] += 1
    totals = counts.sum(axis=1)
    log_rows = (gammaln(concentration) - gammaln(concentration + totals)).sum()
    if n_all is None:
        names, chosen = top_concentration**n_states, lambda m: np.exp(gammaln(m))
    else:
        share = top_concentration / n_all
        names, chosen = perm(n_all, n_states), lambda m: np.exp(gammaln(share + m) - gammaln(share))
    served = []  # for each dish, weights of its numbers of tables: Σ over seatings, product over restaurants
    for k in range(n_states):
        weights = np.ones(1)
        for n in counts[:, k]:
            weights = np.convolve(weights, np.array(stirling(int(n))) * concentration ** np.arange(n + 1))
        served.append(weights * np.array([0.0, *(chosen(m) for m in range(1, len(weights)))]))
    together = np.ones(1)
    for weights in served:
        together = np.convolve(together, weights)
    m = np.arange(len(together))
    top = names * np.exp(gammaln(top_concentration) - gammaln(top_concentration + m))
    with np.errstate(divide="ignore"):
        return log_rows + np.log(together @ top)


class Posterior(NamedTuple):
    paths: np.ndarray
    probability: np.ndarray
    n_states: np.ndarray  # probability of 0, 1, 2, … states


def exact_posterior(data, n_symbols, hierarchy, beta, n_all=None):
    """Posterior of all named paths given symbols, emissions being Dirichlet(β)."""
    offsets = np.concatenate(([0], np.cumsum([len(part) for part in data])))
    symbols = np.concatenate(data)
    paths, logs = named_paths(len(symbols)), []
    for path in paths:
        counts = np.zeros((max(path) + 1, n_symbols))
        np.add.at(counts, (path, symbols), 1.0)
        emitted = gammaln(counts + beta).sum() - gammaln(counts.sum(axis=1) + n_symbols * beta).sum()
        emitted += len(counts) * (gammaln(n_symbols * beta) - n_symbols * gammaln(beta))
        logs.append(log_prior_of_path(path, offsets, hierarchy, n_all) + emitted)
    logs = np.array(logs)
    probability = np.exp(logs - np.logaddexp.reduce(logs))
    sizes = np.bincount([max(path) + 1 for path in paths], probability)
    return Posterior(np.array(paths), probability, sizes)
