"""Normal pseudo-residuals: a check of the fit, one observation at a time (Zucchini, MacDonald & Langrock 2016, ch. 6).

The distribution function of an observation given others, at the observed value, is uniform under the true model, and
its normal quantile is standard normal. Of discrete data it jumps at the value: the residual is then a segment between
two quantiles, with a point in the middle, the quantile of the mean of the two probabilities. Both tails are kept in log
space, so that outliers have finite residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from subchain.data import is_missing
from subchain.engines import Engine
from subchain.engines.results import MarginalBlock
from subchain.errors import unknown_name
from subchain.tasks.question import Question

Array = NDArray[np.float64]

#: What the states of a position are predicted from, by the kind of residual.
KINDS: dict[str, Callable[[Engine], Any]] = {
    "ordinary": lambda engine: engine.leave_out,
    "forecast": lambda engine: engine.predict,
}


class PseudoResiduals(NamedTuple):
    """Normal pseudo-residuals of a sequence; each array has the shape of the data, nan where an entry is missing.

    Attributes
    ----------
    lower, upper : ends of each residual's segment; equal for real numbers
    mid : residual in the middle of the segment
    """

    lower: Array
    mid: Array
    upper: Array


def pseudo_residuals(question: Question, kind: str) -> list[PseudoResiduals]:
    """Return the pseudo-residuals of each sequence."""
    if kind not in KINDS:
        raise unknown_name("kind of pseudo-residuals", kind, KINDS)
    values, emission = question.data.values, question.point.emission
    found = np.full((3, *values.shape), np.nan)

    def keep(block: MarginalBlock) -> None:
        here = np.take(values, block.positions, axis=0)
        with np.errstate(divide="ignore"):
            log_weights = np.log(block.table.T)[:, :, None]
        tails = np.logaddexp.reduce(emission.log_tails(here) + log_weights, axis=2)  # (3, n, D): a mixture over states
        residuals = np.stack(segments(*tails)).reshape(3, *here.shape)
        found[:, block.positions] = np.where(is_missing(here), np.nan, residuals)

    KINDS[kind](question.engine)(question.surrogate, question.part.unobserved, keep).checked()
    split = [question.data.split(table) for table in found]
    return [PseudoResiduals(*parts) for parts in zip(*split, strict=True)]


def segments(below: Array, at: Array, above: Array) -> tuple[Array, Array, Array]:
    """Return lower end, middle and upper end of residuals, given log P(X < x), log P(X = x) and log P(X > x)."""
    half = at - np.log(2.0)
    return (
        _quantile(below, np.logaddexp(at, above)),
        _quantile(np.logaddexp(below, half), np.logaddexp(half, above)),
        _quantile(np.logaddexp(below, at), above),
    )


def _quantile(log_lower: Array, log_upper: Array) -> Array:
    """Return the normal quantile of a probability, given the logarithms of it and of its complement."""
    smaller = np.minimum(np.minimum(log_lower, log_upper), 0.0)
    return np.where(log_lower <= log_upper, ndtri_exp(smaller), -ndtri_exp(smaller))
