"""Results of the generators: observations, hidden states, and parameters under the names of the emission family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subchain.data.sequences import Sequences


@dataclass(frozen=True, eq=False)
class Chain:
    """Data drawn from a known hidden Markov model.

    Attributes
    ----------
    observations : Sequences
        The observed sequences.
    states : array of shape (n_observations,)
        The hidden state of each row of `observations.values`.
    initial : array of shape (n_states,)
        Probabilities of a sequence's first state.
    transition : array of shape (n_states, n_states)
        Row *j* holds the probabilities of the state that follows state *j*.

    Examples
    --------
    >>> from subchain.datasets import categorical_chain
    >>> chain = categorical_chain(100, n_states=3, n_symbols=5, random_state=0)
    >>> chain.states.shape, chain.transition.shape, chain.probabilities.shape
    ((100,), (3, 3), (3, 5))
    """

    observations: Sequences
    states: NDArray[np.integer]
    initial: NDArray[np.float64]
    transition: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CategoricalChain(Chain):
    """Chain with one symbol per position; `probabilities` has shape (n_states, n_symbols)."""

    probabilities: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GaussianChain(Chain):
    """Chain with Gaussian vectors: `means` (n_states, n_features), `covariances` (n_states, n_features, n_features)."""

    means: NDArray[np.float64]
    covariances: NDArray[np.float64]

    @property
    def variances(self) -> NDArray[np.float64]:
        """Diagonals of the covariances, shape (n_states, n_features)."""
        return np.diagonal(self.covariances, axis1=1, axis2=2).copy()


@dataclass(frozen=True, eq=False)
class PoissonChain(Chain):
    """Chain with Poisson counts; `rates` has shape (n_states, n_features)."""

    rates: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BernoulliChain(Chain):
    """Chain with zeros and ones; `probabilities` (of a one) has shape (n_states, n_features)."""

    probabilities: NDArray[np.float64]
