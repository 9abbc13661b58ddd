from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subchain.emissions.scaling import exponentiate_in_place


@given(st.integers(1, 5), st.integers(0, 1200), st.floats(0.1, 3000.0), st.integers(0, 99))
def test_columns_are_exponentials_relative_to_their_largest_and_never_below_the_least(
    n_states: int, n: int, spread: float, seed: int
) -> None:
    logs = np.random.default_rng(seed).normal(size=(n_states, n)) * spread
    table = logs.copy()
    shift = exponentiate_in_place(table)
    np.testing.assert_array_equal(shift, logs.max(axis=0, initial=-np.inf))
    np.testing.assert_allclose(table, np.exp(np.maximum(logs - shift, -700.0)), rtol=1e-12)


def test_impossible_positions_are_zero_everywhere() -> None:
    table = np.array([[-np.inf, -np.inf, 1.0], [-np.inf, -2.0, -1.0]])
    shift = exponentiate_in_place(table)
    np.testing.assert_array_equal(shift, [0.0, -2.0, 1.0])
    np.testing.assert_allclose(table, [[0.0, 0.0, 1.0], [0.0, 1.0, np.exp(-2.0)]])


def test_what_is_too_small_keeps_the_least_weight_and_only_the_impossible_has_none() -> None:
    """A state far less likely than another must stay possible: it may be the only one with a future."""
    table = np.array([[0.0, 0.0, 0.0, 0.0], [-699.9, -700.1, -1e290, -np.inf]])
    exponentiate_in_place(table)
    np.testing.assert_allclose(table[1, :3], np.exp([-699.9, -700.0, -700.0]), rtol=1e-12)
    assert table[1, 3] == 0.0
