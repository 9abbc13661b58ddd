from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain.data.sequences import Sequences
from subchain.emissions import moments
from subchain.emissions.moments import data_moments, lift_eigenvalues, patterns
from subchain.errors import InputError

NAN = np.nan


def test_moments_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).normal(size=(300, 3)) @ np.random.default_rng(1).normal(size=(3, 3)) + 100.0
    found = data_moments(Sequences(values))
    np.testing.assert_allclose(found.mean, values.mean(axis=0))
    np.testing.assert_allclose(found.covariance, np.cov(values.T, bias=True))


def test_missing_values_are_left_out_coordinate_by_coordinate() -> None:
    values = np.random.default_rng(0).normal(size=(300, 2)) + np.array([5.0, -3.0])
    values[:100, 0] = values[200:, 1] = NAN
    found = data_moments(Sequences(values))
    np.testing.assert_allclose(found.mean, np.nanmean(values, axis=0))
    np.testing.assert_allclose(found.variances, np.nanvar(values, axis=0))
    assert np.linalg.eigvalsh(found.covariance).min() > 0.0


def test_columns_that_never_vary_get_a_small_variance() -> None:
    values = np.column_stack((np.full(30, 0.1), np.full(30, -400.0), np.arange(30.0)))
    found = data_moments(Sequences(values))
    np.testing.assert_allclose(found.variances[:2], [1e-6, 1e-6 * 400.0**2])
    np.testing.assert_allclose(found.mean[:2], [0.1, -400.0])


def test_dependent_columns_have_a_covariance_that_can_be_inverted() -> None:
    column = np.random.default_rng(0).normal(size=50)
    found = data_moments(Sequences(np.column_stack((column, 1e5 * column, -column))))
    assert np.linalg.eigvalsh(found.covariance / np.sqrt(np.outer(found.variances, found.variances))).min() > 5e-7


def test_large_data_are_sampled_in_runs_that_cover_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "SAMPLE_VALUES", 4000)
    monkeypatch.setattr(moments, "SAMPLE_CHUNK", 100)
    values = np.linspace(0.0, 1.0, 20_000)
    columns = moments.sample_columns(Sequences(values))
    assert columns.shape == (1, 4000)
    assert (columns[0, 0], columns[0, -1]) == (values[0], values[-1])
    assert columns.mean() == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_array_equal(columns, moments.sample_columns(Sequences(values)))


@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 99))
def test_patterns_partition_the_rows(n_features: int, n: int, seed: int) -> None:
    missing = np.random.default_rng(seed).random((n_features, n)) < 0.4
    groups = list(patterns(missing))
    assert sorted(np.concatenate([rows for _, rows in groups])) == list(range(n))
    assert len({known.tobytes() for known, _ in groups}) == len(groups)
    for known, rows in groups:
        np.testing.assert_array_equal(missing[:, rows], np.tile(~known[:, None], len(rows)))


def test_eigenvalues_above_the_floor_stay_as_they_are() -> None:
    covariances = np.array([np.diag([4.0, 1.0]), np.diag([4.0, 1e-9])])
    lifted = lift_eigenvalues(covariances, np.array([1.0, 1e-4]))
    np.testing.assert_array_equal(lifted[0], covariances[0])
    np.testing.assert_allclose(lifted[1], np.diag([4.0, 1e-4]))


@pytest.mark.parametrize("scale", [1e-150, 1e-160, 1e-300])
def test_a_column_whose_squares_underflow_is_named(scale: float) -> None:
    values = np.random.default_rng(0).normal(size=(50, 2)) * np.array([1.0, scale])
    with pytest.raises(InputError, match=r"column 'b' of the data varies by no more than \de-\d+.*Rescale"):
        data_moments(Sequences(values, columns=["a", "b"]))
