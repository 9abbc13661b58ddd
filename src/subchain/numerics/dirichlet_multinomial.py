"""Maximum-likelihood concentrations of Dirichlet-multinomial counts (empirical Bayes).

Rows of counts n with concentrations c, row sums N and C, have the log evidence

    Σ_r log Γ(C_r) − log Γ(C_r + N_r) + Σ_rw log Γ(c_rw + n_rw) − log Γ(c_rw).

The concentrations are c = constant + scale · pattern, with few scales. Minka's fixed-point iteration (Estimating a
Dirichlet distribution, 2000, section on the Pólya distribution) multiplies a scale by a ratio of sums of digamma
differences; it never lowers the evidence and converges linearly. Two steps are extrapolated (SQUAREM, R. Varadhan and
C. Roland, 2008) unless that would lower the evidence.

Counts need not be integers. For the expected counts of variational inference, the log evidence is the part of the bound
that depends on c once the parameters' posterior is optimal for these counts, so the bound rises with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from subchain.numerics.special import log_rising

Array = NDArray[np.float64]

#: The scales have converged when a step changes none of them by more than this fraction.
TOLERANCE = 1e-9
#: Maximum number of extrapolated steps.
STEPS = 1000
#: A decrease of the evidence by this fraction is attributed to rounding.
ROUNDING = 1e-12


class TiedRows:
    """Rows of counts with tied concentrations, constant + scale · pattern.

    Parameters
    ----------
    counts : (R, W)
    pattern : (R, W)
        Factors of the scales, zero for structural zeros.
    constant : (R, W), optional
        Known part of the concentrations; zero by default.
    per_column : bool
        Whether each column has its own scale; otherwise all entries share one.

    Examples
    --------
    >>> rows = TiedRows(np.array([[9.0, 1.0], [0.0, 8.0]]), np.ones((2, 2)))
    >>> maximise(rows, np.array([1.0]), (1e-3, 1e3)).scales.round(3)
    array([0.255])
    """

    def __init__(self, counts: Array, pattern: Array, constant: Array | None = None, per_column: bool = False) -> None:
        possible = pattern > 0.0
        kept = (possible.sum(axis=1) > 1) & (np.where(possible, counts, 0.0).sum(axis=1) > 0.0)
        counts, pattern = np.where(possible, counts, 0.0)[kept], pattern[kept]
        constant = np.zeros_like(pattern) if constant is None else constant[kept]
        row, column = np.nonzero(counts)  # the evidence depends on the other entries only through the row sums
        self._counts, self._pattern, self._constant = (table[row, column] for table in (counts, pattern, constant))
        self._scale_index = column if per_column else np.zeros_like(column)
        self._row_counts, self._row_constant = counts.sum(axis=1), constant.sum(axis=1)
        self._row_pattern = pattern if per_column else pattern.sum(axis=1, keepdims=True)

    @property
    def n_scales(self) -> int:
        """Number of scales: W if each column has its own, else 1."""
        return int(self._row_pattern.shape[1])

    @property
    def is_informative(self) -> bool:
        """Whether the evidence depends on the scales: a row with a single count is equally probable under all."""
        return bool((self._row_counts > 1.0 + 1e-9).any())

    def log_evidence(self, scales: Array) -> float:
        """Return the log evidence of the counts under `scales`, (n_scales,)."""
        entries, rows = self._concentrations(scales)
        return float(log_rising(entries, self._counts).sum() - log_rising(rows, self._row_counts).sum())

    def update(self, scales: Array) -> Array:
        """Return the scales after one step of Minka's fixed-point iteration, (n_scales,)."""
        entries, rows = self._concentrations(scales)
        gains = self._pattern * (digamma(entries + self._counts) - digamma(entries))
        gain = np.bincount(self._scale_index, gains, minlength=self.n_scales)
        loss = (digamma(rows + self._row_counts) - digamma(rows)) @ self._row_pattern
        return np.asarray(scales * np.divide(gain, loss, out=np.ones_like(gain), where=loss > 0.0))

    def _concentrations(self, scales: Array) -> tuple[Array, Array]:
        """Return the concentrations of the entries with positive counts, and the row sums of all concentrations."""
        entries = self._constant + scales[self._scale_index] * self._pattern
        return entries, self._row_constant + self._row_pattern @ scales


class Maximum(NamedTuple):
    """Result of `maximise`.

    Attributes
    ----------
    scales : (n_scales,)
    log_evidence : log evidence at these scales
    converged : whether the last step changed no scale by more than `TOLERANCE`
    """

    scales: Array
    log_evidence: float
    converged: bool


def maximise(rows: TiedRows, start: Array, bounds: tuple[float, float]) -> Maximum:
    """Return a local maximum of the log evidence over scales within `bounds`, found by ascent from `start`."""
    low, high = np.log(bounds)

    def step(logs: Array) -> Array:
        with np.errstate(divide="ignore"):  # the scale of a column without counts goes to zero
            return np.clip(np.log(rows.update(np.exp(logs))), low, high)

    current = np.clip(np.log(start), low, high)
    evidence = rows.log_evidence(np.exp(current))
    for _ in range(STEPS):
        once = step(current)
        change = once - current
        if np.abs(change).max() < TOLERANCE:
            return Maximum(np.exp(once), rows.log_evidence(np.exp(once)), True)
        twice = step(once)
        curvature = twice - once - change
        norm = float(np.linalg.norm(curvature))
        stride = float(np.linalg.norm(change)) / norm if norm > 0.0 else 1.0
        proposal = step(np.clip(current + 2.0 * stride * change + stride**2 * curvature, low, high))
        proposed = rows.log_evidence(np.exp(proposal))
        if not proposed >= evidence - ROUNDING * abs(evidence):
            proposal, proposed = twice, rows.log_evidence(np.exp(twice))
        current, evidence = proposal, proposed
    return Maximum(np.exp(current), evidence, False)
