"""Random chains: data drawn from hidden Markov models of each family with random parameters.

Use them to test an algorithm on data with known states and parameters. `stickiness` is the fraction of every transition
row that is put on the diagonal, so that states last 1 / (1 − stickiness) positions or longer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from subchain.datasets.chains import BernoulliChain, CategoricalChain, GaussianChain, PoissonChain
from subchain.datasets.laws import (
    BernoulliLaw,
    CategoricalLaw,
    GaussianLaw,
    PoissonLaw,
    RandomState,
    Seeds,
    generate,
    offsets_of,
)
from subchain.datasets.paths import positive
from subchain.errors import InputError

Lengths = Sequence[int] | NDArray[np.integer] | None


def categorical_chain(
    n: int | None = None,
    n_states: int = 4,
    n_symbols: int = 8,
    *,
    lengths: Lengths = None,
    stickiness: float = 0.0,
    concentration: float = 0.5,
    random_state: RandomState = None,
) -> CategoricalChain:
    """Draw symbols from a random categorical hidden Markov model.

    Parameters
    ----------
    n : int, optional
        Length of a single sequence; give either this or `lengths`.
    n_states, n_symbols : int
        Numbers of hidden states and of symbols.
    lengths : sequence of int, optional
        Lengths of several sequences.
    stickiness : float in [0, 1)
        Fraction of each transition row that is put on the self-transition; the rest is random.
    concentration : float
        Dirichlet concentration of each state's symbol probabilities; a small one gives few symbols per state.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same record.

    Returns
    -------
    CategoricalChain
        `observations.values` has shape (n,), int32; `probabilities` (n_states, n_symbols).

    Examples
    --------
    >>> chain = categorical_chain(lengths=[30, 20], n_states=3, n_symbols=5, random_state=0)
    >>> chain.observations.values.shape, chain.probabilities.shape
    ((50,), (3, 5))
    """
    offsets, seeds = offsets_of(n, lengths), Seeds.spawn(random_state)
    law = random_categorical(seeds.parameters, n_states, n_symbols, stickiness, concentration)
    return generate(law, offsets, seeds)


def gaussian_chain(
    n: int | None = None,
    n_states: int = 4,
    n_features: int = 2,
    *,
    lengths: Lengths = None,
    stickiness: float = 0.0,
    separation: float = 4.0,
    correlated: bool = True,
    random_state: RandomState = None,
) -> GaussianChain:
    """Draw vectors from a random Gaussian hidden Markov model.

    Parameters
    ----------
    n : int, optional
        Length of a single sequence; give either this or `lengths`.
    n_states, n_features : int
        Numbers of hidden states and of columns.
    lengths : sequence of int, optional
        Lengths of several sequences.
    stickiness : float in [0, 1)
        Fraction of each transition row that is put on the self-transition; the rest is random.
    separation : float
        Standard deviation of the means; the noise has variances around one.
    correlated : bool
        Whether covariances have entries off the diagonal.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same record.

    Returns
    -------
    GaussianChain
        `observations.values` has shape (n, n_features), float64; `means` (n_states, n_features); `covariances`
        (n_states, n_features, n_features), and their diagonals as `variances`.

    Examples
    --------
    >>> chain = gaussian_chain(100, n_states=3, n_features=2, stickiness=0.9, random_state=0)
    >>> chain.observations.values.shape, chain.means.shape, chain.covariances.shape
    ((100, 2), (3, 2), (3, 2, 2))
    """
    offsets, seeds = offsets_of(n, lengths), Seeds.spawn(random_state)
    law = random_gaussian(seeds.parameters, n_states, n_features, stickiness, separation, correlated)
    return generate(law, offsets, seeds)


def poisson_chain(
    n: int | None = None,
    n_states: int = 4,
    n_features: int = 1,
    *,
    lengths: Lengths = None,
    stickiness: float = 0.0,
    mean_rate: float = 10.0,
    random_state: RandomState = None,
) -> PoissonChain:
    """Draw counts from a random Poisson hidden Markov model.

    Parameters
    ----------
    n : int, optional
        Length of a single sequence; give either this or `lengths`.
    n_states, n_features : int
        Numbers of hidden states and of columns.
    lengths : sequence of int, optional
        Lengths of several sequences.
    stickiness : float in [0, 1)
        Fraction of each transition row that is put on the self-transition; the rest is random.
    mean_rate : float
        Mean of the exponential distribution of the rates.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same record.

    Returns
    -------
    PoissonChain
        `observations.values` has shape (n, n_features), int32; `rates` (n_states, n_features).

    Examples
    --------
    >>> chain = poisson_chain(100, n_states=3, random_state=0)
    >>> chain.observations.values.shape, chain.rates.shape
    ((100, 1), (3, 1))
    """
    offsets, seeds = offsets_of(n, lengths), Seeds.spawn(random_state)
    return generate(random_poisson(seeds.parameters, n_states, n_features, stickiness, mean_rate), offsets, seeds)


def bernoulli_chain(
    n: int | None = None,
    n_states: int = 4,
    n_features: int = 8,
    *,
    lengths: Lengths = None,
    stickiness: float = 0.0,
    random_state: RandomState = None,
) -> BernoulliChain:
    """Draw zeros and ones from a random Bernoulli hidden Markov model, such as marks present or absent along a genome.

    Parameters
    ----------
    n : int, optional
        Length of a single sequence; give either this or `lengths`.
    n_states, n_features : int
        Numbers of hidden states and of columns.
    lengths : sequence of int, optional
        Lengths of several sequences.
    stickiness : float in [0, 1)
        Fraction of each transition row that is put on the self-transition; the rest is random.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same record.

    Returns
    -------
    BernoulliChain
        `observations.values` has shape (n, n_features), int8; `probabilities` (n_states, n_features).

    Examples
    --------
    >>> chain = bernoulli_chain(100, n_states=3, n_features=6, random_state=0)
    >>> chain.observations.values.shape, chain.probabilities.shape
    ((100, 6), (3, 6))
    """
    offsets, seeds = offsets_of(n, lengths), Seeds.spawn(random_state)
    return generate(random_bernoulli(seeds.parameters, n_states, n_features, stickiness), offsets, seeds)


def random_categorical(
    rng: np.random.Generator,
    n_states: int = 4,
    n_symbols: int = 8,
    stickiness: float = 0.0,
    concentration: float = 0.5,
) -> CategoricalLaw:
    """Draw the parameters of a categorical model."""
    initial, transition = _random_dynamics(rng, n_states, stickiness)
    probabilities = rng.dirichlet(np.full(positive("n_symbols", n_symbols), concentration), size=n_states)
    return CategoricalLaw(initial, transition, probabilities)


def random_gaussian(
    rng: np.random.Generator,
    n_states: int = 4,
    n_features: int = 2,
    stickiness: float = 0.0,
    separation: float = 4.0,
    correlated: bool = True,
) -> GaussianLaw:
    """Draw the parameters of a Gaussian model.

    Covariances are sample covariances of n_features + 10 standard normal vectors: well conditioned, with identity mean.
    """
    initial, transition = _random_dynamics(rng, n_states, stickiness)
    means = separation * rng.standard_normal((n_states, positive("n_features", n_features)))
    samples = rng.standard_normal((n_states, n_features + 10, n_features))
    covariances = np.einsum("kni,knj->kij", samples, samples) / (n_features + 10)
    if not correlated:
        covariances = covariances * np.eye(n_features)
    return GaussianLaw(initial, transition, means, covariances)


def random_poisson(
    rng: np.random.Generator, n_states: int = 4, n_features: int = 1, stickiness: float = 0.0, mean_rate: float = 10.0
) -> PoissonLaw:
    """Draw the parameters of a Poisson model."""
    initial, transition = _random_dynamics(rng, n_states, stickiness)
    return PoissonLaw(initial, transition, rng.exponential(mean_rate, (n_states, positive("n_features", n_features))))


def random_bernoulli(
    rng: np.random.Generator, n_states: int = 4, n_features: int = 8, stickiness: float = 0.0
) -> BernoulliLaw:
    """Draw the parameters of a Bernoulli model from Beta(½, ½), so that most probabilities are near 0 or 1."""
    initial, transition = _random_dynamics(rng, n_states, stickiness)
    return BernoulliLaw(initial, transition, rng.beta(0.5, 0.5, (n_states, positive("n_features", n_features))))


def _random_dynamics(
    rng: np.random.Generator, n_states: int, stickiness: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw initial probabilities and transition rows from Dirichlet(1), and add the self-transitions."""
    if not 0.0 <= stickiness < 1.0:
        raise InputError(f"stickiness must lie in [0, 1); given {stickiness}.")
    uniform = np.ones(positive("n_states", n_states))
    initial = rng.dirichlet(uniform)
    transition = (1.0 - stickiness) * rng.dirichlet(uniform, size=n_states) + stickiness * np.eye(n_states)
    return initial, transition
