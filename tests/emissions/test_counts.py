from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from subchain.data.sequences import Sequences
from subchain.emissions.counts import column_means, filled_rows, read_block, weigh_logs


@given(
    arrays(np.float64, (2, 3), elements=st.sampled_from([-np.inf, -2.0, 0.0, 0.5])),
    arrays(np.float64, (3, 4), elements=st.sampled_from([0.0, 1.0, 7.0])),
)
def test_logarithms_of_zero_count_only_where_there_is_an_amount(logs: np.ndarray, amounts: np.ndarray) -> None:
    expected = np.zeros((2, 4))
    for state, column, position in np.ndindex(2, 3, 4):
        if amounts[column, position] > 0.0:
            expected[state, position] += logs[state, column] * amounts[column, position]
    np.testing.assert_allclose(weigh_logs(logs, amounts), expected)


def test_reading_a_block_changes_nothing_in_it() -> None:
    values = np.array([1.0, np.nan, 3.0])
    amounts, known = read_block(values)
    np.testing.assert_array_equal(amounts, [[1.0, 0.0, 3.0]])
    np.testing.assert_array_equal(known, [[1.0, 0.0, 1.0]])
    assert np.isnan(values[1])


def test_column_means_leave_missing_entries_out() -> None:
    values = np.array([[1.0, np.nan, 0.0], [4.0, 6.0, 0.0]])
    np.testing.assert_allclose(column_means(Sequences(values)), [2.5, 6.0, 0.5])


def test_column_means_of_nothing_are_finite() -> None:
    assert np.isfinite(column_means(Sequences(np.zeros((0, 2))))).all()
    assert np.isfinite(column_means(Sequences(np.full((3, 2), -1)))).all()


def test_gaps_are_filled_with_the_mean_of_the_chosen_rows() -> None:
    data = Sequences(np.array([1, -1, 3, 100]))
    np.testing.assert_allclose(filled_rows(data, np.array([0, 1, 2])), [[1.0], [2.0], [3.0]])
