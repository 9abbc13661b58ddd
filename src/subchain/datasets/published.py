"""Synthetic data of published papers: long chains of Foti et al. (2014), toy chains of the HDP-HMM papers.

Docstrings state what is assumed here where a paper is incomplete or misprinted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.datasets.chains import CategoricalChain, GaussianChain
from subchain.datasets.laws import CategoricalLaw, GaussianLaw, RandomState, Seeds, generate, offsets_of
from subchain.datasets.paths import positive, sample_chain
from subchain.errors import InputError, unknown_name

_ATTEMPTS = 10_000

_DOMINANT_MEANS = [(0, 20), (20, 0), (-30, -30), (30, -30), (-20, 0), (0, -20), (30, 30), (-30, 30)]

_CYCLE_MEANS = [(-50, 0), (30, -30), (30, 30), (-100, -10), (40, -40), (-65, 0), (40, 40), (100, 10)]
_CYCLE_TRANSITIONS = {  # state: {next state: probability}, numbered from 0
    0: {0: 0.01, 1: 0.99},
    1: {1: 0.01, 2: 0.99},
    2: {0: 0.85, 3: 0.15},
    3: {4: 1.0},
    4: {4: 0.01, 5: 0.99},
    5: {5: 0.01, 6: 0.99},
    6: {4: 0.85, 7: 0.15},
    7: {0: 1.0},
}

_STAY = {"positive": 0.99, "negative": 0.01}


def diagonally_dominant(n: int = 10_000, *, random_state: RandomState = None) -> GaussianChain:
    """Draw the chain of eight states that each last about a thousand positions (Foti et al. 2014).

    The states form a ring and their emissions do not overlap, so the difficulty is that transitions are rare: one in a
    thousand positions. Paths are drawn until one visits all eight states. The first state is uniform.

    Parameters
    ----------
    n : int
        Number of positions; below about 2,000 hardly any path visits all states.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same record.

    Examples
    --------
    >>> chain = diagonally_dominant(random_state=0)
    >>> chain.observations.values.shape, len(set(chain.states.tolist()))
    ((10000, 2), 8)
    """
    ring = np.roll(np.eye(8), 1, axis=1)
    law = GaussianLaw(
        initial=np.full(8, 1 / 8),
        transition=0.999 * np.eye(8) + 0.001 * ring,
        means=np.array(_DOMINANT_MEANS, dtype=np.float64),
        covariances=np.tile(np.eye(2), (8, 1, 1)),
    )
    offsets, seeds = offsets_of(n, None), Seeds.spawn(random_state)
    states = _path_through_all(law, n, seeds.path)
    return law.record(Sequences(law.emit(states, seeds.emission), offsets), states)


def reversed_cycles(n: int = 10_000, *, covariance: float = 20.0, random_state: RandomState = None) -> GaussianChain:
    """Draw the chain of two cycles with similar emissions in opposite directions (Foti et al. 2014).

    The order of observations distinguishes the cycles, single observations do not: statistics of short subchains are
    biased unless their boundaries are corrected. The chain starts in the first state.

    Parameters
    ----------
    n : int
        Number of positions.
    covariance : float
        Variance of both coordinates; from about 300 on the emissions overlap so much that boundaries matter.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same record.

    Examples
    --------
    >>> chain = reversed_cycles(1_000, random_state=0)
    >>> chain.observations.values.shape, int(chain.states[0])
    ((1000, 2), 0)
    """
    if not covariance > 0:
        raise InputError(f"covariance must be positive; given {covariance}.")
    transition = np.zeros((8, 8))
    for origin, targets in _CYCLE_TRANSITIONS.items():
        transition[origin, list(targets)] = list(targets.values())
    law = GaussianLaw(
        initial=np.eye(8)[0],
        transition=transition,
        means=np.array(_CYCLE_MEANS, dtype=np.float64),
        covariances=np.tile(covariance * np.eye(2), (8, 1, 1)),
    )
    return generate(law, offsets_of(n, None), Seeds.spawn(random_state))


def four_state(
    kind: str = "positive", *, n_sequences: int = 100, length: int = 100, random_state: RandomState = None
) -> CategoricalChain:
    """Draw the four-state toy chains of the HDP-HMM papers: eight symbols, three per state, one shared by neighbours.

    The states form a ring. With `kind="positive"` the probability of a self-transition is 0.99, with `kind="negative"`
    that of the transition to the next state. The matrices are misprinted in the papers and reconstructed here from
    their description; the first state, which the papers do not give, is uniform.

    Examples
    --------
    >>> chain = four_state("negative", random_state=0)
    >>> chain.observations.values.shape, chain.probabilities.shape
    ((10000,), (4, 8))
    """
    if kind not in _STAY:
        raise unknown_name("kind of four-state chain", kind, _STAY)
    stay = _STAY[kind]
    ring = np.roll(np.eye(4), 1, axis=1)
    three_neighbours = np.array([np.roll([1, 1, 1, 0, 0, 0, 0, 0], 2 * k) for k in (-1, 0, 1, 2)])
    law = CategoricalLaw(np.full(4, 1 / 4), stay * np.eye(4) + (1 - stay) * ring, three_neighbours / 3)
    return generate(law, _equal_offsets(n_sequences, length), Seeds.spawn(random_state))


def regular_grammar(*, n_sequences: int = 100, length: int = 100, random_state: RandomState = None) -> CategoricalChain:
    """Draw strings over a, b, c (0, 1, 2) of three types: (abc)*, (acb)*, or a and b at random.

    The smallest exact model has seven states: three for each cycle and one for the random strings. The papers do not
    give the initial distribution; here types are equally likely, and so are the starting points of cycles.

    Examples
    --------
    >>> chain = regular_grammar(n_sequences=2, length=6, random_state=0)
    >>> chain.observations.values.shape, chain.transition.shape
    ((12,), (7, 7))
    """
    forward = np.roll(np.eye(3), 1, axis=1)
    transition = np.zeros((7, 7))
    transition[:3, :3] = transition[3:6, 3:6] = forward
    transition[6, 6] = 1.0
    probabilities = np.vstack([np.eye(3), np.eye(3)[[0, 2, 1]], [[0.5, 0.5, 0.0]]])
    law = CategoricalLaw(np.array([1 / 9] * 6 + [1 / 3]), transition, probabilities)
    return generate(law, _equal_offsets(n_sequences, length), Seeds.spawn(random_state))


def _path_through_all(law: GaussianLaw, n: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw paths until one visits all states, and return it, (n,)."""
    n_states = len(law.initial)
    for _ in range(_ATTEMPTS):
        states = sample_chain(law.initial, law.transition, n, rng)
        if len(np.unique(states)) == n_states:
            return states
    raise InputError(
        f"none of {_ATTEMPTS:,} paths of n={n} positions visits all {n_states} states; use n of 2,000 or more."
    )


def _equal_offsets(n_sequences: int, length: int) -> NDArray[np.int64]:
    positive("length", length)
    return length * np.arange(positive("n_sequences", n_sequences) + 1, dtype=np.int64)
