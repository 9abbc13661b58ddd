"""Statements that hold for every family of emissions, whatever it emits.

Each takes a prior or posterior and a few observations and asserts one law; the families' own tests add what scipy knows
about their distributions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import build_record

Array = NDArray[Any]


def random_marginals(n_states: int, n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).dirichlet(np.ones(n_states), n).T.copy()


def updated(prior: Any, values: Array, seed: int = 0) -> Any:
    """The posterior after the values, believed at random to come from each state."""
    likelihood = prior.mean()
    sums = likelihood.zeros()
    likelihood.accumulate(values, random_marginals(likelihood.n_states, len(values), seed), sums)
    return prior.update(sums)


def check_all(prior: Any, values: Array) -> None:
    """Every law below, for a proper prior and observations that it finds possible."""
    posterior = updated(prior, values)
    posterior_density_is_prior_times_likelihood(prior, values)
    surrogates_are_expectations(posterior, values)
    mode_is_the_densest_point(posterior)
    divergence_is_positive_and_zero_from_itself(posterior, prior)
    for likelihood in (posterior.mean(), posterior.mode(), posterior.expected_log(), posterior.predictive()):
        scaled_likelihoods_tell_the_same(likelihood, values)
        sums_add_up_over_blocks(likelihood, values)
    for record in (posterior, posterior.mean(), posterior.mode(), posterior.mean().zeros()):
        records_survive_the_round_trip(record)
    states_can_be_reordered(posterior, values)


def posterior_density_is_prior_times_likelihood(prior: Any, values: Array) -> None:
    """The heart of conjugacy; it ties update, accumulate, log_density and log_likelihood together."""
    rng = np.random.default_rng(1)
    marginals = random_marginals(prior.mean().n_states, len(values))
    posterior = updated(prior, values)
    gaps = []
    for _ in range(5):
        point = prior.sample(rng)
        likelihood = (marginals * point.log_likelihood(values)).sum()
        gaps.append(posterior.log_density(point) - prior.log_density(point) - likelihood)
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-9, atol=1e-7)


def surrogates_are_expectations(posterior: Any, values: Array, draws: int = 3000) -> None:
    rng = np.random.default_rng(2)
    logs = np.array([posterior.sample(rng).log_likelihood(values) for _ in range(draws)])
    assert_mean(logs, posterior.expected_log().log_likelihood(values))
    assert_mean(np.exp(logs), np.exp(posterior.predictive().log_likelihood(values)))


def assert_mean(draws: Array, expected: Array) -> None:
    """The mean over the first axis is the expected one, within five standard errors."""
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= 5.0 * error + 1e-9 * (1.0 + np.abs(expected))).all()


def mode_is_the_densest_point(posterior: Any) -> None:
    rng = np.random.default_rng(3)
    best = posterior.log_density(posterior.mode())
    assert best >= posterior.log_density(posterior.mean()) - 1e-9
    assert all(best >= posterior.log_density(posterior.sample(rng)) for _ in range(50))


def divergence_is_positive_and_zero_from_itself(posterior: Any, prior: Any) -> None:
    assert posterior.kl(prior) > 0.0
    assert abs(posterior.kl(posterior)) < 1e-9


def scaled_likelihoods_tell_the_same(likelihood: Any, values: Array) -> None:
    logs = likelihood.log_likelihood(values)
    assert logs.shape == (likelihood.n_states, len(values))
    assert not np.isnan(logs).any()
    out = np.empty_like(logs)
    shift = likelihood.scaled(values, out)
    possible = np.isfinite(logs.max(axis=0))
    largest = out[:, possible].max(axis=0)
    assert ((largest > 1e-31) & (largest < 1e31)).all()
    with np.errstate(divide="ignore"):
        least = np.where(logs > -np.inf, np.maximum(logs, shift - 700.0), -np.inf)
        np.testing.assert_allclose(np.log(out) + shift, least, rtol=1e-9, atol=1e-9)


def sums_add_up_over_blocks(likelihood: Any, values: Array) -> None:
    marginals = random_marginals(likelihood.n_states, len(values))
    cut = len(values) // 3
    whole, head, tail = (likelihood.zeros() for _ in range(3))
    likelihood.accumulate(values, marginals, whole)
    likelihood.accumulate(values[:cut], marginals[:, :cut], head)
    likelihood.accumulate(values[cut:], marginals[:, cut:], tail)
    assert_same(head + tail, whole)
    assert_same(whole - tail, head)
    assert_same(whole.scale(2.0), whole + whole)
    head.absorb(tail)
    assert_same(head, whole)


def records_survive_the_round_trip(record: Any) -> None:
    assert_same(build_record(record.schema(), record.arrays()), record)
    assert record.not_finite() is None


def states_can_be_reordered(posterior: Any, values: Array) -> None:
    order = np.arange(posterior.mean().n_states)[::-1].copy()
    moved = posterior.take(order)
    expected = posterior.mean().log_likelihood(values)[order]
    np.testing.assert_allclose(moved.mean().log_likelihood(values), expected)
    np.testing.assert_allclose(posterior.mean().take(order).log_likelihood(values), expected)
    assert_same(posterior.keep_states(np.ones(len(order), dtype=bool), moved), moved)


def assert_same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    mine, yours = ours.arrays(), theirs.arrays()
    assert mine.keys() == yours.keys()
    for name in mine:
        np.testing.assert_allclose(mine[name], yours[name], rtol=1e-12, atol=1e-9, err_msg=name)
