"""Log likelihoods of sequences and information criteria.

Log likelihoods of real-valued observations are logs of densities and may exceed zero.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences, missing_rows
from subchain.emissions import Frozen
from subchain.emissions.frozen import PartlyFrozen
from subchain.emissions.product import ProductPosterior
from subchain.engines.statistics import HMMStatistics
from subchain.errors import impossible_error
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.tasks.question import Question
from subchain.transitions.hdp.hierarchy import learns_top

Array = NDArray[np.float64]

#: Rows per block when observations are counted.
BLOCK = 1 << 18
#: A state is in use if its expected number of positions exceeds this.
USED = 0.5


def score_sequences(question: Question) -> Array:
    """Return the log likelihood of each sequence, (n_sequences,); −inf, with a warning, for impossible sequences."""
    totals, impossible = question.engine.scores(question.surrogate, question.part)
    if impossible:
        warnings.warn(str(impossible_error(impossible)), stacklevel=3)
    return totals


def n_observed(data: Sequences) -> int:
    """Return the number of positions at which anything was observed."""
    blocks = (np.asarray(data.values[start : start + BLOCK]) for start in range(0, data.n_observations, BLOCK))
    return data.n_observations - sum(int(missing_rows(block).sum()) for block in blocks)


def n_parameters(point: HMMPoint, prior: HMMPosterior, statistics: HMMStatistics) -> int:
    """Return the number of learned parameters, without those that were given or frozen.

    If the number of states was learned, parameters of states that are not in use are not counted.
    """
    chain = int(prior.chain.n_free())
    emission = _n_emission_parameters(prior.emission, point.emission)
    if not learns_top(prior.chain):
        return chain + emission
    visits = statistics.visits
    n_used = int((visits > USED).sum())
    return (n_used**2 - 1 if chain else 0) + emission * n_used // len(visits)


def _n_emission_parameters(prior: Any, parameters: Any) -> int:
    if isinstance(prior, Frozen):
        return 0
    if isinstance(prior, ProductPosterior):
        return sum(_n_emission_parameters(part, parameters.parts[name]) for name, part in prior.parts.items())
    if isinstance(prior, PartlyFrozen):
        return int(parameters.n_free * (1.0 - prior.kept.mean()))
    return int(parameters.n_free)


def aic(question: Question, n_free: int) -> float:
    """Return Akaike's information criterion, −2 log L + 2 p; smaller is better."""
    return float(2.0 * n_free - 2.0 * score_sequences(question).sum())


def bic(question: Question, n_free: int) -> float:
    """Return the Bayesian information criterion, −2 log L + p log n, where n is the number of observed positions."""
    return float(n_free * np.log(max(n_observed(question.data), 1)) - 2.0 * score_sequences(question).sum())
