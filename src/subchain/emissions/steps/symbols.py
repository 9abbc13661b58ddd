"""Symbols for compiled stochastic updates: the rows of symbols that occur, whatever the size of the vocabulary.

See `emissions.incremental_table`. The fresh sums of a tile are the number of its distinct symbols, these symbols, and a
row of counts for each.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.incremental_table import LEAST_FACTOR, distinct_symbols, weigh_rows
from subchain.emissions.steps.base import read_only
from subchain.emissions.symbol_kernels import gather, scatter
from subchain.propagation.lanes.learning import blend_family, clear_sums, weigh_family
from subchain.propagation.lanes.observing import add_observations, likelihoods, observation_room, observe
from subchain.propagation.verbs import implements

if TYPE_CHECKING:
    from subchain.emissions.incremental_table import IncrementalTable

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class SymbolRows(NamedTuple):
    """Symbols, −1 where missing, and the posterior that their weights follow from.

    Attributes
    ----------
    values : (N,)
    counts : (W, K), to be multiplied by `factor` (1,)
    concentration : the prior's, as `IncrementalTable` keeps it
    totals : (K,) sums of the posterior's concentrations over all symbols
    kind : (1,) how the posterior becomes weights
    place : (W,) scratch
    """

    values: NDArray[Any]
    counts: Array
    factor: Array
    concentration: Array
    totals: Array
    kind: Index
    place: NDArray[np.int32]


class SymbolSteps(NamedTuple):
    """The posterior of a table of symbols; `totals` (K,) are the sums of its counts, `prior_totals` the prior's."""

    likelihood: SymbolRows
    totals: Array
    prior_totals: Array


class FoundSymbols(NamedTuple):
    """The symbols of a tile.

    Attributes
    ----------
    codes : (n,) symbols
    found : distinct symbols
    local : (n,) the number of each symbol among them
    rows, shift : (n, K) and (n,) their weights, and the logarithms of what these were divided by
    n : (2,) numbers of observations and of distinct symbols
    """

    codes: Index
    found: Index
    local: Index
    rows: Array
    shift: Array
    n: Index


class TableSteps:
    """A table of symbols that compiled updates change, with scratch for each thread; see `EmissionSteps`."""

    def __init__(self, table: IncrementalTable, values: NDArray[Any]) -> None:
        self._table, self._factor, self._kind = table, np.array([table.factor]), np.zeros(1, dtype=np.int64)
        self._values = read_only(values)
        self._totals = np.empty_like(table.totals)

    def row_size(self, columns: int) -> int:
        return 1 + columns * (1 + len(self._totals))

    def of_thread(self, number: int) -> SymbolSteps:
        table = self._table
        likelihood = SymbolRows(
            self._values, table.counts, self._factor, table.concentration, self._totals, self._kind, table.place(number)
        )
        return SymbolSteps(likelihood, table.totals, table.prior_totals)

    def finish(self) -> None:
        """Tell the table what has become of it: counts and totals were changed in place."""
        self._table.factor = float(self._factor[0])


@implements(observation_room, SymbolRows)
def _room(family, columns):
    return FoundSymbols(
        np.empty(columns, dtype=np.int64), np.empty(columns, dtype=np.int64), np.empty(columns, dtype=np.int64),
        np.empty((columns, family.totals.shape[0])), np.empty(columns), np.zeros(2, dtype=np.int64),
    )  # fmt: skip


@implements(observe, SymbolRows)
def _observe(family, positions, seen):
    codes = seen.codes[: positions.shape[0]]
    for i in range(codes.shape[0]):
        codes[i] = np.int64(family.values[positions[i]])
    seen.n[0], seen.n[1] = codes.shape[0], distinct_symbols(codes, family.place, seen.found, seen.local)
    return seen.n[1] >= 0


@implements(likelihoods, SymbolRows)
def _likelihoods(family, seen, out, shift):
    n, n_found = seen.n[0], seen.n[1]
    local = seen.local[:n]
    any_scaled = weigh_rows(
        family.kind[0], family.counts, family.factor[0], family.concentration, family.totals, seen.found[:n_found],
        seen.rows, seen.shift,
    )  # fmt: skip
    gather(seen.rows, local, out)
    shift[:] = 0.0
    if any_scaled:
        for i in range(n):
            if local[i] >= 0:
                shift[i] = seen.shift[local[i]]


@implements(clear_sums, SymbolRows)
def _clear(family, row):
    row[0] = 0.0


@implements(add_observations, SymbolRows)
def _add(family, seen, marginals, sums):
    n, n_found, n_states = seen.n[0], seen.n[1], marginals.shape[0]
    sums[0] = n_found
    for i in range(n_found):
        sums[1 + i] = seen.found[i]
    rows = sums[1 + n_found : 1 + n_found * (1 + n_states)].reshape(n_found, n_states)
    rows[:] = 0.0
    scatter(rows, seen.local[:n], marginals)


@implements(weigh_family, SymbolSteps)
def _weigh(learned, kind):
    learned.likelihood.kind[0] = kind
    for k in range(learned.totals.shape[0]):
        learned.likelihood.totals[k] = learned.totals[k] + learned.prior_totals[k]
    return True


@implements(blend_family, SymbolSteps)
def _blend(learned, keep, gain, rows):
    counts, factor, n_states = learned.likelihood.counts, learned.likelihood.factor, learned.totals.shape[0]
    factor[0] *= keep
    if factor[0] < LEAST_FACTOR:
        counts *= factor[0]
        factor[0] = 1.0
    share, added = gain / factor[0], np.zeros(n_states)
    for tile in range(rows.shape[0]):
        row, n_found = rows[tile], np.int64(rows[tile, 0])
        for i in range(n_found):
            symbol, at = np.int64(row[1 + i]), 1 + n_found + i * n_states
            for k in range(n_states):
                counts[symbol, k] += share * row[at + k]
                added[k] += row[at + k]
    for k in range(n_states):
        learned.totals[k] = keep * learned.totals[k] + gain * added[k]
