"""Credible intervals of transition probabilities and of what states emit, from draws of the posterior.

Draws are made one after the other and only the numbers that are asked for are kept, so tables of many symbols cost
time but no memory.
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

#: Draws of a posterior, the fewest that make an interval, and how many numbers all draws together may hold.
DRAWS, FEWEST, MOST_NUMBERS = 400, 40, 40_000_000
#: Quantiles that bound an interval of 95 per cent.
LEVELS = (0.025, 0.975)


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Bounds of 95 per cent.

    Attributes
    ----------
    transition : (2, K, K), lower and upper bounds; None where the chain was given or its posterior is no law
    emission : (2, K, n) of chosen entries of `Parameters.expectation()`; None likewise, or where these are too many
    source : what the draws are
    """

    transition: Array | None
    emission: Array | None
    source: str


def intervals(
    posterior: HMMPosterior, places: NDArray[np.int64], samples: Samples | None, rng: np.random.Generator
) -> Intervals | None:
    """Intervals of all transition probabilities and of chosen expectations; None where the posterior is no law.

    Parameters
    ----------
    posterior : of chain and emissions
    places : (K, n)
        For each state the entries of its expectation that are wanted.
    samples : draws of a sampler
        The transition probabilities of its best chain are taken where states keep their names.
    rng : source of the draws

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
        moves, source = _bounds(np.asarray(samples["transition"][samples.best_chain])), "draws of the best chain"
    else:
        moves = _drawn(lambda: chain.sample(rng).transition, len(places) ** 2)
    size = emission.mean().expectation().size
    emitted = _drawn(lambda: np.take_along_axis(emission.sample(rng).expectation(), places, axis=1), size)
    return None if moves is None and emitted is None else Intervals(moves, emitted, source)


def _drawn(draw: Callable[[], Array], size: int) -> Array | None:
    """Bounds from draws, each of which makes `size` numbers; None if these are too many, or there is no law."""
    draws = min(DRAWS, MOST_NUMBERS // size)
    if draws < FEWEST:
        return None
    try:
        return _bounds(np.array([draw() for _ in range(draws)]))
    except (SubchainError, ValueError, ArithmeticError):
        return None  # a flat prior without data: nothing to draw from


def _bounds(draws: Array) -> Array | None:
    """Lower and upper bounds; None if all draws are the same."""
    if not np.isfinite(draws).all() or not draws.size or (draws == draws[0]).all():
        return None
    return np.asarray(np.quantile(draws, LEVELS, axis=0))
