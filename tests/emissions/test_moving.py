"""Posteriors that move in small steps do what the plain posterior of the blended sums does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import FAMILIES, example

from subchain.emissions.categorical import Categorical, CategoricalSums, DirichletTable
from subchain.emissions.frozen import Frozen
from subchain.emissions.incremental import Incremental
from subchain.emissions.incremental_table import IncrementalTable
from subchain.errors import InputError
from subchain.transitions import Dirichlet, left_right
from subchain.transitions.base import Chain, ChainSums, FrozenChain
from subchain.transitions.incremental import IncrementalChain, IncrementalDirichlet

KINDS = ["expected_log", "predictive", "mean"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_moves_as_its_sums_do(family: str, kind: str) -> None:
    emission, data = example(family, "many")
    data = emission.prepare(data)
    prior = emission.prior(data, 3, flat=False)
    rng = np.random.default_rng(0)
    plain = prior.mean().zeros()
    moving = prior.incremental(prior.mean().zeros())
    for keep, gain in ((1.0, 1.0), (0.5, 3.0), (0.9, 0.2)):
        index = rng.integers(data.n_observations, size=9)
        marginals = np.ascontiguousarray(rng.dirichlet(np.ones(3), 9).T)
        surrogate = moving.surrogate(kind)
        fresh, expected = surrogate.zeros(), prior.mean().zeros()
        surrogate.accumulate(data.values[index], marginals, fresh)
        prior.mean().accumulate(data.values[index], marginals, expected)
        moving.blend(keep, gain, fresh)
        plain = plain.scale(keep) + expected.scale(gain)
    for name, array in prior.update(plain).mean().arrays().items():
        np.testing.assert_allclose(prior.update(moving.sums()).mean().arrays()[name], array, rtol=1e-9)
    wanted = getattr(prior.update(plain), kind)().log_likelihood(data.values)
    np.testing.assert_allclose(moving.surrogate(kind).log_likelihood(data.values), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("concentration", [1e-5, 2e-5, 1e-4])
def test_symbols_of_states_that_have_seen_next_to_nothing_keep_their_weights(concentration: float) -> None:
    prior = DirichletTable(np.full((50, 3), concentration))
    sums = CategoricalSums(np.zeros((50, 3)))
    sums.counts[:3] = [[0.0, 2e-3, 3.0], [0.0, 1e-3, 0.0], [0.0, 2e-3, 1e-3]]
    moving, symbols = prior.incremental(sums).surrogate("expected_log"), np.arange(50)
    wanted = prior.update(sums).expected_log().log_likelihood(symbols)
    np.testing.assert_allclose(moving.log_likelihood(symbols), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [*KINDS, "mode"])
@pytest.mark.parametrize("concentration", [1.0, 1e-3, 2.5])
def test_rows_of_a_table_are_worked_out_when_they_are_asked_for(kind: str, concentration: float) -> None:
    if kind == "mode" and concentration < 1.0:
        pytest.skip("a mode needs concentrations of at least one")
    rng = np.random.default_rng(1)
    prior = DirichletTable(np.full((50, 11), concentration))
    sums = CategoricalSums(rng.exponential(3.0, (50, 11)) * (rng.random((50, 11)) < 0.5))
    symbols = rng.integers(-1, 50, size=203)
    moving = prior.incremental(sums)
    assert isinstance(moving, IncrementalTable)
    surrogate, plain = moving.surrogate(kind), getattr(prior.update(sums), kind)()
    with np.errstate(divide="ignore"):
        expected = plain.log_likelihood(symbols)
    np.testing.assert_allclose(surrogate.log_likelihood(symbols), expected, rtol=1e-10, atol=1e-10)
    out = np.empty((11, 203))
    shift = surrogate.scaled(symbols, out)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.log(out) + shift, expected, rtol=1e-10, atol=1e-10)


def test_forgetting_for_ever_does_not_underflow() -> None:
    prior = DirichletTable(np.ones((4, 2)))
    moving: Any = prior.incremental(CategoricalSums(np.ones((4, 2))))
    for _ in range(3000):
        surrogate = moving.surrogate("predictive")
        fresh = surrogate.zeros()
        surrogate.accumulate(np.array([1, 1, 3]), np.full((2, 3), 0.5), fresh)
        moving.blend(0.5, 0.5, fresh)
    np.testing.assert_allclose(moving.sums().counts, [[0, 0], [1, 1], [0, 0], [0.5, 0.5]], atol=1e-12)
    np.testing.assert_allclose(moving.totals, 1.5)
    assert moving.factor > 1e-200


def test_a_symbol_beyond_the_table_is_refused() -> None:
    moving = DirichletTable(np.ones((4, 2))).incremental(CategoricalSums(np.ones((4, 2))))
    with pytest.raises(InputError, match="symbols"):
        moving.surrogate("predictive").scaled(np.array([0, 4]), np.empty((2, 2)))


def test_a_frozen_component_does_not_move() -> None:
    parameters = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    moving: Incremental = Frozen(parameters).incremental(parameters.zeros())
    fresh = parameters.zeros()
    parameters.accumulate(np.array([0, 1]), np.full((2, 2), 0.5), fresh)
    moving.blend(0.5, 10.0, fresh)
    np.testing.assert_allclose(moving.surrogate("predictive").log_likelihood(np.array([0])).ravel(), np.log([0.9, 0.2]))


PRIORS = {
    "plain": Dirichlet(0.3),
    "sticky": Dirichlet(0.3, stickiness=2.0),
    "left-right": Dirichlet(0.3, mask=left_right(4), initial=[1, 0, 0, 0]),
    "fixed": Dirichlet(fixed=[[0.5, np.nan, np.nan, 0.0], *[[np.nan] * 4] * 3]),
    "stationary": Dirichlet(0.5, initial="stationary"),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_chains_move_as_their_counts_do(name: str, kind: str) -> None:
    prior: Any = PRIORS[name].prior(4, flat=False)
    rng = np.random.default_rng(2)
    initial, pairs = rng.random(4), rng.random((4, 4))
    fast, plain = prior.incremental(ChainSums(initial, pairs)), IncrementalChain(prior, ChainSums(initial, pairs))
    assert isinstance(fast, IncrementalDirichlet)
    for keep in (0.9, 0.3):
        fresh_initial, fresh_pairs = rng.random(4), rng.random((4, 4)) * 5
        for chain in (fast, plain):
            chain.blend(keep, 0.7, ChainSums(fresh_initial, fresh_pairs))
        ours, theirs = fast.surrogate(kind), plain.surrogate(kind)
        np.testing.assert_allclose(ours.transition, theirs.transition, rtol=1e-11)
        np.testing.assert_allclose(ours.initial, theirs.initial, rtol=1e-9)
        np.testing.assert_allclose(fast.stationary(), plain.stationary(), rtol=1e-9, atol=1e-12)


def test_the_mode_of_a_chain() -> None:
    prior: Any = Dirichlet(1.0).prior(3, flat=True)
    pairs = np.array([[4.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 2.0, 4.0]])
    fast, plain = prior.incremental(ChainSums(np.ones(3), pairs)), IncrementalChain(prior, ChainSums(np.ones(3), pairs))
    np.testing.assert_allclose(fast.surrogate("mode").transition, plain.surrogate("mode").transition)


def test_a_frozen_chain_does_not_move() -> None:
    chain = Chain(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]]))
    moving = FrozenChain(chain).incremental(ChainSums(np.zeros(2), np.zeros((2, 2))))
    moving.blend(0.5, 1.0, ChainSums(np.ones(2), np.ones((2, 2))))
    assert moving.surrogate("expected_log") is chain
    np.testing.assert_allclose(moving.stationary(), [2 / 3, 1 / 3])
