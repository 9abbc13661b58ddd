"""The evidence of counts under Dirichlet priors: its value, its maximum, and what Minka's steps do to it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln

from subchain.numerics.dirichlet_multinomial import TiedRows, maximise

BOUNDS = (1e-4, 1e4)


def draw(seed, rows=12, columns=5, concentration=0.8, total=40):
    rng = np.random.default_rng(seed)
    return rng.poisson(total * rng.dirichlet(np.full(columns, concentration), rows)).astype(float)


def evidence(counts, concentration):
    """The formula, row by row; entries of concentration zero cannot occur."""
    total = 0.0
    for row, c in zip(counts, np.broadcast_to(concentration, counts.shape), strict=True):
        n, c = row[c > 0.0], c[c > 0.0]
        total += gammaln(c.sum()) - gammaln(c.sum() + n.sum()) + (gammaln(c + n) - gammaln(c)).sum()
    return total


def best_number(rows):
    return np.exp(minimize_scalar(lambda log: -rows.log_evidence(np.exp([log])), bounds=np.log(BOUNDS)).x)


@given(seed=st.integers(0, 1000), concentration=st.floats(0.01, 10.0), whole=st.booleans())
def test_the_maximum_is_that_of_a_numerical_search(seed, concentration, whole):
    counts = draw(seed, concentration=concentration)
    counts = counts if whole else counts * 0.7 + 0.01
    rows = TiedRows(counts, np.ones_like(counts))
    assert rows.log_evidence(np.array([0.3])) == pytest.approx(evidence(counts, 0.3), abs=1e-8)
    found = maximise(rows, np.array([1.0]), BOUNDS)
    assert found.log_evidence == pytest.approx(evidence(counts, found.scales[0]), abs=1e-8)
    best = best_number(rows)
    assert found.log_evidence >= rows.log_evidence(np.array([best])) - 1e-6
    assert found.scales[0] == pytest.approx(best, rel=1e-3) or best > 100.0  # where the evidence is all but flat


@given(seed=st.integers(0, 1000))
def test_a_number_for_each_column_is_that_of_a_numerical_search(seed):
    rng = np.random.default_rng(seed)
    counts = np.array([rng.multinomial(60, rng.dirichlet([0.3, 1.0, 4.0])) for _ in range(15)], dtype=float)
    rows = TiedRows(counts, np.ones_like(counts), per_column=True)
    found = maximise(rows, np.ones(3), BOUNDS)
    search = minimize(lambda logs: -rows.log_evidence(np.exp(logs)), np.zeros(3), bounds=[np.log(BOUNDS)] * 3)
    assert found.log_evidence == pytest.approx(evidence(counts, found.scales), abs=1e-8)
    assert found.log_evidence >= -search.fun - 1e-6
    np.testing.assert_allclose(found.scales, np.exp(search.x), rtol=0.02)


@given(seed=st.integers(0, 1000), per_column=st.booleans())
def test_no_step_lowers_the_evidence(seed, per_column):
    counts = draw(seed)
    rows = TiedRows(counts, np.ones_like(counts), per_column=per_column)
    numbers = np.random.default_rng(seed).exponential(2.0, rows.n_scales)
    for _ in range(10):
        better = rows.update(numbers)
        assert rows.log_evidence(better) >= rows.log_evidence(numbers) - 1e-9
        numbers = better


def test_entries_that_cannot_occur_and_constants_take_part_as_they_should():
    counts = draw(3, rows=4, columns=4)
    possible = np.triu(np.ones((4, 4)))
    sticky = 2.0 * np.eye(4) * possible
    rows = TiedRows(counts, possible, sticky)
    alone = 3  # the last row has a single entry, whose probability is 1 under any concentration
    expected = evidence(counts[:alone], (0.4 * possible + sticky)[:alone])
    assert rows.log_evidence(np.array([0.4])) == pytest.approx(expected)
    found = maximise(rows, np.array([1.0]), BOUNDS)
    assert found.scales[0] == pytest.approx(best_number(rows), rel=1e-3)


def test_a_pattern_is_kept_and_its_scale_is_found():
    rng = np.random.default_rng(0)
    pattern = np.array([0.2, 0.8, 2.0])
    counts = np.array([rng.multinomial(200, rng.dirichlet(3.0 * pattern)) for _ in range(400)], dtype=float)
    found = maximise(TiedRows(counts, np.broadcast_to(pattern, counts.shape)), np.array([1.0]), BOUNDS)
    assert found.scales[0] == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("concentration", [0.03, 0.5, 5.0])
def test_the_concentration_that_drew_the_counts_is_found(concentration):
    rng = np.random.default_rng(1)
    counts = np.array([rng.multinomial(300, rng.dirichlet(np.full(20, concentration))) for _ in range(200)], float)
    for start in (1e-3, 1.0, 100.0):
        found = maximise(TiedRows(counts, np.ones_like(counts)), np.array([start]), BOUNDS)
        assert found.converged
        assert found.scales[0] == pytest.approx(concentration, rel=0.1)


@pytest.mark.parametrize(
    ("counts", "bound"), [([[50, 0, 0], [0, 40, 0]], 0), ([[20, 20, 20], [30, 30, 30]], 1)], ids=["certain", "uniform"]
)
def test_counts_that_ask_for_nothing_or_infinity_are_stopped_at_a_bound(counts, bound):
    rows = TiedRows(np.array(counts, dtype=float), np.ones((2, 3)))
    for start in (1e-3, 1.0, 100.0):
        assert maximise(rows, np.array([start]), (1e-2, 50.0)).scales[0] == pytest.approx((1e-2, 50.0)[bound])


def test_rows_of_single_counts_tell_nothing():
    assert not TiedRows(np.eye(3), np.ones((3, 3))).is_informative
    assert not TiedRows(np.array([[7.0], [9.0]]), np.ones((2, 1))).is_informative
    assert TiedRows(2.0 * np.eye(3), np.ones((3, 3))).is_informative
