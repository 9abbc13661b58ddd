"""Starts that are guesses of the hidden states themselves, for every position: local posteriors.

"states" gives every position one state, drawn uniformly from those that are legal there. "posteriors" draws a whole
chain of marginals: the first position's and, for every state of a position, those of what follows it, each proportional
to uniform numbers. A cluster's draws are a function of the seed and of where the cluster begins.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.core.ranges import stored_number
from subchain.data.evidence import Evidence
from subchain.data.legal_states import no_restriction, spread_out
from subchain.data.sequences import Sequences
from subchain.emissions.base import Likelihood
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError
from subchain.numerics.random import seeded_stream, uniform
from subchain.propagation.compiled import kernel
from subchain.transitions.base import ChainLaw

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LOCAL_STARTS = ("posteriors", "states")


def local_start_of(memory: Memory) -> str | None:
    """Return which of `LOCAL_STARTS` a run was asked to begin with; None if it begins with statistics."""
    if "local start" not in memory:
        return None
    return LOCAL_STARTS[stored_number(memory, "local start", most=len(LOCAL_STARTS) - 1)]


#: Values of a table of marginals that are drawn at a time.
BLOCK_VALUES = 1 << 22
#: Stands for a random number that is zero: weights are divided by their sum.
LEAST = 2.0**-54


@kernel
def draw_local(
    kind, seed, starts, lengths, weights, first_position, legal, n_states, marginals, pairs, into, lists,
):  # fmt: skip
    """Draw the marginals of clusters.

    Parameters
    ----------
    kind : 0 "posteriors", 1 "states"
    starts, lengths, weights : (n,) where the clusters lie, and how often each counts
    first_position : position that `marginals` begins with
    legal : offsets and states as in `LegalStates`, or empty if every state is legal
    marginals : (entries,) or, without legal states, (positions · K,), filled
    pairs, into : (S, K, K) expected transitions, to which those of cluster i are added in row into[i]
    lists : where expected transitions go instead, one for each pair of legal states, unless the second is empty: where
        those into each position begin, and what they are (see `propagation.collapsed.listed_pieces`)
    """
    legal_offsets, legal_states = legal[0], legal[1]
    blocks, listed = lists
    as_lists = listed.shape[0] > 0
    restricted = legal_offsets.shape[0] > 0
    base = legal_offsets[first_position] if restricted else first_position * n_states
    row = np.empty(n_states)
    for cluster in range(starts.shape[0]):
        begin, number = seeded_stream(seed, starts[cluster]), 0
        moves, counted = pairs[into[cluster]], weights[cluster]
        for position in range(starts[cluster], starts[cluster] + lengths[cluster]):
            low = legal_offsets[position] if restricted else position * n_states
            count = legal_offsets[position + 1] - low if restricted else n_states
            now = low - base
            is_first = position == starts[cluster]
            if not is_first:
                before_low = legal_offsets[position - 1] if restricted else low - n_states
                before_count = low - before_low
                before = before_low - base
            if kind == 1:
                chosen = min(int(uniform(begin, number) * count), count - 1)
                number += 1
                for a in range(count):
                    marginals[now + a] = 1.0 if a == chosen else 0.0
                if not is_first:
                    k = legal_states[low + chosen] if restricted else chosen
                    for b in range(before_count):
                        if as_lists:
                            for a in range(count):
                                share = marginals[before + b] * marginals[now + a]
                                listed[blocks[position] + b * count + a] = counted * share
                        elif marginals[before + b] > 0.0:
                            moves[legal_states[before_low + b] if restricted else b, k] += counted
                continue
            for a in range(count):
                marginals[now + a] = 0.0
            for b in range(1 if is_first else before_count):
                summed = 0.0
                for a in range(count):
                    row[a] = max(uniform(begin, number), LEAST)
                    number += 1
                    summed += row[a]
                weight = (1.0 if is_first else marginals[before + b]) / summed
                for a in range(count):
                    share = weight * row[a]
                    marginals[now + a] += share
                    if is_first:
                        continue
                    if as_lists:
                        listed[blocks[position] + b * count + a] = counted * share
                    else:
                        j = legal_states[before_low + b] if restricted else b
                        moves[j, legal_states[low + a] if restricted else a] += counted * share


def check_drawable(kind: str, prior: ChainLaw) -> None:
    """Raise an `InputError` if states that are drawn one by one can make paths that the prior's mean forbids."""
    if kind == "states" and not ((prior.transition > 0.0).all() and (prior.initial > 0.0).all()):
        raise InputError(
            "init='states' draws every state by itself, so that its paths may be impossible under the mask, the fixed "
            "transitions or the initial distribution of the prior; use init='posteriors' or init='exponential'."
        )


def local_statistics(
    data: Sequences, reference: Likelihood, kind: str, seed: int, evidence: Evidence | None, weights: Array | None
) -> HMMStatistics:
    """HMMStatistics of a local start, for algorithms that keep nothing of each position.

    Parameters
    ----------
    reference : the family at some sensible point, which accumulates
    kind : one of `LOCAL_STARTS`
    weights : (n_sequences,) how often each sequence counts, or None
    """
    counted = np.ones(data.n_sequences) if weights is None else weights
    n_states = reference.n_states
    legal = None if evidence is None else evidence.listed(data)
    offsets, states = no_restriction() if legal is None else (legal.offsets, legal.states)
    total = HMMStatistics.zeros(n_states, reference.zeros())
    pairs = np.zeros((1, n_states, n_states))
    used = np.flatnonzero(data.lengths)
    rows = max(BLOCK_VALUES // n_states, 1)
    edges = np.unique(np.searchsorted(data.offsets[used], np.arange(0, data.n_observations, rows)))
    for sequences in np.split(used, edges[(edges > 0) & (edges < len(used))]):
        if not len(sequences):
            continue
        starts, lengths = data.offsets[sequences], data.lengths[sequences]
        first, last = int(starts[0]), int(starts[-1] + lengths[-1])
        size = int(offsets[last] - offsets[first]) if legal is not None else (last - first) * n_states
        entries = np.empty(size)
        into = np.zeros(len(sequences), dtype=np.int64)
        draw_local(
            LOCAL_STARTS.index(kind), np.uint64(seed), starts, lengths, counted[sequences], first, (offsets, states),
            n_states, entries, pairs, into, (np.empty(0, dtype=np.int64), np.empty(0)),
        )  # fmt: skip
        table = spread_out(entries, first, last, offsets, states, n_states)
        if weights is not None:
            table *= np.repeat(counted[sequences], lengths)
        reference.accumulate(np.asarray(data.values[first:last]), table, total.emission)
        total.chain.initial += table[:, starts - first].sum(axis=1)
    total.chain.pairs += pairs[0]
    total.n_observations = float(data.n_observations)
    return total
