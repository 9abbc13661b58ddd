"""Vectors in compiled kernels do what the plain functions of the same names do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import TypingError, njit

from subchain.numerics.vectors import (
    LEAST_NORMAL,
    LOWEST_EXPONENT,
    LOWEST_SINGLE_EXPONENT,
    WIDTH,
    aligned,
    aligned_like,
    all_within,
    at_most,
    except_at,
    exponential,
    fetch,
    first,
    largest,
    load,
    load_doubles,
    logarithm,
    minus,
    reached,
    reciprocal,
    running,
    spread,
    store,
    total,
    turned,
    turned_doubles,
    width,
    zeros,
)


def shift_and_scale(source: Any, target: Any, count: Any) -> None:
    """Whole vectors, then the rest under a mask."""
    column = 0
    while column + width(source) <= count:
        x = load(source, 0, column, None)
        store(target, 0, column, None, (x + spread(source, 1, 0)) * x)
        column += width(source)
    if column < count:
        mask = first(count - column, source)
        x = load(source, 0, column, mask)
        store(target, 0, column, mask, (x + spread(source, 1, 0)) * x)


def invert_and_limit(source: Any, target: Any) -> Any:
    """Reciprocals, of which none exceeds two; returns the sum of what was inverted."""
    values = zeros(source)
    values += load(source, 0, 0, None)
    store(target, 0, 0, None, at_most(reciprocal(values), 2.0))
    return total(values)


def turn(source: Any, rows: Any, target: Any, count: Any) -> None:
    """Blocks of rows become columns."""
    size = width(source)
    whole, rest = turned(source, rows, 0, 0, None), turned(source, rows, 0, size, first(count, source))
    for i in range(size):
        store(target, i, 0, None, whole[i])
        store(target, size + i, 0, None, rest[i])


@pytest.fixture(params=[np.float64, np.float32])
def source(request: pytest.FixtureRequest) -> np.ndarray[Any, Any]:
    size = 3 * WIDTH * 8 // np.dtype(request.param).itemsize
    return np.random.default_rng(0).normal(size=(5, size)).astype(request.param)


def _compiled_and_plain(function: Callable[..., Any], *arguments: Any) -> None:
    compiled = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    rounding = 1e-15 if arguments[0].dtype == np.float64 else 5e-7
    found, expected = njit(function)(*compiled), function(*arguments)
    assert found == expected or found == pytest.approx(expected, rel=1e-6)
    for ours, plain in zip(compiled, arguments, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=rounding)


@pytest.mark.parametrize("count", [0, 1, WIDTH - 1, WIDTH, 2 * WIDTH + 3])
def test_a_mask_leaves_the_rest_of_a_row_alone(source: np.ndarray[Any, Any], count: int) -> None:
    target = np.full((2, source.shape[1]), 7.0, dtype=source.dtype)
    _compiled_and_plain(shift_and_scale, source, target, count)
    expected = (source[0, :count] + source[1, 0]) * source[0, :count]
    np.testing.assert_allclose(target[0, :count], expected, rtol=1e-6)
    assert np.all(target[0, count:] == 7.0)


def test_reciprocals_of_what_is_not_positive_are_zero(source: np.ndarray[Any, Any]) -> None:
    source[0, :4] = [0.0, -1.0, 0.25, 4.0]
    target = np.empty((1, width(source)), dtype=source.dtype)
    _compiled_and_plain(invert_and_limit, source, target)
    assert target[0, :4].tolist() == [0.0, 0.0, 2.0, 0.25]


def test_turned_blocks_are_transposed_and_negative_rows_count_from_the_end(source: np.ndarray[Any, Any]) -> None:
    size = width(source)
    rows = np.array([0, -1, 2, 3, 4, 0, -5, 1, 1, 2, 3, -2, 0, 4, 1, -1])[:size]
    target = np.full((2 * size, size), np.nan, dtype=source.dtype)
    _compiled_and_plain(turn, source, rows, target, 3)
    np.testing.assert_array_equal(target[: size + 3], source[rows, : size + 3].T)


def convert(source: Any, rows: Any, target: Any, doubles: Any) -> Any:
    """Numbers of any floating type as doubles, and back again; returns a sum in double precision."""
    columns = turned_doubles(source, rows, 0, 1, first(WIDTH - 1))
    for i in range(WIDTH):
        store(doubles, i, 0, None, columns[i])
    x = load_doubles(source, 0, 3, None) + load_doubles(source, 1, 0, first(3))
    store(target, 0, 0, None, x)
    store(target, 0, WIDTH, first(2), x)
    return total(load(source, 2, 0, None))


def test_doubles_come_from_tables_of_any_floating_type_and_are_rounded_to_it(source: np.ndarray[Any, Any]) -> None:
    target, doubles = np.zeros((1, 2 * WIDTH), dtype=source.dtype), np.zeros((WIDTH, WIDTH))
    rows = np.array([0, 1, 2, 3, 4, -1, -2, 1])
    _compiled_and_plain(convert, source, rows, target, doubles)
    np.testing.assert_array_equal(doubles[:-1], source[rows, 1:WIDTH].T)
    assert doubles.dtype == np.float64


def test_masks_of_another_width_are_refused() -> None:
    single = np.zeros((1, 16), dtype=np.float32)
    with pytest.raises(TypingError):
        njit(lambda table: store(table, 0, 0, first(3), load(table, 0, 0, None)))(single)


def test_rows_that_are_not_contiguous_are_refused(source: np.ndarray[Any, Any]) -> None:
    with pytest.raises(TypingError):
        njit(shift_and_scale)(np.asfortranarray(source), source, 3)


def test_aligned_tables_begin_at_a_cache_line() -> None:
    assert all(aligned(3, columns).ctypes.data % 64 == 0 for columns in range(1, 40))
    tables = [aligned_like(np.zeros(1, dtype=np.float32), 3, columns) for columns in range(1, 40)]
    assert all(table.ctypes.data % 64 == 0 and table.dtype == np.float32 for table in tables)


def exponentiate_differences(source: Any, target: Any) -> Any:
    """Exponentials of what each entry lacks to the larger one; returns whether they are all at least a half."""
    x, y = load(source, 0, 0, None), load(source, 1, 0, None)
    values = exponential(minus(x, largest(x, y)))
    store(target, 0, 0, None, values)
    return all_within(values, 0.5, 1.0)


@pytest.mark.parametrize("spread_of_values", [0.1, 1.0, 100.0])
def test_the_larger_of_two_and_exponentials(source: np.ndarray[Any, Any], spread_of_values: float) -> None:
    table = (spread_of_values * source).astype(source.dtype)
    _compiled_and_plain(exponentiate_differences, table, np.empty((1, width(source)), dtype=source.dtype))


@njit
def _exponentials(table: Any) -> None:
    for at in range(0, table.shape[1], width(table)):
        store(table, 0, at, None, exponential(load(table, 0, at, None)))


def test_exponentials_are_right_to_the_last_bit_but_one() -> None:
    values = np.concatenate((np.linspace(LOWEST_EXPONENT, 0.0, 80_001), -np.logspace(-300, 0, 8_000)))
    values = np.append(values, [LOWEST_EXPONENT - 1e-9, -1e5, -np.inf, np.nan, 0.0, -0.0, -1e300])
    assert len(values) % WIDTH == 0
    table = values[None].copy()
    _exponentials(table)
    lowest = np.exp(np.maximum(values, LOWEST_EXPONENT))
    expected = np.where(values < -1e299, 0.0, lowest)  # what is possible stays so
    np.testing.assert_array_max_ulp(table[0, np.isfinite(values)], expected[np.isfinite(values)], maxulp=1)
    np.testing.assert_equal(table[0, -5:-1], [0.0, np.nan, 1.0, 1.0])


def test_exponentials_of_singles_are_right_to_the_last_bits() -> None:
    values = np.linspace(LOWEST_SINGLE_EXPONENT, 0.0, 80_000).astype(np.float32)
    ends = [LOWEST_SINGLE_EXPONENT - 1e-3, -1e5, -np.inf, np.nan, 0.0, -0.0, -1e30, -1.0, *np.zeros(8)]
    values = np.append(values, np.float32(ends))
    table = values[None].copy()
    _exponentials(table)
    expected = np.where(values < LOWEST_SINGLE_EXPONENT, 0.0, np.exp(values.astype(np.float64)))
    np.testing.assert_allclose(table[0], expected, rtol=2e-7)


@njit
def _logarithms(table: Any) -> None:
    for at in range(0, table.shape[1], WIDTH):
        store(table, 0, at, None, logarithm(load(table, 0, at, None)))


def test_logarithms_are_right_to_the_last_bit_but_one() -> None:
    near_one = np.concatenate((np.linspace(0.5, 2.0, 8_000), 1.0 + np.logspace(-15, -2, 800)))
    values = np.concatenate((np.logspace(-307, 307, 80_000), near_one))
    table = values[None].copy()
    _logarithms(table)
    np.testing.assert_array_max_ulp(table[0], np.log(values), maxulp=1)
    ends = np.array([[0.0, 1e-310, LEAST_NORMAL, 1.0, 5e-324, 0.0, 2.0, 4.0]])
    expected = logarithm(ends)[0]
    _logarithms(ends)
    np.testing.assert_allclose(ends[0], expected, rtol=1e-15)


def lay_out(source: Any, target: Any, place: Any, bound: Any) -> Any:
    """Sums up to each entry, all entries but one, and how many sums stay below a bound."""
    fetch(source, 1, 2 * WIDTH)
    values = load(source, 0, 0, None)
    store(target, 0, 0, None, running(values))
    store(target, 1, 0, None, except_at(values, place))
    return reached(running(values), bound)


@pytest.mark.parametrize("place", [-1, 0, 5, WIDTH - 1, WIDTH])
def test_running_sums_and_vectors_without_an_entry(source: np.ndarray[Any, Any], place: int) -> None:
    source = np.abs(source)
    bounds = [-1.0, float(source[0, :3].sum()) + 1e-5, 1e9]
    for bound in bounds:
        _compiled_and_plain(lay_out, source, np.empty((2, width(source)), dtype=source.dtype), place, bound)
    target = np.empty((2, width(source)), dtype=source.dtype)
    assert [njit(lay_out)(source, target, place, bound) for bound in bounds] == [0, 3, width(source)]
