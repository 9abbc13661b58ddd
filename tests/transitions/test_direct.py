"""The top level as one point: it is the maximiser that it claims to be, and every renewal goes uphill."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subchain import HDP
from subchain.core.hyperparameters import EARLY
from subchain.transitions.base import ChainSums
from subchain.transitions.hdp.direct import DirectChain

SHAPES = st.tuples(
    st.integers(2, 9),
    st.floats(0.2, 20.0),
    st.floats(0.2, 20.0),
    st.sampled_from([0.0, 0.5, 30.0]),
    st.integers(0, 2**32 - 1),
)


def counts_of(n_states: int, seed: int) -> tuple[Any, Any]:
    """First states and moves of all sizes, some of them never made, from rows that share a parent."""
    rng = np.random.default_rng(seed)
    parent = rng.dirichlet(np.full(n_states, 0.5))
    rows = rng.gamma(0.2 + 5.0 * parent, size=(1 + n_states, n_states)) * rng.choice([0.1, 1.0, 50.0])
    rows[rng.random(rows.shape) < 0.2] = 0.0
    return rows[0], rows[1:]


def worth(chain: Any, initial: Any, pairs: Any) -> float:
    return float(chain.log_evidence(ChainSums(initial, pairs)) + chain.log_hyperprior())


def chain_of(n_states: int, **numbers: Any) -> DirectChain:
    found = HDP(**numbers, construction="direct").prior(n_states, flat=False)
    assert isinstance(found, DirectChain)
    return found


@settings(max_examples=40, deadline=None)
@given(SHAPES)
def test_a_renewal_never_makes_the_counts_less_probable(shape: Any) -> None:
    n_states, gamma, sigma, stickiness, seed = shape
    initial, pairs = counts_of(n_states, seed)
    chain = chain_of(n_states, concentration=sigma, top_concentration=gamma, stickiness=stickiness)
    last = worth(chain, initial, pairs)
    for _ in range(6):
        chain = chain.update_hyperparameters(ChainSums(initial, pairs))
        now = worth(chain, initial, pairs)
        assert now >= last - 1e-9 * max(abs(last), 1.0)
        last = now


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.sampled_from([(True, False), (False, True), (True, True)]))
def test_nor_does_one_that_learns_concentrations(shape: Any, learned: tuple[bool, bool]) -> None:
    n_states, gamma, sigma, stickiness, seed = shape
    initial, pairs = counts_of(n_states, seed)
    chain = chain_of(n_states, concentration=sigma, top_concentration=gamma, stickiness=stickiness)
    chain.hierarchy = dataclasses.replace(
        chain.hierarchy, learns_concentration=learned[0], learns_top_concentration=learned[1], n_updates=EARLY
    )
    last = worth(chain, initial, pairs)
    for _ in range(6):
        chain = chain.update_hyperparameters(ChainSums(initial, pairs))
        now = worth(chain, initial, pairs)
        assert now >= last - 1e-9 * max(abs(last), 1.0)
        last = now


@pytest.mark.parametrize("stickiness", [0.0, 3.0])
@pytest.mark.parametrize("gamma", [0.2, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(3))
def test_after_many_renewals_no_other_stick_is_better(gamma: float, stickiness: float, seed: int) -> None:
    initial, pairs = counts_of(6, seed)
    chain = chain_of(6, concentration=2.0, top_concentration=gamma, stickiness=stickiness)
    for _ in range(100):
        chain = chain.update_hyperparameters(ChainSums(initial, pairs))
    best, rng = worth(chain, initial, pairs), np.random.default_rng(seed)
    odds = np.log(chain.top) - np.log1p(-np.minimum(chain.top, 1.0 - 1e-12))
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            moved = 1.0 / (1.0 + np.exp(-(odds + size * rng.normal(size=6))))
            there = dataclasses.replace(chain, top=moved).rebuilt()
            assert worth(there, initial, pairs) <= best + 1e-7 * abs(best)


def test_learned_concentrations_are_stationary() -> None:
    rng = np.random.default_rng(0)
    initial, pairs = rng.gamma(0.4, 5.0, 6), rng.gamma(0.4, 20.0, (6, 6))
    chain = chain_of(6, concentration="learned", top_concentration="learned")
    for _ in range(300):
        chain = chain.update_hyperparameters(ChainSums(initial, pairs))
    best = worth(chain, initial, pairs)
    for name in ("concentration", "top_concentration"):
        for factor in (0.9, 0.99, 1.01, 1.1):
            numbers = {name: factor * getattr(chain.hierarchy, name)}
            there = dataclasses.replace(chain, hierarchy=dataclasses.replace(chain.hierarchy, **numbers)).rebuilt()
            assert worth(there, initial, pairs) < best + 1e-6


def test_sticks_are_taken_in_the_order_of_use() -> None:
    pairs = np.diag([1.0, 50.0, 3.0, 0.0, 400.0]) + 0.1
    chain = chain_of(5, concentration=1.0)
    for _ in range(5):
        chain = chain.update_hyperparameters(ChainSums(pairs.sum(axis=0) / 50.0, pairs))
    assert np.argsort(-chain.weights()).tolist() == np.argsort(chain.order).tolist()
    assert chain.weights().sum() == pytest.approx(1.0)
    assert chain.rows.concentration == pytest.approx(np.tile(chain.weights(), (5, 1)))
    assert chain.initial.concentration == pytest.approx(chain.weights())  # type: ignore[union-attr]


def test_a_slow_renewal_goes_a_part_of_the_way() -> None:
    initial, pairs = counts_of(5, 3)
    chain = chain_of(5)
    slow = chain.update_hyperparameters(ChainSums(initial, pairs), 0.25)
    whole = chain.with_tables(chain.consulted(ChainSums(initial, pairs)).sum(axis=0), 1.0)
    resorted = chain._in_order(whole.order)
    assert slow.top == pytest.approx(0.75 * resorted.top + 0.25 * whole.top)
    assert resorted.weights() == pytest.approx(chain.weights())


def test_a_top_that_is_given_stays() -> None:
    initial, pairs = counts_of(4, 2)
    fixed = HDP(top=[4, 3, 2, 1], construction="direct").prior(4, flat=False)
    assert not fixed.is_learned
    learned = HDP("learned", top=[4, 3, 2, 1], construction="direct").prior(4, flat=False)
    assert learned.is_learned
    for _ in range(EARLY + 20):
        learned = learned.update_hyperparameters(ChainSums(initial, pairs))
    assert learned.weights() == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert learned.hierarchy.concentration != 1.0
