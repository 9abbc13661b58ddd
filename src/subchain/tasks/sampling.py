"""Sampling of new sequences, of continuations of given ones, of hidden paths, and of parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences
from subchain.datasets.paths import sample_chain
from subchain.emissions import Categorical
from subchain.engines import Engine, Part
from subchain.errors import ImpossibleSequenceError, InputError
from subchain.propagation.band import walk
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.tasks.forecast import next_states
from subchain.tasks.question import Question
from subchain.transitions.base import ChainLaw
from subchain.transitions.final import EndingChain
from subchain.transitions.operators import Banded, Factored


class Sample(NamedTuple):
    """A sampled sequence.

    Attributes
    ----------
    observations : array, shape (n,) or (n, D)
        The emitted observations.
    states : array, shape (n,)
        The hidden states that emitted them.
    """

    observations: NDArray[Any]
    states: NDArray[np.int64]


def sample(point: HMMPoint, n: int, rng: np.random.Generator, engine: Engine) -> Sample:
    """Draw a sequence of n observations from the model; if the model knows how sequences end, one that ends there."""
    states = _sample_states(point.chain, count("n", n), rng, engine)
    return Sample(point.emission.sample(states, rng), states)


def _sample_states(chain: ChainLaw, n: int, rng: np.random.Generator, engine: Engine) -> NDArray[np.int64]:
    """Draw a path of n hidden states, (n,)."""
    if isinstance(chain, EndingChain):
        return _sample_ending(chain, n, rng, engine)
    if isinstance(chain.operator, Factored):
        return _sample_factored(chain.initial, chain.operator, n, rng)
    if not isinstance(chain.operator, Banded):
        return sample_chain(chain.initial, chain.transition, n, rng).astype(np.int64)
    states = np.empty(n, dtype=np.int64)
    walk(chain.initial, chain.operator.out_of, rng.random(n), states)
    return states


def _sample_factored(
    initial: NDArray[np.float64], operator: Factored, n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a path of n hidden states, (n,): a feature behind each state, and the next state behind the feature."""
    first, onward, into = (np.cumsum(table, axis=-1) for table in (initial, *operator.factors))
    states = np.empty(n, dtype=np.int64)
    law = first
    for position, (one, other) in enumerate(rng.random((n, 2))):
        states[position] = np.searchsorted(law, one * law[-1], side="right")
        row = onward[states[position]]
        law = into[np.searchsorted(row, other * row[-1], side="right")]
    return states


def _sample_ending(chain: EndingChain, n: int, rng: np.random.Generator, engine: Engine) -> NDArray[np.int64]:
    """Draw a path of n hidden states given that it ends there, (n,): a posterior path without observations."""
    silent = HMMPoint(chain, Categorical.from_parameters(np.ones((len(chain.initial), 1))))
    data = Sequences(np.zeros(n, dtype=np.int64))
    seed = np.random.SeedSequence(rng.integers(1 << 63, size=2).tolist())
    try:
        found = engine.sample_paths(silent.surrogate(), Part(data, silent.evidence(data, None)), 1, seed)
    except ImpossibleSequenceError:
        raise InputError(
            f"no path of n={n} states ends as final= demands; draw a longer sequence, or one from another start."
        ) from None
    return found[0].astype(np.int64)


def sample_onward(question: Question, chain: ChainLaw, n: int, rng: np.random.Generator) -> list[Sample]:
    """Draw n observations that continue each sequence; `chain` is the model's, with the ends of sequences."""
    onward = (chain.with_weights(first, chain.weights) for first in next_states(question))
    return [sample(HMMPoint(law, question.point.emission), n, rng, question.engine) for law in onward]


def sample_paths(question: Question, n: int, seed: np.random.SeedSequence) -> NDArray[Any]:
    """Draw n paths of all sequences, concatenated, (n, N), from their posterior given the observations."""
    return question.engine.sample_paths(question.surrogate, question.part, count("n", n), seed)


def sample_parameters(posterior: HMMPosterior, n: int, rng: np.random.Generator) -> list[HMMPoint]:
    """Draw n models from the posterior."""
    return [posterior.sample(rng) for _ in range(count("n", n))]


def count(name: str, given: Any) -> int:
    """Return a number of draws as an int; raise an `InputError` unless it is a whole number of at least 1."""
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {given!r}.")
    return int(given)
