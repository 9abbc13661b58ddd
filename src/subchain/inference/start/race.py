"""A race of starts: several kinds run for a few iterations on an excerpt of the data, and the best goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from subchain.engines.statistics import HMMStatistics
from subchain.errors import ImpossibleSequenceError
from subchain.structures.chain.excerpts import Excerpt
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.structure import Chains

#: Stretches of the excerpt, their length, and iterations.
STRETCHES, LENGTH, ITERATIONS = 64, 512, 15
#: Share of the first guess in what is returned: the excerpt may lack symbols that the data have.
FIRST = 0.02
#: Bounds that differ by less than this share are equal, and the first of the starts wins: rounding does not decide.
TIE = 1e-9


def race(
    chains: Chains, prior: HMMPosterior, starts: Mapping[str, Callable[[], HMMStatistics]], rng: np.random.Generator
) -> tuple[str, HMMStatistics]:
    """Return the name and the statistics of the start that explains an excerpt best after a few iterations.

    Parameters
    ----------
    chains : the data
    prior : a prior with a density, under which the iterations are those of variational inference
    starts : functions that return statistics to begin with, by name
    rng : draws the excerpt
    """
    excerpt = Excerpt(chains, LENGTH, STRETCHES, rng)
    ran = {name: _run(excerpt, prior, start()) for name, start in starts.items()}
    highest = max(bound for bound, _ in ran.values())
    enough = highest - TIE * abs(highest) if highest > -np.inf else highest
    best = next(name for name, (bound, _) in ran.items() if bound >= enough)
    return best, ran[best][1]


def _run(excerpt: Excerpt, prior: HMMPosterior, start: HMMStatistics) -> tuple[float, HMMStatistics]:
    """Return the bound of the excerpt after a few iterations from a start, and the statistics."""
    statistics, bound = start, -np.inf
    try:
        for _ in range(ITERATIONS):
            posterior = prior.update(statistics)
            statistics = excerpt.statistics(posterior.expected_log())
            bound = statistics.log_normalizer - posterior.kl(prior)
    except ImpossibleSequenceError:  # evidence of an excerpt that the start did not see
        return -np.inf, start
    return bound, statistics.scale(1.0 - FIRST) + start.scale(FIRST)
