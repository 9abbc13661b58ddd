"""Transition operators: a band does what its matrix does, in less room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import band

from subchain import Dirichlet, banded, cyclic, left_right, stationary_distribution
from subchain.errors import InputError
from subchain.transitions import layout
from subchain.transitions.banded_rows import BandedDirichletChain
from subchain.transitions.layout import Layout, band_of
from subchain.transitions.operators import Banded, Dense
from subchain.transitions.stationary import stationary_of
from subchain.transitions.sums import ChainSums

Array = np.ndarray[Any, Any]
MASKS = {
    "left to right": lambda n: left_right(n, 1),
    "further ahead": lambda n: left_right(n, 3),
    "band": lambda n: banded(n, 2),
    "circle": lambda n: cyclic(n, 2),
    "backwards": lambda n: left_right(n, 2).T,
    "apart": lambda n: np.eye(n, dtype=bool),
    "in step": lambda n: np.roll(np.eye(n, dtype=bool), 1, axis=1),
}


def weights(mask: Array, seed: int = 0) -> Array:
    table = np.random.default_rng(seed).random(mask.shape) * mask
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_states", [1, 2, 5, 13])
@pytest.mark.parametrize("name", MASKS)
def test_a_band_does_what_its_matrix_does(name: str, n_states: int):
    matrix = weights(MASKS[name](n_states))
    narrow, wide, rng = band(matrix), Dense(matrix), np.random.default_rng(1)
    before, after = rng.random((2, n_states, 7))
    np.testing.assert_array_equal(narrow.dense(), matrix)
    np.testing.assert_allclose(narrow.apply(before), wide.apply(before))
    np.testing.assert_allclose(narrow.apply_transposed(before), wide.apply_transposed(before))
    logs = 400.0 * np.log(rng.random(n_states))
    np.testing.assert_allclose(narrow.log_apply(logs), wide.log_apply(logs))
    np.testing.assert_allclose(narrow.log_apply_transposed(logs), wide.log_apply_transposed(logs))
    counts, sums = wide.zeros(), narrow.zeros()
    wide.accumulate(before, after, counts.pairs)
    narrow.accumulate(before, after, sums.pairs)
    np.testing.assert_allclose(narrow.layout.spread(sums.pairs * narrow.weights), counts.pairs * matrix)
    np.testing.assert_array_equal(narrow.diagonal(), np.diagonal(matrix))
    assert all(narrow.weight(i, j) == matrix[i, j] for i in range(n_states) for j in range(n_states))
    np.testing.assert_allclose(narrow.mapped(np.square).dense(), matrix**2)


@given(mask=st.integers(1, 8).flatmap(lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n)))
def test_any_mask_fits_into_a_band(mask: list[bool]):
    n_states = int(np.sqrt(len(mask)))
    matrix = np.random.default_rng(0).random((n_states, n_states)) * np.reshape(mask, (n_states, n_states))
    narrow = band(matrix)
    np.testing.assert_array_equal(narrow.dense(), matrix)
    np.testing.assert_allclose(narrow.apply(np.eye(n_states)), matrix.T)


def test_bands_are_as_narrow_as_can_be():
    assert band(weights(left_right(50, 2))).layout.width == 3
    assert band(weights(cyclic(50, 1))).layout.width == 2
    assert band(weights(banded(50, 2))).layout.turned.width <= 7


def test_small_models_and_wide_bands_are_matrices():
    assert band_of(left_right(10, 1)) is None
    assert band_of(left_right(100)) is None
    found = band_of(left_right(100, 2))
    assert found is not None
    assert found.width == 3


# ---- counts ----------------------------------------------------------------------------------------------------------


def test_counts_of_a_band_add_up_and_visit_states():
    moves = band(weights(cyclic(7, 1)))
    rng = np.random.default_rng(0)
    sums = moves.sums(rng.random(7), rng.random(moves.weights.shape))
    both = sums + sums.scale(0.5)
    np.testing.assert_allclose(both.pairs, 1.5 * sums.pairs)
    np.testing.assert_array_equal(both.first, sums.first)
    np.testing.assert_allclose(sums.visits, ChainSums(sums.initial, sums.matrix()).visits)
    other = moves.zeros()
    other.absorb(sums)
    np.testing.assert_array_equal(other.matrix(), sums.matrix())
    order = np.arange(7)[::-1]
    np.testing.assert_array_equal(sums.take(order).pairs, sums.matrix()[::-1, ::-1])
    with pytest.raises(InputError, match="cannot be merged"):
        sums.fold(0, 1)


def test_transitions_outside_a_band_are_not_counted():
    sums = band(weights(banded(5, 1))).zeros()
    sums.count(np.array([0, 0, 4, 2]), np.array([1, 4, 4, 1]), 2.0)
    expected = np.zeros((5, 5))
    expected[[0, 4, 2], [1, 4, 1]] = 2.0
    np.testing.assert_array_equal(sums.matrix(), expected)


# ---- the long run ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["band", "circle", "left to right", "backwards", "in step"])
@pytest.mark.parametrize("n_states", [2, 6, 31])
def test_the_stationary_distribution_of_a_band(name: str, n_states: int):
    matrix = weights(MASKS[name](n_states), seed=2)
    np.testing.assert_allclose(stationary_of(band(matrix)), stationary_distribution(matrix), atol=1e-10)


@pytest.mark.parametrize("mask", [left_right(1500, 2), banded(1500, 1), cyclic(1500, 1)])
def test_large_bands_have_one_too(mask: Array):
    moves = band(weights(mask, seed=4))
    found = stationary_of(moves)
    np.testing.assert_allclose(moves.apply(found[:, None])[:, 0], found, atol=1e-12)
    assert found.sum() == pytest.approx(1.0)


# ---- the prior -------------------------------------------------------------------------------------------------------


def pair_of_priors(monkeypatch: pytest.MonkeyPatch, mask: Array, **settings: Any) -> tuple[Any, Any]:
    wide = Dirichlet(mask=mask, **settings).prior(len(mask), flat=False)
    monkeypatch.setattr(layout, "FEWEST_STATES", 1)
    monkeypatch.setattr(layout, "MOST_OF_ROW", 1.0)
    narrow = Dirichlet(mask=mask, **settings).prior(len(mask), flat=False)
    assert isinstance(narrow, BandedDirichletChain)
    return wide, narrow


FIXED = np.full((6, 6), np.nan)
FIXED[1, 1], FIXED[3, 4] = 0.5, 0.25
SETTINGS = [
    {},
    {"concentration": 0.3, "stickiness": 2.0},
    {"concentration": np.arange(1.0, 37.0).reshape(6, 6), "initial": "stationary"},
    {"fixed": FIXED, "initial": np.full(6, 1 / 6)},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("mask", [left_right(6, 2), banded(6, 1), cyclic(6, 1)])
def test_rows_of_a_band_have_the_same_law(monkeypatch: pytest.MonkeyPatch, mask: Array, settings: dict[str, Any]):
    wide, narrow = pair_of_priors(monkeypatch, mask, **settings)
    rng = np.random.default_rng(5)
    counts = ChainSums(rng.random(6), rng.random((6, 6)) * mask)
    for ours, theirs in ((narrow, wide), (narrow.update(narrow.own(counts)), wide.update(counts))):
        for kind in ("mean", "mode", "expected_log", "log_surrogate", "predictive"):
            one, other = getattr(ours, kind)(), getattr(theirs, kind)()
            np.testing.assert_allclose(one.initial, other.initial, atol=1e-10)
            expected = narrow.layout.gather(other.transition)
            np.testing.assert_allclose(one.weights, expected, atol=1e-12, err_msg=kind)
        assert ours.n_free() == theirs.n_free()
        assert ours.kl(narrow) == pytest.approx(theirs.kl(wide), abs=1e-10)
        assert ours.log_evidence(counts) == pytest.approx(theirs.log_evidence(counts))
        assert ours.log_density(ours.mean()) == pytest.approx(theirs.log_density(theirs.mean()))
        assert ours.log_density(theirs.mean()) == pytest.approx(theirs.log_density(theirs.mean()))  # given as a matrix
        np.testing.assert_allclose(ours.dense("a test").mean().transition, theirs.mean().transition)
    small, large = (chain.incremental(counts) for chain in (narrow, wide))
    small.blend(0.5, 2.0, narrow.own(counts))
    large.blend(0.5, 2.0, counts)
    for kind in ("expected_log", "predictive", "mode"):
        np.testing.assert_allclose(small.surrogate(kind).transition, large.surrogate(kind).transition, atol=1e-12)
    np.testing.assert_allclose(small.stationary(), large.stationary(), atol=1e-10)


def test_a_band_that_is_too_large_for_a_matrix_says_so():
    prior: Any = Dirichlet(mask=left_right(1500, 1)).prior(1500, flat=False)
    with pytest.raises(InputError, match="CVI needs the whole transition matrix, .* 1500 states .*at most 1024"):
        prior.dense("CVI")
    with pytest.raises(InputError, match="another order of states needs the whole"):
        prior.take(np.arange(1500))


def test_layouts_and_masks_agree():
    found = Layout(np.array([3, 0, 1, 2]), 2)
    np.testing.assert_array_equal(found.columns, [[3, 0], [0, 1], [1, 2], [2, 3]])
    assert found.column(0, 1) == 0
    assert isinstance(Banded(found, np.ones((4, 2))).into.weights, np.ndarray)
