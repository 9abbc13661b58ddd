"""Counts of symbols: a table of a row for each symbol, padded so that its rows fill vectors.

A last row of ones, with a prior of zeros, stands for missing symbols, so that there is one formula for all of them.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.categorical import CategoricalSums, as_symbols
from subchain.emissions.collapsed.counts import EmissionCounts
from subchain.emissions.collapsed.shards import TableShards
from subchain.numerics.linking import linked
from subchain.numerics.vectors import WIDTH, fetch, first, largest, load, reciprocal, store, times, zeros
from subchain.propagation.collapsed.shards import Blocks
from subchain.propagation.collapsed.verbs import (
    add,
    add_rows,
    arrive,
    depart,
    fill,
    has_logs,
    locate,
    weigh,
    weigh_apart,
    weigh_rows,
    weigh_scaled,
    weigh_vector,
)
from subchain.propagation.verbs import implements

Array = NDArray[np.float64]

#: Positions ahead of the present one whose symbols' rows are asked for.
AHEAD = 6
#: Rising factorials of so few factors are multiplied out.
FEW = 8


class TableCounts(NamedTuple):
    """Counts of symbols by state, and their priors; P is K padded to whole vectors.

    Attributes
    ----------
    codes : (N,) symbols, −1 where missing
    table : (W + 1, P) counts
    prior : (W + 1, P), or (2, P) if it is the same for all symbols; probabilities if the table is fixed
    totals, prior_totals : (1, P) sums over all symbols, the latter ones if the table is fixed
    inverse : (2, P) one over totals with priors where states are drawn; row 1 is ones
    gain : (1, 1) how much a symbol counts: 1 if the table is learned, 0 if it is fixed
    """

    codes: NDArray[Any]
    table: Array
    prior: Array
    totals: Array
    prior_totals: Array
    inverse: Array
    gain: Array


class SymbolCounts(EmissionCounts):
    """Counts of symbols with a Dirichlet prior."""

    def log_evidence(self, prior: Any) -> float:
        return float(_log_evidence(self.kernel.table, np.ascontiguousarray(prior.concentration)))

    def shards(self, blocks: Blocks) -> TableShards:
        return TableShards(self, blocks)


def learned_table(concentration: Array, sums: CategoricalSums, values: NDArray[Any]) -> SymbolCounts:
    """Counts of symbols whose probabilities have Dirichlet priors (W, K)."""
    n_symbols, n_states = concentration.shape
    is_shared = bool((concentration == concentration[:1]).all())
    prior = concentration[:1] if is_shared else concentration
    counts = _table_counts(values, sums.counts, prior, concentration.sum(axis=0), 1.0)
    live = CategoricalSums(counts.table[:n_symbols, :n_states])
    return SymbolCounts(counts, live, {"totals": counts.totals}, is_exact=True)


def fixed_table(weights: Array, values: NDArray[Any]) -> EmissionCounts:
    """Counts of symbols whose probabilities (W, K) are known."""
    counts = _table_counts(values, np.zeros_like(weights), weights, np.ones(weights.shape[1]), 0.0)
    return EmissionCounts(counts, None, is_exact=True, scratch=("inverse",))


def _table_counts(values: NDArray[Any], counted: Array, prior: Array, prior_totals: Array, gain: float) -> TableCounts:
    n_symbols, n_states = counted.shape
    width = -(-n_states // WIDTH) * WIDTH
    table, priors = np.zeros((n_symbols + 1, width)), np.zeros((len(prior) + 1, width))
    table[:-1, :n_states], table[-1, :n_states], priors[:-1, :n_states] = counted, 1.0, prior
    totals, all_priors, inverse = np.zeros((1, width)), np.ones((1, width)), np.ones((2, width))
    totals[0, :n_states], all_priors[0, :n_states] = counted.sum(axis=0), prior_totals
    inverse[0] = 1.0 / (totals[0] + all_priors[0])
    return TableCounts(_codes(values), table, priors, totals, all_priors, inverse, np.full((1, 1), gain))


def _codes(values: NDArray[Any]) -> NDArray[Any]:
    """Codes that kernels can read, copied only if they are not."""
    is_plain = values.ndim == 1 and values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64)
    return values if is_plain else as_symbols(np.asarray(values))


# ---- verbs -----------------------------------------------------------------------------------------------------------


@implements(add, TableCounts)
def _add(counts, position, k, amount):
    symbol = np.int64(counts.codes[position])
    if symbol >= 0:
        counts.table[symbol, k] += amount * counts.gain[0, 0]
        counts.totals[0, k] += amount * counts.gain[0, 0]


@implements(weigh, TableCounts)
def _weigh(counts, position, k):
    symbol = np.int64(counts.codes[position])
    if symbol < 0:
        return 1.0, 0.0
    prior = counts.prior[0 if counts.prior.shape[0] == 2 else symbol, k]
    total = max(counts.totals[0, k], 0.0) + counts.prior_totals[0, k]
    return (max(counts.table[symbol, k], 0.0) + prior) / total, 0.0


@implements(has_logs, TableCounts)
def _has_logs(counts):
    return False


@implements(add_rows, TableCounts)
def _add_rows(counts, first_position, last, table, at, gain):
    if counts.gain[0, 0] == 0.0:
        return
    n_states = table.shape[1]
    tail = n_states - n_states % WIDTH
    for position in range(first_position, last):
        symbol, row = np.int64(counts.codes[position]), at + position - first_position
        if symbol < 0:
            continue
        for k in range(0, tail, WIDTH):
            change = times(load(table, row, k, None), gain)
            store(counts.table, symbol, k, None, load(counts.table, symbol, k, None) + change)
            store(counts.totals, 0, k, None, load(counts.totals, 0, k, None) + change)
        if tail < n_states:
            change = times(load(table, row, tail, first(n_states - tail)), gain)
            store(counts.table, symbol, tail, None, load(counts.table, symbol, tail, None) + change)
            store(counts.totals, 0, tail, None, load(counts.totals, 0, tail, None) + change)


@implements(weigh_rows, TableCounts)
def _weigh_rows(counts, first_position, last, n_states, out):
    nothing, width = zeros(), counts.table.shape[1]
    for k in range(0, width, WIDTH):
        total = largest(load(counts.totals, 0, k, None), nothing) + load(counts.prior_totals, 0, k, None)
        store(counts.inverse, 0, k, None, reciprocal(total))
    shared = counts.prior.shape[0] == 2
    for position in range(first_position, last):
        symbol, row = np.int64(counts.codes[position]), position - first_position
        if symbol < 0:
            for k in range(n_states):
                out[row, k] = 1.0
            continue
        prior = np.int64(0) if shared else symbol
        for k in range(0, width, WIDTH):
            weight = largest(load(counts.table, symbol, k, None), nothing) + load(counts.prior, prior, k, None)
            store(out, row, k, None, weight * load(counts.inverse, 0, k, None))
    return 0.0


# Drawn states: counts stay in place while a state is drawn, and change only if it does.


@implements(locate, TableCounts)
def _locate(counts, position):
    """Rows of the table, of the prior and of the inverse totals."""
    symbol, last = np.int64(counts.codes[position]), np.int64(counts.prior.shape[0] - 1)
    if symbol < 0:
        return np.int64(counts.table.shape[0] - 1), last, np.int64(1)
    return symbol, np.int64(0) if last == 1 else symbol, np.int64(0)


@implements(depart, TableCounts)
def _depart(counts, seen, old):
    pass


@implements(weigh_apart, TableCounts)
def _weigh_apart(counts, seen, k, old):
    symbol, prior, is_missing = seen
    if is_missing:
        return 1.0, 0.0
    own = counts.gain[0, 0] if k == old else 0.0
    emitted = counts.table[symbol, k] + counts.prior[prior, k] - own
    return emitted / (counts.totals[0, k] + counts.prior_totals[0, k] - own), 0.0


@implements(fill, TableCounts)
def _fill(counts, position, n_states, room):
    """Ask for the row of a symbol that will be needed soon."""
    ahead = position + AHEAD
    if ahead < counts.codes.shape[0] and counts.codes[ahead] >= 0:
        for k in range(0, counts.table.shape[1], WIDTH):
            fetch(counts.table, np.int64(counts.codes[ahead]), k)


@implements(weigh_vector, TableCounts)
def _weigh_vector(counts, seen, column, room):
    weights = load(counts.table, seen[0], column, None) + load(counts.prior, seen[1], column, None)
    return weights * load(counts.inverse, seen[2], column, None)


@implements(weigh_scaled, TableCounts)
def _weigh_scaled(counts, seen, k, old, room):
    return weigh_apart(counts, seen, k, old)[0]


@implements(arrive, TableCounts)
def _arrive(counts, seen, old, new):
    symbol, _, is_missing = seen
    if new != old and not is_missing:
        gain = counts.gain[0, 0]
        counts.table[symbol, old] -= gain
        counts.table[symbol, new] += gain
        counts.totals[0, old] -= gain
        counts.totals[0, new] += gain
        counts.inverse[0, old] = 1.0 / (counts.totals[0, old] + counts.prior_totals[0, old])
        counts.inverse[0, new] = 1.0 / (counts.totals[0, new] + counts.prior_totals[0, new])


# ---- the joint probability of drawn states ---------------------------------------------------------------------------


@linked()
def _log_rising(c, n):
    """log Γ(c + n) − log Γ(c) for a whole number n of at least one."""
    if n > FEW:
        return math.lgamma(c + n) - math.lgamma(c)
    product = c
    for step in range(1, int(n)):
        product *= c + step
    return math.log(product)


@linked()
def _log_evidence(counts, concentration):
    """Log probability of counted symbols; nothing is to be done where none was, which is nearly everywhere."""
    n_symbols, n_states = concentration.shape
    emitted, totals = np.zeros(n_states), np.zeros(n_states)
    total = 0.0
    for symbol in range(n_symbols):
        for k in range(n_states):
            totals[k] += concentration[symbol, k]
            if counts[symbol, k] > 0.0:
                emitted[k] += counts[symbol, k]
                total += _log_rising(concentration[symbol, k], counts[symbol, k])
    for k in range(n_states):
        if emitted[k] > 0.0:
            total -= _log_rising(totals[k], emitted[k])
    return total
