"""Code shared by the families of counts (Poisson, Bernoulli): reading and checking data, and their sums.

A block of data is (n, D): integers, −1 where an entry is missing, or floating-point numbers, nan where it is missing.
It is turned into two (D, n) tables, the counts (0 where missing) and an indicator of known entries, so that likelihoods
and sums are matrix products.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import COUNTS
from subchain.core.records import Sums, array
from subchain.data.missing import is_missing
from subchain.data.sequences import Sequences
from subchain.emissions.base import Emission, Likelihood, Table, Values
from subchain.emissions.checks import as_matrix, as_vector, first_where, suits_kernels, where_is
from subchain.errors import InputError
from subchain.numerics.special import log_factorial

if TYPE_CHECKING:
    from subchain.emissions.compiled.counts import LinearCounts

#: Largest count: beyond, doubles do not represent every whole number.
LARGEST_COUNT = 2.0**53
#: Expected counts below this one are lost in the rounding of a prior's parameters, to which they are added.
EMPTY = 1e-12
#: Logarithms of the factorials of small counts.
LOG_FACTORIALS = log_factorial(np.arange(1024.0))
#: Rows per block of a pass over all data.
PASS_ROWS = 1 << 18
#: Share of all observations in the sums of random starts, if these are those of a sample.
SHARE_OF_ALL = 0.02


class Block(NamedTuple):
    """Counts of n positions, `amounts` (D, n), 0 where missing; `known` (D, n) is 0 where missing, else 1.

    `known` is None if nothing is missing.
    """

    amounts: NDArray[np.float64]
    known: NDArray[np.float64] | None


def read_block(values: Values) -> Block:
    """Transpose a block of observations, (n, D) or (n,), and separate counts from missing entries."""
    rows = as_matrix(values)
    amounts = rows.T.astype(np.float64, copy=False)
    missing = is_missing(rows).T
    if not missing.any():
        return Block(amounts, None)
    return Block(np.where(missing, 0.0, amounts), (~missing).astype(np.float64))


def weigh(weights: NDArray[np.float64], known: NDArray[np.float64] | None) -> Table:
    """Sum weights (K, D) over the known columns of each position; (K, n), or (K, 1) if everything is known."""
    return weights.sum(axis=1)[:, None] if known is None else weights @ known


def weigh_logs(logs: NDArray[np.float64], amounts: NDArray[np.float64]) -> Table:
    """Return logs (K, D) @ amounts (D, n) with 0 · −inf = 0; amounts must not be negative."""
    infinite = np.isneginf(logs)
    if not infinite.any():
        return logs @ amounts
    total: Table = np.where(infinite, 0.0, logs) @ amounts
    total[infinite.astype(np.float64) @ amounts > 0.0] = -np.inf
    return total


class CountEmission(Emission):
    """Base class of families of counts; a sample of the data may have nothing but zeros in a column."""

    def random_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> Sums:
        """Return sums for a random start; see `Emission.random_sums`."""
        sums, others = super().random_sums(data, reference, index, rng), _of_all(data, reference, index)
        return sums if others is None else sums + others.scale(SHARE_OF_ALL)

    def unseen_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> Sums | None:
        """Return the sums of all observations, which belong to all states alike; None if `index` has all of them."""
        return _of_all(data, reference, index)


def _of_all(data: Sequences, reference: Likelihood, index: NDArray[np.int64]) -> Sums | None:
    """Return the sums of all observations, of all states alike; None if `index` has all of them."""
    if len(index) == data.n_observations:
        return None
    sums, n_states = reference.zeros(), reference.n_states
    rows = max(PASS_ROWS // n_states, 1)
    for first in range(0, data.n_observations, rows):
        values = data.values[first : first + rows]
        reference.accumulate(values, np.full((n_states, len(values)), 1.0 / n_states), sums)
    return sums


@dataclasses.dataclass
class CountSums(Sums):
    """Expected number of known entries (`weight`) and expected sum of the counts (`total`), each (K, D)."""

    weight: NDArray[np.float64] = array("KD", COUNTS)
    total: NDArray[np.float64] = array("KD", COUNTS)


class CountLikelihood(Likelihood):
    """Likelihood of counts in D columns that are independent given the state; missing entries are ignored singly."""

    @property
    @abstractmethod
    def dimensions(self) -> tuple[int, ...]:
        """Number of states and number of columns, (K, D)."""

    @property
    def n_states(self) -> int:
        return self.dimensions[0]

    @property
    def n_columns(self) -> int:
        return self.dimensions[1]

    def scaled(self, values: Values, out: Table) -> NDArray[np.float64]:
        """Compute likelihoods once per distinct count of a single column, instead of an exponential per position."""
        if self.n_columns > 1:
            return super().scaled(values, out)
        counts = as_codes(as_vector(values))
        largest = int(counts.max(initial=0))
        if largest > len(counts) // 4:
            return super().scaled(values, out)
        table = np.empty((self.n_states, largest + 2))
        shift = super().scaled(np.append(np.arange(largest + 1), -1), table)
        np.take(table, counts, axis=1, out=out, mode="wrap")
        return np.asarray(shift[counts])

    def linear(self) -> tuple[NDArray[np.float64], NDArray[np.float64], bool] | None:
        """Return slopes and constants (K, D) of log likelihoods that are linear in a count, and whether less log x!.

        None where they are not linear, or where a constant is not finite.
        """
        return None

    def compiled(self, values: Values) -> LinearCounts | None:
        from subchain.emissions.compiled.counts import LinearCounts

        form, rows = self.linear(), as_matrix(np.asarray(values))
        if form is None or rows.shape[1] != self.n_columns or not suits_kernels(rows):
            return None
        slopes, constants, has_factorials = form
        return LinearCounts(rows, slopes, constants, LOG_FACTORIALS if has_factorials else LOG_FACTORIALS[:0])

    def zeros(self) -> CountSums:
        return CountSums(np.zeros(self.dimensions), np.zeros(self.dimensions))

    def accumulate(self, values: Values, marginals: Table, sums: CountSums) -> None:
        amounts, known = read_block(values)
        sums.total += marginals @ amounts.T
        sums.weight += marginals.sum(axis=1)[:, None] if known is None else marginals @ known.T


def as_codes(column: Values) -> NDArray[Any]:
    """Return whole numbers as integers, −1 where missing."""
    if column.dtype.kind != "f":
        return column
    return np.where(np.isnan(column), -1.0, column).astype(np.int64)


def check_counts(data: Sequences, family: str, expected: str, largest: float = LARGEST_COUNT) -> None:
    """Raise an `InputError` at the first known entry that is not a whole number from 0 to `largest`."""

    def unusable(block: Values) -> NDArray[np.bool_]:
        usable = (block >= 0) & (block <= np.float64(largest)) & (np.floor(block) == block)
        return np.asarray(~(usable | is_missing(block)))

    if data.values.dtype.kind in "iu":
        bottom, top = data.value_range()
        if bottom >= -1 and top <= largest:
            return
    position = first_where(data, unusable)
    if position < 0:
        return
    row = as_matrix(np.asarray(data.values[position : position + 1]))
    column = int(unusable(row)[0].argmax())
    label = column if data.columns is None else repr(data.columns[column])
    raise InputError(
        f"{family} data hold {row[0, column]} at {where_is(data, position)}, column {label}; expected {expected}, "
        "or −1 in integer data and nan in floating-point data where an entry is missing."
    )


def column_means(data: Sequences) -> NDArray[np.float64]:
    """Return the mean count of each column over its known entries, (D,); totals count as at least 1, so none is 0."""
    total, known = np.zeros(data.n_features), np.zeros(data.n_features)
    for start in range(0, data.n_observations, PASS_ROWS):
        block = read_block(np.asarray(data.values[start : start + PASS_ROWS]))
        total += block.amounts.sum(axis=1)
        known += block.amounts.shape[1] if block.known is None else block.known.sum(axis=1)
    return np.maximum(total, 1.0) / np.maximum(known, 1.0)


def filled_rows(data: Sequences, index: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the chosen rows, (len(index), D), with missing entries replaced by their column's mean over these rows."""
    amounts, known = read_block(np.take(data.values, index, axis=0))
    if known is not None:
        mean = amounts.sum(axis=1) / np.maximum(known.sum(axis=1), 1.0)
        amounts = amounts + (1.0 - known) * mean[:, None]
    return np.ascontiguousarray(amounts.T)
