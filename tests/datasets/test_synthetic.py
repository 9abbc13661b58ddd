from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subchain.datasets import Chain, bernoulli_chain, categorical_chain, gaussian_chain, poisson_chain
from subchain.errors import InputError

GENERATORS = [bernoulli_chain, categorical_chain, gaussian_chain, poisson_chain]
every_family = pytest.mark.parametrize("generator", GENERATORS)


def arrays(chain: Chain) -> dict[str, np.ndarray]:
    fields = {f.name: getattr(chain, f.name) for f in dataclasses.fields(chain)}
    return fields | {"observations": chain.observations.values}


def per_state(chain: Chain, n_states: int) -> list[np.ndarray]:
    return [chain.observations.values[chain.states == k] for k in range(n_states)]


@every_family
def test_the_same_seed_gives_the_same_record(generator: Callable[..., Chain]):
    one, same, other = (arrays(generator(300, random_state=seed)) for seed in (5, 5, 6))
    for name in one:
        assert_array_equal(one[name], same[name])
        assert np.any(one[name] != other[name]), name


@every_family
def test_a_generator_as_seed_moves_on(generator: Callable[..., Chain]):
    rng = np.random.default_rng(0)
    first, second = generator(100, random_state=rng), generator(100, random_state=rng)
    assert np.any(first.transition != second.transition)


@every_family
def test_a_longer_chain_begins_like_a_shorter_one(generator: Callable[..., Chain]):
    short, long = generator(100, random_state=2), generator(150, random_state=2)
    assert_array_equal(short.states, long.states[:100])
    assert_array_equal(short.observations.values, long.observations.values[:100])


@every_family
def test_lengths_make_many_sequences(generator: Callable[..., Chain]):
    chain = generator(lengths=[3, 1, 6], random_state=0)
    assert [len(sequence) for sequence in chain.observations] == [3, 1, 6]
    assert chain.states.shape == (10,)


@every_family
def test_parameters_are_distributions_of_the_asked_size(generator: Callable[..., Chain]):
    chain = generator(50, n_states=3, random_state=0)
    assert chain.transition.shape == (3, 3)
    assert_allclose(chain.initial.sum(), 1.0)
    assert_allclose(chain.transition.sum(axis=1), 1.0)
    assert set(np.unique(chain.states)) <= {0, 1, 2}


@every_family
def test_stickiness_is_the_least_chance_to_stay(generator: Callable[..., Chain]):
    chain = generator(20_000, n_states=3, stickiness=0.9, random_state=0)
    assert chain.transition.diagonal().min() >= 0.9
    assert np.mean(chain.states[1:] == chain.states[:-1]) > 0.88


@every_family
def test_transition_frequencies_approach_the_truth(generator: Callable[..., Chain]):
    chain = generator(50_000, n_states=3, stickiness=0.3, random_state=1)
    counts = np.zeros((3, 3))
    np.add.at(counts, (chain.states[:-1], chain.states[1:]), 1)
    assert_allclose(counts / counts.sum(axis=1, keepdims=True), chain.transition, atol=0.02)


def test_symbols_follow_their_probabilities():
    chain = categorical_chain(60_000, n_states=3, n_symbols=5, random_state=0)
    assert chain.observations.values.dtype == np.int32
    for k, symbols in enumerate(per_state(chain, 3)):
        assert_allclose(np.bincount(symbols, minlength=5) / len(symbols), chain.probabilities[k], atol=0.02)


def test_vectors_follow_their_means_and_covariances():
    chain = gaussian_chain(60_000, n_states=3, n_features=2, random_state=0)
    for k, vectors in enumerate(per_state(chain, 3)):
        assert_allclose(vectors.mean(axis=0), chain.means[k], atol=0.05)
        assert_allclose(np.cov(vectors.T), chain.covariances[k], atol=0.08)
    assert_array_equal(chain.variances, [np.diag(c) for c in chain.covariances])


def test_uncorrelated_covariances_are_diagonal():
    chain = gaussian_chain(10, n_features=3, correlated=False, random_state=0)
    assert_array_equal(chain.covariances, [np.diag(v) for v in chain.variances])


def test_counts_follow_their_rates():
    chain = poisson_chain(60_000, n_states=3, n_features=2, random_state=0)
    for k, counts in enumerate(per_state(chain, 3)):
        assert_allclose(counts.mean(axis=0), chain.rates[k], rtol=0.03, atol=0.05)


def test_ones_follow_their_probabilities():
    chain = bernoulli_chain(60_000, n_states=3, n_features=4, random_state=0)
    assert set(np.unique(chain.observations.values)) == {0, 1}
    for k, ones in enumerate(per_state(chain, 3)):
        assert_allclose(ones.mean(axis=0), chain.probabilities[k], atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either n .* or lengths"),
        ({"n": 5, "lengths": [5]}, "give either n .* or lengths"),
        ({"n": 0}, "n must be at least 1"),
        ({"lengths": [3, 0, 2]}, "sequence 1 has length 0"),
        ({"lengths": []}, "list of whole numbers"),
        ({"lengths": [1.5]}, "list of whole numbers"),
        ({"n": 5, "n_states": 0}, "n_states must be at least 1"),
        ({"n": 5, "stickiness": 1.0}, r"stickiness must lie in \[0, 1\); given 1.0"),
    ],
)
@every_family
def test_bad_settings_are_named(generator: Callable[..., Chain], arguments, message: str):
    with pytest.raises(InputError, match=message):
        generator(**arguments)
