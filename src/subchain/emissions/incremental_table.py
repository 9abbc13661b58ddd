"""Dirichlet tables over large vocabularies that move in small steps: the cost of a step does not depend on W.

Counts are kept as `factor` times a table, so that forgetting is a multiplication of one number; only the rows of
symbols that occur in a minibatch are looked at, and each of them once, however often it occurs.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import dataclasses
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import EXPECTED_LOG, KINDS, MODE
from subchain.core.ranges import COUNTS, SUM_TOLERANCE, Range, stored
from subchain.core.records import Sums
from subchain.emissions.base import Likelihood, Table, Values
from subchain.emissions.categorical import (
    SMALLEST_LOG,
    CategoricalSums,
    DirichletTable,
    as_symbols,
)
from subchain.emissions.incremental import Incremental
from subchain.emissions.symbol_kernels import SMALL, gather, scatter
from subchain.errors import FileFormatError, InputError
from subchain.numerics.linking import linked
from subchain.numerics.special import SMALL_TOTAL, exp_digamma, small_dirichlet_weight

if TYPE_CHECKING:
    from subchain.emissions.steps.symbols import TableSteps

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: The factor of the counts is multiplied in before it comes near the end of the doubles.
LEAST_FACTOR = 1e-100
LEAST_WEIGHT = float(np.exp(SMALLEST_LOG))


@linked()
def distinct_symbols(symbols, place, distinct, local):
    """Number the symbols that occur in the order of their first occurrence; return how many there are.

    Return −1 if a code is beyond the symbols of the table.

    Symbol `distinct[i]` has the number i; `local` (n,) are the symbols so numbered, −1 where missing. `place` (W,) may
    hold anything: an entry counts only if the symbol it leads to leads back.
    """
    n, fetched = 0, 0
    for position in range(symbols.shape[0]):  # a loop that only touches has many memory accesses under way at a time
        if not -1 <= symbols[position] < place.shape[0]:
            return -1
        fetched += place[symbols[position]]
    if symbols.shape[0]:
        local[0] = fetched
    for position in range(symbols.shape[0]):
        symbol = symbols[position]
        if symbol < 0:
            local[position] = -1
            continue
        at = place[symbol]
        if at >= n or distinct[at] != symbol:
            at = n
            place[symbol] = n
            distinct[n] = symbol
            n += 1
        local[position] = at
    return n


@linked(error_model="numpy")
def _divisors(kind, totals, n_symbols):
    """What the rows of a table with these totals, (K,), are multiplied by, per state."""
    out = totals - n_symbols if kind == MODE else totals.copy()
    if kind == EXPECTED_LOG:
        exp_digamma(out.reshape(1, -1))
    for k in range(out.shape[0]):
        out[k] = 1.0 / out[k] if out[k] > 0.0 else 0.0
    return out


@linked(error_model="numpy")
def _fill_rows(kind, counts, factor, concentration, divisors, symbols, rows):
    """Write the rows of the given symbols, weighed; for `EXPECTED_LOG` their concentrations."""
    same = concentration.shape[0] == 1
    for i in range(symbols.shape[0]):
        row, own, prior = rows[i], counts[symbols[i]], concentration[0 if same else symbols[i]]
        if kind == EXPECTED_LOG:
            for k in range(row.shape[0]):
                row[k] = factor * own[k] + prior[k]
        elif kind == MODE:
            for k in range(row.shape[0]):
                row[k] = max(factor * own[k] + prior[k] - 1.0, 0.0) * divisors[k]
        else:
            for k in range(row.shape[0]):
                row[k] = (factor * own[k] + prior[k]) * divisors[k]


@linked(error_model="numpy")
def _expect_logs(counts, factor, concentration, divisors, totals, symbols, rows):
    """Replace rows of concentrations by the weights e^E[log p]."""
    same = concentration.shape[0] == 1
    exp_digamma(rows.reshape(1, -1))
    for i in range(symbols.shape[0]):
        for k in range(rows.shape[1]):
            value = rows[i, k] * divisors[k]
            if totals[k] < SMALL_TOTAL:
                value = factor * counts[symbols[i], k] + concentration[0 if same else symbols[i], k]
                value = small_dirichlet_weight(value, totals[k])
            rows[i, k] = max(value, LEAST_WEIGHT)


@linked(error_model="numpy")
def weigh_rows(kind, counts, factor, concentration, totals, symbols, rows, shift):
    """Weights of the given symbols in all states into `rows` (n, K); return whether any row had to be scaled.

    `concentration` is (W, K), or (1, K) if it is the same for all symbols; `totals` (K,) are the sums of the
    concentrations of the posterior over all symbols.

    A row whose largest weight is very small is divided by it, and `shift` is its logarithm.
    """
    any_scaled, n = False, symbols.shape[0]
    fetched = 0.0  # a loop that only touches the rows has many memory accesses under way at a time
    for i in range(n):
        fetched += counts[symbols[i], 0] + counts[symbols[i], -1]
    if n:
        shift[0] = fetched
    divisors = _divisors(kind, totals, counts.shape[0])
    _fill_rows(kind, counts, factor, concentration, divisors, symbols, rows)
    if kind == EXPECTED_LOG:
        _expect_logs(counts, factor, concentration, divisors, totals, symbols, rows[:n])
    for i in range(n):
        usual = False
        for k in range(rows.shape[1]):
            usual |= rows[i, k] >= SMALL
        shift[i] = 0.0
        if not usual and rows[i].max() > 0.0:
            any_scaled, largest = True, rows[i].max()
            shift[i] = np.log(largest)
            for k in range(rows.shape[1]):
                rows[i, k] /= largest
    return any_scaled


@linked()
def add_rows(counts, symbols, rows, gain, totals):
    """Add gain · rows to the rows of the given symbols, and the sum of what was added, per state, to `totals`."""
    for i in range(symbols.shape[0]):
        for k in range(counts.shape[1]):
            counts[symbols[i], k] += gain * rows[i, k]
            totals[k] += rows[i, k]


@dataclasses.dataclass
class RowSums(Sums):
    """Sums of the symbols that occurred, as pieces of (symbols, rows)."""

    pieces: ClassVar[list[tuple[Index, Array]]]

    def __post_init__(self) -> None:
        self.pieces = []  # type: ignore[misc]

    def absorb(self, other: RowSums) -> None:
        self.pieces.extend(other.pieces)


class LazyTable(Likelihood):
    """Weights that are worked out for the symbols of a block when they are asked for."""

    def __init__(self, owner: IncrementalTable, kind: int, totals: Array) -> None:
        self.owner = owner
        self.kind = kind
        self.totals = totals

    @property
    def n_states(self) -> int:
        return len(self.totals)

    def _rows(self, values: Values) -> tuple[Array, Array | None, Index]:
        """Weights of the distinct symbols, their shifts if any, and each observation's row."""
        owner, symbols = self.owner, as_symbols(values)
        distinct, local = owner.distinct(symbols)
        rows, shift = np.empty((len(distinct), self.n_states)), np.empty(len(distinct))
        scaled = weigh_rows(
            self.kind, owner.counts, owner.factor, owner.concentration, self.totals, distinct, rows, shift
        )
        return rows, shift if scaled else None, local

    def scaled(self, values: Values, out: Table) -> Array:
        rows, shift, local = self._rows(values)
        gather(rows, local, out)
        return np.zeros(len(local)) if shift is None else np.where(local >= 0, shift[local], 0.0)

    def log_likelihood(self, values: Values) -> Table:
        rows, shift, local = self._rows(values)
        out = np.empty((self.n_states, len(local)))
        gather(rows, local, out)
        with np.errstate(divide="ignore"):
            logs = np.log(out)
        return logs if shift is None else logs + np.where(local >= 0, shift[local], 0.0)

    def zeros(self) -> RowSums:
        return RowSums()

    def accumulate(self, values: Values, marginals: Table, sums: RowSums) -> None:
        distinct, local = self.owner.distinct(as_symbols(values))
        rows = np.zeros((len(distinct), self.n_states))
        scatter(rows, local, np.ascontiguousarray(marginals))
        sums.pieces.append((distinct, rows))


class IncrementalTable(Incremental):
    """Posterior of a categorical table: factor · counts + concentration, (W, K)."""

    def __init__(self, prior: DirichletTable, sums: CategoricalSums) -> None:
        self.adopt(prior)
        self.counts = np.array(sums.counts, order="C")
        self.factor = 1.0
        self.totals = self.counts.sum(axis=0)
        self._places: deque[NDArray[np.int32]] = deque()

    def adopt(self, prior: DirichletTable) -> None:
        self.prior = prior
        concentration = np.ascontiguousarray(prior.concentration)
        all_alike = bool((concentration == concentration[:1]).all())
        self.concentration = concentration[:1].copy() if all_alike else concentration
        self.prior_totals = concentration.sum(axis=0)

    def distinct(self, symbols: Index) -> tuple[Index, Index]:
        """The symbols that occur, each once, and the number of each observation's symbol among them."""
        place = self._places.pop() if self._places else np.zeros(len(self.counts), dtype=np.int32)
        found, local = np.empty(len(symbols), dtype=np.int64), np.empty(len(symbols), dtype=np.int64)
        n = distinct_symbols(symbols, place, found, local)
        self._places.append(place)
        if n < 0:
            raise InputError("the data hold a code beyond the symbols of the categorical emission; check the data.")
        return found[:n], local

    def place(self, number: int) -> NDArray[np.int32]:
        """Return scratch for `distinct_symbols` that belongs to one of several threads."""
        while len(self._places) <= number:
            self._places.append(np.zeros(len(self.counts), dtype=np.int32))
        return self._places[number]

    def steps(self, kind: str, values: Values) -> TableSteps | None:
        from subchain.emissions.steps.symbols import TableSteps

        return TableSteps(self, values) if values.ndim == 1 and values.dtype.kind in "iu" else None

    def take(self, steps: TableSteps) -> None:
        steps.finish()

    def surrogate(self, kind: str) -> LazyTable:
        return LazyTable(self, KINDS[kind], self.totals + self.prior_totals)

    def blend(self, keep: float, gain: float, fresh: RowSums) -> None:
        self.factor *= keep
        self.totals *= keep
        if self.factor < LEAST_FACTOR:
            self.counts *= self.factor
            self.factor = 1.0
        added = np.zeros_like(self.totals)
        for symbols, rows in fresh.pieces:
            add_rows(self.counts, symbols, rows, gain / self.factor, added)
        self.totals += gain * added

    def sums(self) -> CategoricalSums:
        return CategoricalSums(self.counts * self.factor)

    def apply_factor(self) -> None:
        self.counts *= self.factor
        self.factor = 1.0
        self.totals[:] = self.counts.sum(axis=0)

    def memory(self) -> dict[str, NDArray[Any]]:
        if self.factor == 1.0 and np.array_equal(self.totals, self.counts.sum(axis=0)):
            return {}  # the sums are all there is
        return {"counts": self.counts.copy(), "totals": self.totals.copy(), "factor": np.array(self.factor)}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        if not memory:
            return
        self.counts[:] = stored(memory, "counts", COUNTS, self.counts.shape)
        self.totals[:] = stored(memory, "totals", COUNTS, self.totals.shape)
        self.factor = float(stored(memory, "factor", Range(least=LEAST_FACTOR, most=1.0)))
        if not np.allclose(self.totals, self.factor * self.counts.sum(axis=0), rtol=SUM_TOLERANCE, atol=SUM_TOLERANCE):
            raise FileFormatError("totals do not hold the sums of counts")
