"""Symbols for compiled stochastic updates: the rows of symbols that occur, whatever the size of the vocabulary.

See `emissions.incremental_table`. The fresh sums of a tile are its distinct symbols and a row of counts for each. They
enter the counts in parts, each of which several threads may work on: symbols go to parts by their numbers, `BLOCK` at a
time, and those of a tile lie part after part.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.emissions.incremental_table import LEAST_FACTOR, distinct_symbols, weigh_rows
from subchain.emissions.steps.base import read_only
from subchain.emissions.symbol_kernels import gather, scatter
from subchain.propagation.compiled import small_kernel
from subchain.propagation.lanes.learning import begin_blend, blend_part, clear_sums, end_blend, weigh_family
from subchain.propagation.lanes.observing import add_observations, likelihoods, observation_room, observe
from subchain.propagation.verbs import implements

if TYPE_CHECKING:
    from subchain.emissions.incremental_table import IncrementalTable

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Neighbouring symbols that belong to the same part: their rows are whole cache lines.
BLOCK = 8


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
    added : (parts, K) sums of what a part adds to the counts
    """

    values: NDArray[Any]
    counts: Array
    factor: Array
    concentration: Array
    totals: Array
    kind: Index
    place: NDArray[np.int32]
    added: Array


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
    order : scratch
    rows, shift : (n, K) and (n,) their weights, and the logarithms of what these were divided by
    n : (2,) numbers of observations and of distinct symbols
    """

    codes: Index
    found: Index
    local: Index
    order: Index
    rows: Array
    shift: Array
    n: Index


class TableSteps:
    """A table of symbols that compiled updates change, with scratch for each thread; see `EmissionSteps`."""

    def __init__(self, table: IncrementalTable, values: NDArray[Any]) -> None:
        self._table, self._factor, self._kind = table, np.array([table.factor]), np.zeros(1, dtype=np.int64)
        self._values = read_only(values)
        self._totals = np.empty_like(table.totals)
        self.share(1)

    def share(self, n_tiles: int) -> None:
        self._added = np.empty((n_tiles, len(self._totals)))

    def row_size(self, columns: int) -> int:
        return len(self._added) + columns * (1 + len(self._totals))

    def of_thread(self, number: int) -> SymbolSteps:
        table = self._table
        likelihood = SymbolRows(
            self._values, table.counts, self._factor, table.concentration, self._totals, self._kind,
            table.place(number), self._added,
        )  # fmt: skip
        return SymbolSteps(likelihood, table.totals, table.prior_totals)

    def finish(self) -> None:
        """Tell the table what has become of it: counts and totals were changed in place."""
        self._table.factor = float(self._factor[0])


@implements(observation_room, SymbolRows)
def _room(family, columns):
    return FoundSymbols(
        np.empty(columns, dtype=np.int64), np.empty(columns, dtype=np.int64), np.empty(columns, dtype=np.int64),
        np.empty(columns, dtype=np.int64), np.empty((columns, family.totals.shape[0])), np.empty(columns),
        np.zeros(2, dtype=np.int64),
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
    row[: family.added.shape[0]] = 0.0


@small_kernel
def _arrange(found, local, order, ends):
    """Number distinct symbols part after part; `local` changes with them, `order` (n,) are the new numbers.

    Parts end at `ends` (parts,).
    """
    parts = ends.shape[0]
    ends[:] = 0.0
    for i in range(found.shape[0]):
        ends[found[i] // BLOCK % parts] += 1.0
    at = 0.0
    for part in range(parts):
        size = ends[part]
        ends[part] = at
        at += size
    for i in range(found.shape[0]):
        part = found[i] // BLOCK % parts
        order[i] = np.int64(ends[part])
        ends[part] += 1.0
    for position in range(local.shape[0]):
        if local[position] >= 0:
            local[position] = order[local[position]]


@implements(add_observations, SymbolRows)
def _add(family, seen, marginals, sums):
    n, n_found, n_states, parts = seen.n[0], seen.n[1], marginals.shape[0], family.added.shape[0]
    if parts > 1:
        _arrange(seen.found[:n_found], seen.local[:n], seen.order, sums[:parts])
        for i in range(n_found):
            sums[parts + seen.order[i]] = seen.found[i]
    else:
        sums[0] = n_found
        for i in range(n_found):
            sums[1 + i] = seen.found[i]
    rows = sums[parts + n_found : parts + n_found * (1 + n_states)].reshape(n_found, n_states)
    rows[:] = 0.0
    scatter(rows, seen.local[:n], marginals)


@implements(weigh_family, SymbolSteps)
def _weigh(learned, kind):
    learned.likelihood.kind[0] = kind
    for k in range(learned.totals.shape[0]):
        learned.likelihood.totals[k] = learned.totals[k] + learned.prior_totals[k]
    return True


@implements(begin_blend, SymbolSteps)
def _begin(learned, keep, gain):
    counts, factor = learned.likelihood.counts, learned.likelihood.factor
    factor[0] *= keep
    if factor[0] < LEAST_FACTOR:
        counts *= factor[0]
        factor[0] = 1.0


@implements(blend_part, SymbolSteps)
def _blend(learned, keep, gain, rows, part):
    family, parts = learned.likelihood, rows.shape[0]
    counts, added, n_states = family.counts, family.added[part], family.added.shape[1]
    share = gain / family.factor[0]
    added[:] = 0.0
    for tile in range(parts):
        row = rows[tile]
        first, last, n_found = (
            0 if part == 0 else np.int64(row[part - 1]),
            np.int64(row[part]),
            np.int64(row[parts - 1]),
        )
        for i in range(first, last):
            symbol, at = np.int64(row[parts + i]), parts + n_found + i * n_states
            for k in range(n_states):
                counts[symbol, k] += share * row[at + k]
                added[k] += row[at + k]


@implements(end_blend, SymbolSteps)
def _end(learned, keep, gain, parts):
    for k in range(learned.totals.shape[0]):
        fresh = 0.0
        for part in range(parts):
            fresh += learned.likelihood.added[part, k]
        learned.totals[k] = keep * learned.totals[k] + gain * fresh
