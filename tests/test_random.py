"""Random numbers of kernels: uniform, independent along and across streams, functions of key, stream and position."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from subchain.numerics.random import key_of, seeded_stream, stream, uniform

N = 40_000
KEY = key_of(np.random.SeedSequence(3))


@njit
def numbers(begin, first, n):
    out = np.empty(n)
    for i in range(n):
        out[i] = uniform(begin, first + i)
    return out


@njit
def stream_numbers(key, number, first, n):
    return numbers(stream(key, number), first, n)


@njit
def across(key, position, n):
    """The number at one position of n neighbouring streams."""
    out = np.empty(n)
    for number in range(n):
        out[number] = uniform(stream(key, number), position)
    return out


@njit
def across_seeds(seed, position, n):
    out = np.empty(n)
    for number in range(n):
        out[number] = uniform(seeded_stream(seed, number), position)
    return out


def test_a_stream_is_the_published_generator():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    expected = [(word >> 11) / 2.0**53 for word in published]
    np.testing.assert_array_equal(numbers(np.uint64(1234567), 0, 4), expected)


def test_a_number_depends_on_its_position_alone():
    whole = stream_numbers(KEY, 5, 0, 100)
    np.testing.assert_array_equal(stream_numbers(KEY, 5, 60, 40), whole[60:])
    assert not np.isin(whole, stream_numbers(KEY, 6, 0, 100)).any()
    assert not np.isin(whole, stream_numbers(key_of(np.random.SeedSequence(4)), 5, 0, 100)).any()


SERIES = {
    "along a stream": lambda: stream_numbers(KEY, 0, 0, N),
    "far along a stream": lambda: stream_numbers(KEY, 7, 10**12, N),
    "across streams": lambda: across(KEY, 3, N),
    "across streams of a seed": lambda: across_seeds(np.uint64(0), 0, N),
}


@pytest.mark.parametrize("name", SERIES)
def test_numbers_are_uniform_and_neighbours_independent(name):
    found = SERIES[name]()
    assert (found >= 0.0).all()
    assert (found < 1.0).all()
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    assert stats.chisquare(np.bincount((found * 256).astype(int), minlength=256)).pvalue > 1e-3
    for lag in (1, 2, 8, 64):
        pairs = (found[:-lag] * 16).astype(int) * 16 + (found[lag:] * 16).astype(int)
        assert stats.chisquare(np.bincount(pairs, minlength=256)).pvalue > 1e-4
        assert abs(np.corrcoef(found[:-lag], found[lag:])[0, 1]) < 4.0 / np.sqrt(N)


@pytest.mark.parametrize("bit", [0, 1, 20, 40, 52])
def test_every_bit_is_as_often_one_as_zero(bit):
    words = (stream_numbers(KEY, 1, 0, N) * 2.0**53).astype(np.uint64)
    ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
    assert abs(ones - N / 2) < 4.0 * np.sqrt(N) / 2
