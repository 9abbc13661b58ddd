"""Where runs begin.

A start is a set of statistics, those of guessed hidden states: at random, by clustering the observations, by equal
parts of the sequences, by positions whose states are known, or by exponential draws. Or it is another model, whose
parameters are taken as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import Sums
from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.base import Emission, Likelihood
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError
from subchain.inference.start.kmeans import cluster
from subchain.inference.start.stages import equal_parts, order_of_states
from subchain.structures.chain.model import HMMPoint
from subchain.transitions.sums import ChainSums

Index = NDArray[np.int64]

STARTS = ("auto", "context", "exponential", "kmeans", "known", "parts", "random", "stochastic")

#: Observations that a start looks at.
SAMPLE = 1 << 16
#: Length of the stretches that the sample consists of, so that it holds transitions.
STRETCH = 256
#: Neighbours on either side that count in a context, and the most numbers that stand for a symbol.
NEIGHBOURS, DIMENSIONS = 2, 64
#: Positions of a context: the middle one, those before it and those after it in turn.
CONTEXT = 2 * NEIGHBOURS + 1
#: Share of the transitions that are guessed to go anywhere.
ANYWHERE = 0.1
#: Share of an observation that is guessed to belong to any state: no state begins with a probability of exactly zero.
DOUBT = 0.02
#: Numbers of a table of guessed marginals.
TABLE_VALUES = 1 << 24
#: Evidence says something where it makes a state so many times as likely as if it said nothing.
TELLING = 1.1
_NONE = np.empty(0, dtype=np.int64)


def start_statistics(
    data: Sequences,
    emission: Emission,
    reference: HMMPoint,
    init: str,
    rng: np.random.Generator,
    evidence: Evidence | None = None,
) -> HMMStatistics:
    """Return statistics to begin with, by the rule called `init`, in agreement with states that are known.

    Parameters
    ----------
    reference : a chain and emissions at some sensible point, which accumulate
    init : "kmeans" (where observations have distances, else "exponential"), "context" (k-means on observations and
        their neighbours, also for symbols), "random" (nearest of K random observations), "parts" (equal parts of each
        sequence, for chains that never return to a state), "known" (positions whose states are known, and no others),
        "exponential" (random counts)
    """
    likely, chain = reference.emission, reference.chain.operator.zeros()
    if init == "known":
        positions, states = (_NONE, _NONE) if evidence is None else evidence.known()
        if not len(positions):
            raise InputError("init='known' needs positions whose states are known; give them with states=.")
        chosen = _sample(len(positions), rng)
        guessed = _guessed(data, likely, positions[chosen], states[chosen], chain)
        return _with_unseen(guessed, data, emission, likely, positions[chosen], rng)
    index = _sample(data.n_observations, rng)
    known = _by_evidence(data, evidence, index)
    if init == "parts":
        order = order_of_states(reference.chain.operator)
        if order is None:
            raise InputError("init='parts' is for chains that never return to a state, such as mask=left_right.")
        labels = equal_parts(data, index, order)
        guessed = _guessed(data, likely, index, labels if known is None else _possible(labels, known), chain)
        return _with_unseen(guessed, data, emission, likely, index, rng)
    features = None if init == "exponential" else emission.features(data, index)
    is_symbolic = features is None
    if init == "context":
        features = _in_context(data, index, _of_symbols(data, index, rng) if is_symbolic else features)
    if features is None or not len(features):
        sums = _exponential(data, emission, likely, index, known, rng)
        return HMMStatistics(_exponential_chain(data, chain, rng), sums)
    labels = _labels(features, _seen(data, likely, index), likely.n_states, rng, init)
    found = _guessed(data, likely, index, labels if known is None else _in_agreement(labels, known), chain)
    return _with_unseen(found, data, emission, likely, index, rng)


def _with_unseen(
    found: HMMStatistics, data: Sequences, emission: Emission, reference: Likelihood, index: Index,
    rng: np.random.Generator,
) -> HMMStatistics:  # fmt: skip
    """Statistics with a share of what the sample may lack and must not be impossible; see `Emission.unseen_sums`."""
    unseen = emission.unseen_sums(data, reference, index, rng)
    return found if unseen is None else HMMStatistics(found.chain, found.emission + unseen.scale(DOUBT))


def _of_symbols(data: Sequences, index: Index, rng: np.random.Generator) -> NDArray[np.float64] | None:
    """Symbols as points that are as far from each other; None where observations are not single symbols."""
    if data.values.ndim > 1 or data.values.dtype.kind not in "iu":
        return None
    symbols = np.take(data.values, index)
    known, code = np.unique(symbols, return_inverse=True)
    if len(known) <= DIMENSIONS:
        points = np.eye(len(known))
    else:  # random directions are nearly as far from each other
        points = rng.standard_normal((len(known), DIMENSIONS)) / np.sqrt(DIMENSIONS)
    points[known < 0] = 0.0
    return np.asarray(points[code])


def _in_context(data: Sequences, index: Index, features: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Features of sampled positions beside those of their neighbours, zero where a sequence or a stretch ends."""
    if features is None or not len(features):
        return features
    sequences = np.searchsorted(data.offsets, index, side="right")
    out = np.zeros((len(features), CONTEXT, features.shape[1]))
    out[:, 0] = features
    for step in range(1, NEIGHBOURS + 1):
        joined = np.flatnonzero((index[step:] - index[:-step] == step) & (sequences[step:] == sequences[:-step]))
        out[step + joined, 2 * step - 1], out[joined, 2 * step] = features[joined], features[step + joined]
    return out.reshape(len(features), -1)


def _sample(n: int, rng: np.random.Generator) -> Index:
    """Return the numbers from 0 to n - 1, or if they are many random stretches of them in their order."""
    if n <= SAMPLE:
        return np.arange(n)
    stretches = rng.choice(n // STRETCH, SAMPLE // STRETCH, replace=False)
    return (np.sort(stretches)[:, None] * STRETCH + np.arange(STRETCH)).ravel()


def _by_evidence(data: Sequences, evidence: Evidence | None, index: Index) -> NDArray[np.float64] | None:
    """What evidence alone says of the states of sampled positions, (K, n); None if there is none."""
    if evidence is None:
        return None
    logs = evidence.log_weights(index, np.take(data.values, index, axis=0))
    weights = np.exp(logs - logs.max(axis=0))
    return np.asarray(weights / weights.sum(axis=0))


def _seen(data: Sequences, reference: Likelihood, index: Index) -> NDArray[np.bool_]:
    """Sampled positions at which something was observed: where nothing was, every state is as likely as the other."""
    return (reference.log_likelihood(np.take(data.values, index, axis=0)) != 0.0).any(axis=0)


def _labels(
    features: NDArray[np.float64], seen: NDArray[np.bool_], n_states: int, rng: np.random.Generator, init: str
) -> Index:
    """Clusters of the rows that were seen; the others continue what was last seen."""
    if not seen.any():
        return rng.integers(n_states, size=len(features))
    rows = features if seen.all() else features[seen]
    found = (_nearest_of_random if init == "random" else cluster)(rows, n_states, rng)
    return found[np.maximum(np.cumsum(seen) - 1, 0)]


def _in_agreement(labels: Index, known: NDArray[np.float64]) -> Index:
    """Cluster labels renamed so that evidence speaks for them as much as possible."""
    from scipy.optimize import linear_sum_assignment

    n_states = len(known)
    agreement = np.zeros((n_states, n_states))
    np.add.at(agreement, labels, (known - 1.0 / n_states).T)
    return _possible(linear_sum_assignment(agreement, maximize=True)[1][labels], known)


def _possible(labels: Index, known: NDArray[np.float64]) -> Index:
    """Labels of which those that evidence excludes are replaced by one of the likeliest.

    It depends on the label which, so that clusters stay apart.
    """
    labels = labels.copy()
    excluded = np.flatnonzero(known[labels, np.arange(len(labels))] == 0.0)
    likeliest = known[:, excluded] >= known[:, excluded].max(axis=0) * (1.0 - 1e-9)
    wanted = 1 + labels[excluded] % likeliest.sum(axis=0)
    labels[excluded] = (likeliest & (np.cumsum(likeliest, axis=0) == wanted)).argmax(axis=0)
    return labels


def _exponential(
    data: Sequences, emission: Emission, reference: Likelihood, index: Index, known: NDArray[np.float64] | None,
    rng: np.random.Generator,
) -> Sums:  # fmt: skip
    """Sums of the family that are drawn at random, and those of observations whose states are known."""
    sums = emission.random_sums(data, reference, index, rng)
    told = np.zeros(len(index), dtype=bool) if known is None else known.max(axis=0) > TELLING / reference.n_states
    if known is not None and told.any():
        labelled = reference.zeros()
        reference.accumulate(np.take(data.values, index[told], axis=0), np.ascontiguousarray(known[:, told]), labelled)
        sums = sums + labelled.scale(data.n_observations / int(told.sum()))
    return sums


def _exponential_chain(data: Sequences, chain: ChainSums, rng: np.random.Generator) -> ChainSums:
    """Counts of first states and transitions that are drawn at random."""
    return chain.drawn(data.n_sequences, max(data.n_observations, 1), rng)


def _nearest_of_random(features: NDArray[np.float64], n_states: int, rng: np.random.Generator) -> Index:
    centres = features[rng.choice(len(features), n_states, replace=len(features) < n_states)]
    distance = (centres**2).sum(axis=1) - 2.0 * features @ centres.T
    return distance.argmin(axis=1)


def _guessed(data: Sequences, reference: Likelihood, index: Index, labels: Index, chain: ChainSums) -> HMMStatistics:
    """HMMStatistics as if the sampled observations' states were the labels."""
    n_states = reference.n_states
    scale = data.n_observations / len(index)
    sums = reference.zeros()
    rows = max(TABLE_VALUES // n_states, 1)
    for first in range(0, len(index), rows):
        here = labels[first : first + rows]
        marginals = np.full((n_states, len(here)), DOUBT / n_states)
        marginals[here, np.arange(len(here))] += 1.0 - DOUBT
        reference.accumulate(np.take(data.values, index[first : first + rows], axis=0), marginals, sums)
    joined = np.diff(index) == 1
    joined &= ~np.isin(index[1:], data.offsets)
    counted = chain.like(np.full(n_states, data.n_sequences / n_states), np.zeros_like(chain.pairs))
    counted.count(labels[:-1][joined], labels[1:][joined], scale)
    moves = max(data.n_observations - data.n_sequences, 1)
    pairs = (1.0 - ANYWHERE) * counted.pairs + ANYWHERE * moves / counted.n_cells
    return HMMStatistics(chain.like(counted.initial, pairs), sums.scale(scale))
