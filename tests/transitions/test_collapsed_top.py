"""The top level of collapsed inference: tables, sticks, concentrations, and what counts are worth."""

from __future__ import annotations

import dataclasses
from typing import Any

import naive_hdp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln

from subchain import HDP
from subchain.core.hyperparameters import EARLY, LATE, states_differ
from subchain.transitions.base import ChainSums
from subchain.transitions.dirichlet import DirichletChain
from subchain.transitions.hdp.collapsed_top import CollapsedChain


def chain_of(n_states: int, **numbers: Any) -> CollapsedChain:
    found = HDP(**numbers, construction="collapsed").prior(n_states, flat=False)
    assert isinstance(found, CollapsedChain)
    return found


def counts_of(n_states: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.gamma(0.5, 4.0, n_states), rng.gamma(0.3, 20.0, (n_states, n_states))


def certain(chain: CollapsedChain) -> CollapsedChain:
    """All moves that are expected at all happen for sure."""
    n_states = len(chain.u)
    return chain.observe(np.full(n_states, 1e9), np.full((n_states, n_states), 1e9))


def test_tables_of_whole_counts_are_those_of_stirling_numbers() -> None:
    chain = certain(chain_of(3, concentration=2.5)).update_hyperparameters(
        ChainSums(np.array([1.0, 3.0, 0.0]), np.diag([5.0, 2.0, 1.0]))
    )
    initial, pairs = np.array([4.0, 0.0, 1.0]), np.array([[7.0, 1.0, 2.0], [0.0, 12.0, 1.0], [3.0, 0.0, 0.0]])
    base = np.vstack([chain.initial.concentration, chain.rows.concentration])  # type: ignore[union-attr]
    whole = np.vstack([initial, pairs]).astype(int)
    expected = np.vectorize(naive_hdp.tables_by_stirling)(base, whole)
    assert chain.tables(ChainSums(initial, pairs)) == pytest.approx(expected, rel=1e-9)
    assert np.vectorize(naive_hdp.tables_of)(base, whole) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("stickiness", [0.0, 4.0])
def test_counts_that_are_certain_are_worth_what_dirichlet_rows_say(stickiness: float) -> None:
    initial, pairs = np.array([2.0, 1.0, 5.0]), np.array([[3.0, 1.0, 2.0], [4.0, 9.0, 1.0], [2.0, 1.0, 6.0]])
    chain = certain(chain_of(3, concentration=2.0, stickiness=stickiness)).update_hyperparameters(
        ChainSums(initial, pairs)
    )
    finite = DirichletChain(chain.initial, chain.rows)
    assert chain.log_evidence(ChainSums(initial, pairs)) == pytest.approx(
        finite.log_evidence(ChainSums(initial, pairs)), rel=1e-12
    )


def test_without_any_surplus_a_move_that_is_not_expected_is_worth_nothing() -> None:
    chain = chain_of(4)
    nothing = np.zeros((4, 4))
    assert chain.log_evidence(ChainSums(nothing[0], nothing)) == 0.0
    assert chain.tables(ChainSums(nothing[0], nothing)).sum() == 0.0


def test_sticks_learn_by_the_formula() -> None:
    initial, pairs = counts_of(5)
    chain = chain_of(5, top_concentration=2.0, concentration=3.0)
    dishes = chain.tables(ChainSums(initial, pairs)).sum(axis=0)
    renewed = chain.update_hyperparameters(ChainSums(initial, pairs))
    order = np.argsort(-dishes)
    assert renewed.u == pytest.approx(1.0 + dishes)
    behind = [dishes[order[rank + 1 :]].sum() for rank in range(5)]
    assert renewed.v[order] == pytest.approx(2.0 + np.array(behind))
    assert renewed.order[order].tolist() == [0, 1, 2, 3, 4]


def test_sticks_are_the_maximum_of_the_bound() -> None:
    initial, pairs = counts_of(5, 1)
    chain = chain_of(5, top_concentration=2.0, concentration=3.0)
    dishes = chain.tables(ChainSums(initial, pairs)).sum(axis=0)
    renewed = chain.with_tables(dishes, 1.0)

    def bound(there: CollapsedChain) -> float:
        """Tables times log weights, less the divergence of the sticks; weights before they are normalised."""
        whole = digamma(there.u + there.v)
        ranks = np.argsort(there.order)
        logs = (digamma(there.u) - whole)[ranks]
        logs[1:] += np.cumsum((digamma(there.v) - whole)[ranks])[:-1]
        return float(dishes[ranks] @ logs + there.log_hyperprior())

    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            u, v = renewed.u * np.exp(size * rng.normal(size=5)), renewed.v * np.exp(size * rng.normal(size=5))
            assert bound(dataclasses.replace(renewed, u=u, v=v)) < bound(renewed)


def test_the_best_top_concentration_is_the_maximum_of_what_sticks_are_worth() -> None:
    chain = chain_of(6).update_hyperparameters(ChainSums(*counts_of(6, 2)))
    best = chain.best_top_concentration()

    def loss(logarithm: float) -> float:
        hierarchy = dataclasses.replace(chain.hierarchy, top_concentration=float(np.exp(logarithm)))
        return -dataclasses.replace(chain, hierarchy=hierarchy).log_hyperprior()

    assert best == pytest.approx(np.exp(minimize_scalar(loss, bounds=(-5.0, 5.0), method="bounded").x), rel=1e-4)


@pytest.mark.parametrize("stickiness", [0.0, 2.0])
def test_the_concentration_s_fixed_point_is_a_maximum(stickiness: float) -> None:
    """Given the numbers of tables, rows are worth Σ tables · log σ − Σ log Γ(σ + κ + n) / Γ(σ + κ)."""
    chain = chain_of(5, stickiness=stickiness)
    totals, tables = np.array([10.0, 200.0, 3.0, 0.0, 40.0, 7.0]), 21.5
    value = chain
    for _ in range(60):
        found = value._concentration(totals, tables, 1.0)
        value = dataclasses.replace(value, hierarchy=dataclasses.replace(value.hierarchy, concentration=found))
    sticky = np.append(0.0, np.full(5, stickiness))

    def loss(logarithm: float) -> float:
        sigma = np.exp(logarithm)
        return -float(tables * logarithm - (gammaln(sigma + sticky + totals) - gammaln(sigma + sticky)).sum())

    assert found == pytest.approx(np.exp(minimize_scalar(loss, bounds=(-6.0, 8.0), method="bounded").x), rel=1e-4)


def test_tables_of_staying_that_asked_the_top_are_those_of_a_sticky_franchise() -> None:
    rng = np.random.default_rng(0)
    top, sigma, kappa = np.array([0.5, 0.3, 0.2]), 2.0, 3.0
    chain = certain(chain_of(3, concentration=sigma, stickiness=kappa))
    rows = np.tile(sigma * top, (3, 1)) + kappa * np.eye(3)
    chain = dataclasses.replace(chain, rows=dataclasses.replace(chain.rows, concentration=rows))
    expected, seen = np.zeros(3), np.zeros(3)
    n_times = 3000
    for _ in range(n_times):
        customers, asked = naive_hdp.sticky_franchise(top, sigma, kappa, 0, 12, rng)
        pairs = np.zeros((3, 3))
        pairs[0] = customers
        expected += chain.consulted(ChainSums(np.zeros(3), pairs))[1] / n_times
        seen += asked / n_times
    assert seen == pytest.approx(expected, abs=5.0 / np.sqrt(n_times))
    assert expected[0] < 0.8 * chain.tables(ChainSums(np.zeros(3), pairs))[1, 0] + 1.0


def test_a_slow_renewal_goes_a_part_of_the_way() -> None:
    initial, pairs = counts_of(4)
    chain = chain_of(4)
    slow, whole = (
        chain.update_hyperparameters(ChainSums(initial, pairs), 0.25),
        chain.update_hyperparameters(ChainSums(initial, pairs)),
    )
    assert slow.u == pytest.approx(0.75 * chain.u + 0.25 * whole.u)
    assert slow.v == pytest.approx(0.75 * chain.v + 0.25 * whole.v)


@pytest.mark.parametrize("construction", ["direct", "collapsed"])
def test_concentrations_do_not_run_away_while_all_states_are_alike(construction: str) -> None:
    alike = np.full((8, 8), 20.0)
    chain: Any = HDP("learned", "learned", construction=construction).prior(8, flat=False)
    for _ in range(LATE - 1):
        chain = chain.update_hyperparameters(ChainSums(alike[0], alike))
    assert (chain.hierarchy.concentration, chain.hierarchy.top_concentration) == (1.0, 1.0)
    for _ in range(300):
        chain = chain.update_hyperparameters(ChainSums(alike[0], alike))
    assert chain.hierarchy.concentration <= 1e4
    assert chain.hierarchy.top_concentration <= 1e4


def test_states_differ_once_what_they_do_depends_on_them() -> None:
    assert not states_differ(np.eye(4), EARLY - 1)
    assert states_differ(np.eye(4), EARLY)
    assert not states_differ(np.ones((4, 4)), LATE - 1)
    assert states_differ(np.ones((4, 4)), LATE)
    assert not states_differ(np.zeros((4, 4)), EARLY)
