"""Missing values are -1 or nan; infinite ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

from subchain.data import Sequences, check_finite, is_missing, missing_rows
from subchain.data.missing import BLOCK_VALUES
from subchain.errors import InputError


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float32, np.float64])
def test_missing_entries_and_rows_are_found(dtype: type) -> None:
    gap = np.nan if np.issubdtype(dtype, np.floating) else -1
    values: np.ndarray = np.array([[1, gap], [gap, gap], [0, 2]]).astype(dtype)
    assert is_missing(values).tolist() == [[False, True], [True, True], [False, False]]
    assert missing_rows(values).tolist() == [False, True, False]
    assert missing_rows(values[:, 1]).tolist() == [True, True, False]


def test_unsigned_data_have_no_missing_values() -> None:
    assert not is_missing(np.array([255, 0], dtype=np.uint8)).any()


def test_nan_and_integers_are_finite() -> None:
    check_finite(np.array([np.nan, 1.0]))
    check_finite(np.array([1, 2]))
    check_finite(np.empty((0, 2)))


@pytest.mark.parametrize("row", [0, BLOCK_VALUES // 2 - 1, BLOCK_VALUES // 2, BLOCK_VALUES])
def test_an_infinite_value_is_found_in_any_block(row: int) -> None:
    values = np.zeros((BLOCK_VALUES + 1, 2), dtype=np.float16)
    values[row, 1] = -np.inf
    with pytest.raises(InputError, match=f"^position {row}, column 1 holds -inf"):
        check_finite(values)


def test_an_infinite_value_is_named_by_its_sequence() -> None:
    data = Sequences(np.array([0.0, 1.0, np.inf]), [0, 1, 3])
    with pytest.raises(InputError, match="^sequence 1, position 1 holds inf"):
        check_finite(data.values, data.describe)
