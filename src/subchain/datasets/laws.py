"""Laws: parameters of hidden Markov models with a method that draws observations given the states.

A law draws the positions in order, each with its own random numbers, so that the observations do not depend on the size
of the blocks in which they are drawn. `generate` draws a whole record in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences
from subchain.datasets.chains import BernoulliChain, CategoricalChain, Chain, GaussianChain, PoissonChain
from subchain.datasets.paths import BLOCK_SIZE, cumulative_rows, first_above, path_blocks, positive, sample_paths
from subchain.errors import InputError
from subchain.numerics.compilation import compiled

RandomState = int | np.random.SeedSequence | np.random.Generator | None
Drawn = TypeVar("Drawn", bound=Chain, covariant=True)


class Law(Protocol[Drawn]):
    """Protocol of a hidden Markov model that can be sampled."""

    @property
    def initial(self) -> NDArray[np.float64]:
        """Probabilities of the first state, (K,)."""

    @property
    def transition(self) -> NDArray[np.float64]:
        """Probabilities of the next state, (K, K), one row per state."""

    def emit(self, states: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """Draw one observation for each of the states, (n,)."""

    def record(self, observations: Sequences, states: NDArray[np.integer]) -> Drawn:
        """Return a record of the drawn data and the parameters."""


class Seeds(NamedTuple):
    """Independent generators for parameters, path and emissions: more draws from one do not change the others."""

    parameters: np.random.Generator
    path: np.random.Generator
    emission: np.random.Generator

    @classmethod
    def spawn(cls, random_state: RandomState) -> Seeds:
        """Return three generators derived from one seed."""
        return cls(*np.random.default_rng(random_state).spawn(3))


def generate(law: Law[Drawn], offsets: NDArray[np.int64], seeds: Seeds) -> Drawn:
    """Draw sequences with the given offsets, (n_sequences + 1,), and return them with the parameters."""
    states = sample_paths(law.initial, law.transition, offsets, seeds.path)
    return law.record(Sequences(law.emit(states, seeds.emission), offsets), states)


def blocks(
    law: Law[Chain], offsets: NDArray[np.int64], seeds: Seeds, block_size: int = BLOCK_SIZE
) -> Iterator[tuple[NDArray[np.int32], NDArray[Any]]]:
    """Yield states and observations block by block."""
    for states in path_blocks(law.initial, law.transition, offsets, seeds.path, block_size):
        yield states, law.emit(states, seeds.emission)


def offsets_of(n: int | None, lengths: Sequence[int] | NDArray[np.integer] | None) -> NDArray[np.int64]:
    """Return the offsets of one sequence of `n` positions, or of sequences of the given lengths."""
    if (n is None) == (lengths is None):
        raise InputError(
            f"give either n (one sequence) or lengths (many sequences); given n={n!r} and lengths={lengths!r}."
        )
    sizes = np.atleast_1d(np.asarray(lengths if n is None else positive("n", n)))
    if sizes.ndim != 1 or len(sizes) == 0 or not np.issubdtype(sizes.dtype, np.integer):
        raise InputError(f"lengths must be a list of whole numbers; given {lengths!r}.")
    if sizes.min() < 1:
        where = int(np.argmin(sizes))
        raise InputError(f"every sequence needs at least one position; sequence {where} has length {sizes[where]}.")
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


@dataclass(frozen=True, eq=False)
class CategoricalLaw:
    """Law of symbols, drawn from the state's row of `probabilities` (n_states, n_symbols)."""

    initial: NDArray[np.float64]
    transition: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    def emit(self, states: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw symbols, shape (n,)."""
        symbols = np.empty(len(states), dtype=np.int32)
        _pick(self._cumulative, states, rng.random(len(states)), symbols)
        return symbols

    def record(self, observations: Sequences, states: NDArray[np.integer]) -> CategoricalChain:
        """Return a record of the drawn data and the parameters."""
        return CategoricalChain(observations, states, self.initial, self.transition, self.probabilities)

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        return cumulative_rows("probabilities", self.probabilities)


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """Law of Gaussian vectors with the state's mean and covariance."""

    initial: NDArray[np.float64]
    transition: NDArray[np.float64]
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]

    def emit(self, states: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw vectors, shape (n, n_features)."""
        values = rng.standard_normal((len(states), self.means.shape[1]))
        _colour(self.means, self._factors, states, values)
        return values

    def record(self, observations: Sequences, states: NDArray[np.integer]) -> GaussianChain:
        """Return a record of the drawn data and the parameters."""
        return GaussianChain(observations, states, self.initial, self.transition, self.means, self.covariances)

    @cached_property
    def _factors(self) -> NDArray[np.float64]:
        return np.asarray(np.linalg.cholesky(self.covariances), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PoissonLaw:
    """Law of Poisson counts with the state's rates."""

    initial: NDArray[np.float64]
    transition: NDArray[np.float64]
    rates: NDArray[np.float64]

    def emit(self, states: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
        """Draw counts, shape (n, n_features)."""
        return rng.poisson(self.rates[states]).astype(np.int32)

    def record(self, observations: Sequences, states: NDArray[np.integer]) -> PoissonChain:
        """Return a record of the drawn data and the parameters."""
        return PoissonChain(observations, states, self.initial, self.transition, self.rates)


@dataclass(frozen=True, eq=False)
class BernoulliLaw:
    """Law of zeros and ones, each feature with the state's probability of a one."""

    initial: NDArray[np.float64]
    transition: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    def emit(self, states: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int8]:
        """Draw zeros and ones, shape (n, n_features)."""
        uniforms = rng.random((len(states), self.probabilities.shape[1]))
        return (uniforms < self.probabilities[states]).astype(np.int8)

    def record(self, observations: Sequences, states: NDArray[np.integer]) -> BernoulliChain:
        """Return a record of the drawn data and the parameters."""
        return BernoulliChain(observations, states, self.initial, self.transition, self.probabilities)


@compiled()
def _pick(
    cumulative: NDArray[np.float64],
    states: NDArray[np.int32],
    uniforms: NDArray[np.float64],
    symbols: NDArray[np.int32],
) -> None:
    """Write one symbol per position, by inverting the cumulative distribution of its state at a uniform number."""
    for t in range(len(states)):
        symbols[t] = first_above(cumulative[states[t]], uniforms[t])


@compiled()
def _colour(
    means: NDArray[np.float64],
    factors: NDArray[np.float64],
    states: NDArray[np.int32],
    values: NDArray[np.float64],
) -> None:
    """Replace white noise, (n, D), by mean + factor · noise, in place.

    The product is a loop, not a BLAS call, whose rounding depends on the number of rows: results must not depend on the
    size of the blocks. The loop runs from the last feature to the first, because row d of the lower triangular factor
    needs the noise of the features up to d.
    """
    n_features = values.shape[1]
    for t in range(len(states)):
        k = states[t]
        for d in range(n_features - 1, -1, -1):
            total = means[k, d]
            for e in range(d + 1):
                total += factors[k, d, e] * values[t, e]
            values[t, d] = total
