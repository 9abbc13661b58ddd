"""Dirichlet distributions along one axis of an array.

Emission tables, transition rows and initial distributions use these formulas. A concentration of exactly zero marks a
structural zero: the entry has probability zero and is left out of all sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.special import digamma_and_gammaln, log_rising

Array = NDArray[np.float64]


class LogMoments(NamedTuple):
    """Expected logarithms and log gamma functions of Dirichlet distributions.

    Attributes
    ----------
    expected : E[log p] of each entry, 0 for structural zeros
    gammaln : log Γ(c) of each entry, 0 for structural zeros
    total_gammaln : log Γ(Σ c) of each distribution
    """

    expected: Array
    gammaln: Array
    total_gammaln: Array


def normalized(weights: Array, axis: int) -> Array:
    """Return the weights divided by their sums along `axis`; zeros where the sum is zero."""
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total > 0.0, total, 1.0)


def mode(concentration: Array, axis: int) -> Array:
    """Return the mode, proportional to max(c − 1, 0); where no concentration exceeds 1, the uniform distribution."""
    excess = concentration - 1.0
    np.maximum(excess, 0.0, out=excess)
    total = excess.sum(axis=axis, keepdims=True)
    flat = total <= 0.0
    if flat.any():
        return normalized(np.where(flat, (concentration > 0.0).astype(np.float64), excess), axis)
    excess /= total
    return excess


def log_moments(concentration: Array, axis: int) -> LogMoments:
    """Return E[log p], log Γ(c) and log Γ(Σ c) of Dirichlet distributions along `axis`."""
    possible = concentration > 0.0
    all_possible = bool(possible.all())
    total = concentration.sum(axis=axis, keepdims=True)
    digamma, gammaln = digamma_and_gammaln(concentration if all_possible else np.where(possible, concentration, 1.0))
    total_digamma, total_gammaln = digamma_and_gammaln(np.where(total > 0.0, total, 1.0))
    expected = digamma - total_digamma
    if not all_possible:
        expected = np.where(possible, expected, 0.0)
        gammaln = np.where(possible, gammaln, 0.0)
    return LogMoments(expected, gammaln, total_gammaln)


def divergence(ours: Array, ours_moments: LogMoments, theirs: Array, theirs_moments: LogMoments) -> float:
    """Return KL(ours ‖ theirs) of Dirichlet distributions, summed over all distributions."""
    return float(
        ours_moments.total_gammaln.sum()
        - theirs_moments.total_gammaln.sum()
        - ours_moments.gammaln.sum()
        + theirs_moments.gammaln.sum()
        + ((ours - theirs) * ours_moments.expected).sum()
    )


def log_evidence(concentration: Array, counts: Array, axis: int) -> float:
    """Return the Dirichlet-multinomial log probability of counts, for one given order of the observations.

    The distributions are integrated out. Counts need not be integers.
    """
    seen = (counts > 0.0) & (concentration > 0.0)
    total, counted = concentration.sum(axis=axis), np.where(seen, counts, 0.0).sum(axis=axis)
    used = counted > 0.0
    entries = log_rising(concentration[seen], counts[seen]).sum()
    return float(entries - log_rising(total[used], counted[used]).sum())


def logs(weights: Array) -> Array:
    """Return log(weights), −inf where a weight is zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


def log_weight(counts: Array, probabilities: Array) -> float:
    """Return Σ counts · log probabilities over the entries with positive counts."""
    used = counts > 0.0
    with np.errstate(divide="ignore"):
        return float((counts[used] * np.log(probabilities[used])).sum())


def log_density(concentration: Array, probabilities: Array) -> float:
    """Return the Dirichlet log density up to a constant, Σ (c − 1) log p without structural zeros."""
    used = (concentration > 0.0) & (concentration != 1.0)
    if not used.any():
        return 0.0
    with np.errstate(divide="ignore"):
        return float(((concentration[used] - 1.0) * np.log(probabilities[used])).sum())


def draw(concentration: Array, axis: int, rng: np.random.Generator) -> Array:
    """Draw one probability vector per distribution along `axis`; same shape as `concentration`."""
    gammas = np.where(concentration > 0.0, np.maximum(rng.gamma(concentration), 1e-300), 0.0)
    return normalized(gammas, axis)


def draw_uneven(concentration: Array, rng: np.random.Generator) -> Array:
    """Draw one probability vector per distribution along the last axis; for very small concentrations.

    All gamma variables of such a distribution may underflow, so they are drawn and compared in log space.
    """
    logs = log_gammas(concentration, rng)
    largest = logs.max(axis=-1, keepdims=True)
    return normalized(np.exp(logs - np.where(largest > -np.inf, largest, 0.0)), -1)


def log_gammas(shape: Array, rng: np.random.Generator) -> Array:
    """Draw logarithms of gamma variables, accurate for arbitrarily small shapes; −inf where a shape is zero.

    A gamma variable of shape a is distributed as one of shape a + 1 times U^(1/a), with U uniform on (0, 1).
    """
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape
