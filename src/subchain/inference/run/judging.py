"""How stochastic runs are judged: by an excerpt of the data, since objectives of minibatches are too noisy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Statistics

if TYPE_CHECKING:
    from subchain.inference.run.algorithm import Algorithm


class Explained(Protocol):
    """Data that weights can explain, such as an excerpt."""

    def statistics(self, weights: Point) -> Statistics: ...


def explained(
    algorithm: Algorithm, data: Explained, prior: Posterior, statistics: Statistics
) -> tuple[Statistics, float]:
    """Return the expected statistics of data, and what the prior adds to their log normaliser to make an objective.

    The objective is the variational bound; for algorithms that estimate parameters under flat priors it is the log
    likelihood.
    """
    posterior = prior.update(statistics)
    if algorithm.flat:
        return data.statistics(algorithm.point(posterior, statistics, None)[0]), 0.0
    return data.statistics(posterior.expected_log()), prior.log_hyperprior() - posterior.kl(prior)
