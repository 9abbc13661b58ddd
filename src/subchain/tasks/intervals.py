"""Credible intervals of transition probabilities and of emission expectations, from posterior draws.

Draws are made one after the other and only the requested entries are kept, so that large vocabularies cost time but
little memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from subchain.core.samples import Samples
from subchain.errors import SubchainError
from subchain.structures.chain.model import HMMPosterior

Array = NDArray[np.float64]

#: Number of draws, smallest number for an interval, and largest number of entries of all draws together.
DRAWS, FEWEST, MOST_NUMBERS = 400, 40, 40_000_000
#: Quantiles that bound a 95 per cent interval.
LEVELS = (0.025, 0.975)


@dataclasses.dataclass(frozen=True)
class Intervals:
    """95 per cent credible intervals.

    Attributes
    ----------
    transition : (2, K, K), lower and upper bounds; None if the chain was given or its posterior is improper
    emission : (2, K, n) of chosen entries of `Parameters.expectation()`; None likewise, or if there are too many
    source : description of the draws
    """

    transition: Array | None
    emission: Array | None
    source: str


def intervals(
    posterior: HMMPosterior, places: NDArray[np.int64], samples: Samples | None, rng: np.random.Generator
) -> Intervals | None:
    """Return intervals of all transition probabilities and of chosen expectations; None if there is neither.

    Parameters
    ----------
    posterior : of chain and emissions
    places : (K, n)
        For each state, the columns of `Parameters.expectation()` to use.
    samples : draws of a sampler
        The transition probabilities of its best chain are used if the states keep their identities.
    rng : random number generator of the draws

    Examples
    --------
    >>> from subchain import HMM
    >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
    >>> found = intervals(model.posterior_, np.array([[0], [1]]), None, np.random.default_rng(0))
    >>> bool((found.transition[0] <= model.transition_).all() and (model.transition_ <= found.transition[1]).all())
    True
    """
    chain, emission = posterior.chain, posterior.emission
    source = "draws from the posterior"
    if samples is not None and "transition" in samples and "n_states" not in samples:
        rows, source = _bounds(np.asarray(samples["transition"][samples.best_chain])), "draws of the best chain"
    else:
        rows = _drawn(lambda: chain.sample(rng).transition, len(places) ** 2)
    size = emission.mean().expectation().size
    emitted = _drawn(lambda: np.take_along_axis(emission.sample(rng).expectation(), places, axis=1), size)
    return None if rows is None and emitted is None else Intervals(rows, emitted, source)


def _drawn(draw: Callable[[], Array], size: int) -> Array | None:
    """Return bounds from draws of `size` entries each; None if these are too many or the posterior is improper."""
    draws = min(DRAWS, MOST_NUMBERS // size)
    if draws < FEWEST:
        return None
    try:
        return _bounds(np.array([draw() for _ in range(draws)]))
    except (SubchainError, ValueError, ArithmeticError):
        return None  # the posterior of a state without data under a flat prior is improper


def _bounds(draws: Array) -> Array | None:
    """Return lower and upper bounds over axis 0, (2, …); None if all draws are equal or one is not finite."""
    if not np.isfinite(draws).all() or not draws.size or (draws == draws[0]).all():
        return None
    return np.asarray(np.quantile(draws, LEVELS, axis=0))
