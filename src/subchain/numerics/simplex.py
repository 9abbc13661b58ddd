"""Dirichlet distributions along one axis of an array.

Emission tables, transition rows and initial distributions all need the same few formulas; they are here once. A
concentration of exactly zero marks an entry that cannot occur: its probability is zero, and it takes part in nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.special import digamma_and_gammaln, log_rising

Array = NDArray[np.float64]


class LogMoments(NamedTuple):
    """Per entry E[log p] and log Γ(c) (both 0 where the concentration is 0), and per distribution log Γ(Σ c)."""

    expected: Array
    gammaln: Array
    total_gammaln: Array


def normalized(weights: Array, axis: int) -> Array:
    """Weights divided by their sums; zeros where the sum is zero."""
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total > 0.0, total, 1.0)


def mode(concentration: Array, axis: int) -> Array:
    """Most probable point; the uniform one over possible entries where no entry stands out."""
    excess = np.maximum(concentration - 1.0, 0.0)
    flat = excess.sum(axis=axis, keepdims=True) <= 0.0
    if flat.any():
        excess = np.where(flat, (concentration > 0.0).astype(np.float64), excess)
    return normalized(excess, axis)


def log_moments(concentration: Array, axis: int) -> LogMoments:
    """Expected logarithms and log gammas of concentrations."""
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
    """Kullback-Leibler divergence of Dirichlet distributions, summed over all of them."""
    return float(
        ours_moments.total_gammaln.sum()
        - theirs_moments.total_gammaln.sum()
        - ours_moments.gammaln.sum()
        + theirs_moments.gammaln.sum()
        + ((ours - theirs) * ours_moments.expected).sum()
    )


def log_evidence(concentration: Array, counts: Array, axis: int) -> float:
    """Log probability of counts, in a given order, with the distributions summed out; counts need not be whole."""
    seen = (counts > 0.0) & (concentration > 0.0)
    total, counted = concentration.sum(axis=axis), np.where(seen, counts, 0.0).sum(axis=axis)
    used = counted > 0.0
    entries = log_rising(concentration[seen], counts[seen]).sum()
    return float(entries - log_rising(total[used], counted[used]).sum())


def logs(weights: Array) -> Array:
    """Logarithms of weights, −inf where they are zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


def log_weight(counts: Array, probabilities: Array) -> float:
    """Σ counts · log probabilities; what has not been counted does not matter."""
    used = counts > 0.0
    with np.errstate(divide="ignore"):
        return float((counts[used] * np.log(probabilities[used])).sum())


def log_density(concentration: Array, probabilities: Array) -> float:
    """Σ (c − 1) log p over possible entries: the log density up to a constant."""
    excess = np.where(concentration > 0.0, concentration - 1.0, 0.0)
    used = excess != 0.0
    with np.errstate(divide="ignore"):
        return float((excess[used] * np.log(probabilities[used])).sum())


def draw(concentration: Array, axis: int, rng: np.random.Generator) -> Array:
    """Random points."""
    gammas = np.where(concentration > 0.0, np.maximum(rng.gamma(concentration), 1e-300), 0.0)
    return normalized(gammas, axis)


def draw_uneven(concentration: Array, rng: np.random.Generator) -> Array:
    """Random points along the last axis; for concentrations so small that nearly all entries are zero to rounding.

    The entries of such a point cannot be told from zero before they are compared, so they are drawn in log space.
    """
    logs = log_gammas(concentration, rng)
    largest = logs.max(axis=-1, keepdims=True)
    return normalized(np.exp(logs - np.where(largest > -np.inf, largest, 0.0)), -1)


def log_gammas(shape: Array, rng: np.random.Generator) -> Array:
    """Logarithms of gamma variables, however small their shapes are; −inf where a shape is zero.

    A gamma variable of shape a is one of shape a + 1 times U to the power 1 / a.
    """
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential(shape.shape) / shape
