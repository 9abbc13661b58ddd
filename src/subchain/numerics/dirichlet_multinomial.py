"""How probable counts are whose distributions have Dirichlet priors, and the priors that make them most probable.

Rows of counts n under concentrations c, with row sums N and C, have the log evidence

    Σ_r log Γ(C_r) − log Γ(C_r + N_r) + Σ_rw log Γ(c_rw + n_rw) − log Γ(c_rw).

A number that many concentrations share is multiplied by a ratio of sums of digamma differences (T. Minka, Estimating a
Dirichlet distribution, 2000, the fixed-point iteration of its section on the Pólya distribution); this never lowers the
evidence, and converges linearly. Two such steps are extrapolated (R. Varadhan and C. Roland, 2008), unless that would
lower it.

Counts need not be whole. With the expected counts of variational inference the log evidence is what is left of the
bound that depends on c once the parameters' posterior is the best for these counts, so the bound rises with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from subchain.numerics.special import log_rising

Array = NDArray[np.float64]

#: Numbers have settled when a step changes none of them by more than this fraction.
TOLERANCE = 1e-9
#: Extrapolated steps at most.
STEPS = 1000
#: Rounding lets an evidence that has risen appear to fall by this fraction.
ROUNDING = 1e-12


class TiedRows:
    """Rows of counts, whose concentrations are a few numbers times a pattern, and constants.

    Parameters
    ----------
    counts : (R, W)
    pattern : (R, W)
        What the numbers are multiplied by, zero for entries that cannot occur.
    constant : (R, W), optional
        What is added.
    per_column : bool
        Whether each column has a number of its own; else there is one for all.

    Examples
    --------
    >>> rows = TiedRows(np.array([[9.0, 1.0], [0.0, 8.0]]), np.ones((2, 2)))
    >>> maximise(rows, np.array([1.0]), (1e-3, 1e3)).numbers.round(3)
    array([0.255])
    """

    def __init__(self, counts: Array, pattern: Array, constant: Array | None = None, per_column: bool = False) -> None:
        possible = pattern > 0.0
        kept = (possible.sum(axis=1) > 1) & (np.where(possible, counts, 0.0).sum(axis=1) > 0.0)
        counts, pattern = np.where(possible, counts, 0.0)[kept], pattern[kept]
        constant = np.zeros_like(pattern) if constant is None else constant[kept]
        row, column = np.nonzero(counts)  # nothing was seen of the others, which only their rows' sums depend on
        self._counts, self._pattern, self._constant = (table[row, column] for table in (counts, pattern, constant))
        self._number = column if per_column else np.zeros_like(column)
        self._row_counts, self._row_constant = counts.sum(axis=1), constant.sum(axis=1)
        self._row_pattern = pattern if per_column else pattern.sum(axis=1, keepdims=True)

    @property
    def n_numbers(self) -> int:
        return int(self._row_pattern.shape[1])

    @property
    def tell(self) -> bool:
        """Whether the counts say anything about the numbers: rows of a single count are equally probable under all."""
        return bool((self._row_counts > 1.0 + 1e-9).any())

    def log_evidence(self, numbers: Array) -> float:
        """Log probability of the counts under the numbers, (n_numbers,)."""
        entries, rows = self._concentrations(numbers)
        return float(log_rising(entries, self._counts).sum() - log_rising(rows, self._row_counts).sum())

    def update(self, numbers: Array) -> Array:
        """Minka's step."""
        entries, rows = self._concentrations(numbers)
        gains = self._pattern * (digamma(entries + self._counts) - digamma(entries))
        gain = np.bincount(self._number, gains, minlength=self.n_numbers)
        loss = (digamma(rows + self._row_counts) - digamma(rows)) @ self._row_pattern
        return np.asarray(numbers * np.divide(gain, loss, out=np.ones_like(gain), where=loss > 0.0))

    def _concentrations(self, numbers: Array) -> tuple[Array, Array]:
        """Those of the entries that were seen, and the sums of the rows."""
        entries = self._constant + numbers[self._number] * self._pattern
        return entries, self._row_constant + self._row_pattern @ numbers


class Maximum(NamedTuple):
    """Where the evidence is largest.

    Attributes
    ----------
    numbers : (n_numbers,)
    log_evidence : the evidence there
    settled : whether the last step changed nothing any more
    """

    numbers: Array
    log_evidence: float
    settled: bool


def maximise(rows: TiedRows, start: Array, bounds: tuple[float, float]) -> Maximum:
    """The numbers between the bounds that make the counts most probable, as far as the way goes up from `start`."""
    low, high = np.log(bounds)

    def step(logs: Array) -> Array:
        with np.errstate(divide="ignore"):  # the number of a column that was never seen goes to zero
            return np.clip(np.log(rows.update(np.exp(logs))), low, high)

    at = np.clip(np.log(start), low, high)
    reached = rows.log_evidence(np.exp(at))
    for _ in range(STEPS):
        once = step(at)
        moved = once - at
        if np.abs(moved).max() < TOLERANCE:
            return Maximum(np.exp(once), rows.log_evidence(np.exp(once)), True)
        twice = step(once)
        bend = twice - once - moved
        bent = float(np.linalg.norm(bend))
        stride = float(np.linalg.norm(moved)) / bent if bent > 0.0 else 1.0
        ahead = step(np.clip(at + 2.0 * stride * moved + stride**2 * bend, low, high))
        found = rows.log_evidence(np.exp(ahead))
        if not found >= reached - ROUNDING * abs(reached):
            ahead, found = twice, rows.log_evidence(np.exp(twice))
        at, reached = ahead, found
    return Maximum(np.exp(at), reached, False)
