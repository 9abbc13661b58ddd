"""Expected tables: for customers that are counted, and for those that are believed in."""

from __future__ import annotations

from fractions import Fraction

import naive_hdp
import numpy as np
import pytest

from subchain.numerics.expected_tables import expected_tables, expected_tables_of
from subchain.propagation.occurrence.methods import exact, pairs


@pytest.mark.parametrize("base", [1e-300, 1e-40, 1e-8, 1e-3, 0.5, 1.0, 7.3, 50.0, 1e4, 1e10, 1e15])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 100])
def test_whole_counts_are_sums_of_chances(base: float, n: int) -> None:
    expected = float(sum((Fraction(base) / (Fraction(base) + seated) for seated in range(n)), start=Fraction(0)))
    assert expected_tables_of(base, n) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("base", [1e-40, 1e-3, 0.5, 3.0, 50.0, 1e4])
@pytest.mark.parametrize("count", [1e-9, 0.3, 0.99, 5.5, 1000.3, 1e12])
def test_one_more_customer_opens_a_table_by_chance(base: float, count: float) -> None:
    more = expected_tables_of(base, count + 1.0)
    assert more == pytest.approx(float(expected_tables_of(base, count)) + base / (base + count), rel=1e-13)


def test_simulated_customers_open_as_many_tables() -> None:
    rng, times = np.random.default_rng(0), 20_000
    for base, n in ((0.1, 5), (0.7, 40), (4.0, 12)):
        tables = naive_hdp.seat(base, n, times, rng)
        assert abs(tables.mean() - expected_tables_of(base, n)) < 4.5 * tables.std() / np.sqrt(times)


def test_customers_who_are_there_for_certain_are_plain_counts() -> None:
    counts = np.array([[1.0, 2.5], [30.0, 7.0]])
    certain = expected_tables([0.3, 1e-40], counts, np.full((2, 2), np.inf))
    np.testing.assert_allclose(certain, expected_tables_of([0.3, 1e-40], counts), rtol=1e-14)


def test_customers_who_come_seldom_open_one_table_each() -> None:
    counts = np.array([1e-3, 1e-8, 1e-200, 0.0])
    np.testing.assert_allclose(expected_tables(2.0, counts, counts), counts, rtol=1e-3)


def test_there_are_no_more_chances_than_customers() -> None:
    """Occurrence that is too large for the counts, by rounding or approximation, is not believed."""
    np.testing.assert_allclose(expected_tables(0.5, [0.2, 1e-9], [5.0, 1e-8]), [0.2, 1e-9])
    assert expected_tables(0.5, 0.2, -1e-17) == 0.0


def test_a_base_of_zero_has_one_table_wherever_there_are_customers() -> None:
    np.testing.assert_allclose(expected_tables(0.0, [0.0, 3.0, 40.0], [0.0, np.log(2.0), 90.0]), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("seed", range(4))
def test_tables_under_beliefs_lie_between_those_of_all_paths_and_those_of_mean_counts(seed: int) -> None:
    """The curve bends down: taken at a mean it is too high, and less so at the mean of those who are there."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.05, 2.0, (3, 3))
    first, moves = rng.dirichlet(np.ones(3)), rng.dirichlet(np.full(3, 0.5), (6, 3))
    truth = naive_hdp.tables_of_paths(base, naive_hdp.simulated_paths(first, moves))
    counts = naive_hdp.counts_of_paths(naive_hdp.simulated_paths(first, moves), 3)
    found, plain = expected_tables(base, counts, exact(first, moves)), expected_tables_of(base, counts)
    assert np.all(found >= truth - 1e-12)
    assert np.all(found <= plain + 1e-12)
    assert np.mean(found - truth) < 0.5 * np.mean(plain - truth)
    nearly = expected_tables(base, counts, pairs(first, moves))
    assert np.mean(np.abs(nearly - truth)) < 0.5 * np.mean(plain - truth)


def test_at_most_one_customer_leaves_nothing_to_approximate() -> None:
    first, moves = np.array([0.4, 0.6]), np.array([[[0.3, 0.7], [0.9, 0.1]]])
    base = np.array([[0.2, 0.3], [0.4, 0.5]])
    truth = naive_hdp.tables_of_paths(base, naive_hdp.simulated_paths(first, moves))
    counts = naive_hdp.counts_of_paths(naive_hdp.simulated_paths(first, moves), 2)
    np.testing.assert_allclose(expected_tables(base, counts, exact(first, moves)), truth, rtol=1e-12)
