"""Vectors in compiled kernels do what the plain functions of the same names do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import TypingError, njit

from subchain.vectors import WIDTH, aligned, at_most, first, load, reciprocal, spread, store, total, turned, zeros


def shift_and_scale(source: Any, target: Any, count: Any) -> None:
    """Whole vectors, then the rest under a mask."""
    column = 0
    while column + WIDTH <= count:
        x = load(source, 0, column, None)
        store(target, 0, column, None, (x + spread(source, 1, 0)) * x)
        column += WIDTH
    if column < count:
        mask = first(count - column)
        x = load(source, 0, column, mask)
        store(target, 0, column, mask, (x + spread(source, 1, 0)) * x)


def invert_and_limit(source: Any, target: Any) -> Any:
    """Reciprocals, of which none exceeds two; returns the sum of what was inverted."""
    values = zeros()
    values += load(source, 0, 0, None)
    store(target, 0, 0, None, at_most(reciprocal(values), 2.0))
    return total(values)


def turn(source: Any, rows: Any, target: Any, count: Any) -> None:
    """Blocks of rows become columns."""
    whole, rest = turned(source, rows, 0, 0, None), turned(source, rows, 0, WIDTH, first(count))
    for i in range(WIDTH):
        store(target, i, 0, None, whole[i])
        store(target, WIDTH + i, 0, None, rest[i])


@pytest.fixture
def source() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=(5, 3 * WIDTH))


def _compiled_and_plain(function: Callable[..., Any], *arguments: Any) -> None:
    compiled = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    assert njit(function)(*compiled) == pytest.approx(function(*arguments))
    for ours, plain in zip(compiled, arguments, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-15)


@pytest.mark.parametrize("count", [0, 1, WIDTH - 1, WIDTH, 2 * WIDTH + 3])
def test_a_mask_leaves_the_rest_of_a_row_alone(source: np.ndarray[Any, Any], count: int) -> None:
    target = np.full((2, 3 * WIDTH), 7.0)
    _compiled_and_plain(shift_and_scale, source, target, count)
    np.testing.assert_allclose(target[0, :count], (source[0, :count] + source[1, 0]) * source[0, :count])
    assert np.all(target[0, count:] == 7.0)


def test_reciprocals_of_what_is_not_positive_are_zero(source: np.ndarray[Any, Any]) -> None:
    source[0, :4] = [0.0, -1.0, 0.25, 4.0]
    target = np.empty((1, WIDTH))
    _compiled_and_plain(invert_and_limit, source, target)
    assert target[0, :4].tolist() == [0.0, 0.0, 2.0, 0.25]


def test_turned_blocks_are_transposed_and_negative_rows_count_from_the_end(source: np.ndarray[Any, Any]) -> None:
    rows = np.array([0, -1, 2, 3, 4, 0, -5, 1])
    target = np.full((2 * WIDTH, WIDTH), np.nan)
    _compiled_and_plain(turn, source, rows, target, 3)
    np.testing.assert_array_equal(target[: WIDTH + 3], source[rows, : WIDTH + 3].T)


def test_rows_that_are_not_contiguous_are_refused(source: np.ndarray[Any, Any]) -> None:
    with pytest.raises(TypingError):
        njit(shift_and_scale)(np.asfortranarray(source), source, 3)


def test_aligned_tables_begin_at_a_cache_line() -> None:
    assert all(aligned(3, columns).ctypes.data % 64 == 0 for columns in range(1, 40))
