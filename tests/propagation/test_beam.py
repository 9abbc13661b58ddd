"""Marginals and draws between slices are those of all paths that pass them."""

import itertools

import numpy as np
import pytest

from subchain.propagation.beam import Likelihoods, draw_slices, nothing_reached, rank, reach, seat, walk_back

KEY = np.random.SeedSequence(0).generate_state(2, np.uint64)


def problem(seed, spread):
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(3, 0.7), 4)
    logs = spread * rng.normal(size=(5, 3))
    logs -= logs.max(axis=1, keepdims=True)
    states, begins = np.array([2, 0, 1, 1, 0]), np.array([True, False, False, True, False, True])
    slices = np.empty(5)
    draw_slices(moves, states, begins, KEY, seed, slices)
    return moves, Likelihoods(logs, np.exp(logs)), slices, begins


def passing(moves, table, slices, first, last):
    """All paths of a sequence that pass its slices, and their log weights."""
    paths, logs = [], []
    for path in itertools.product(range(3), repeat=last - first):
        steps = zip((3, *path), path, slices[first:last], strict=False)
        if all(moves[before, after] > level for before, after, level in steps):
            paths.append(path)
            logs.append(sum(table.logs[first + i, k] for i, k in enumerate(path)))
    return np.array(paths), np.array(logs)


@pytest.mark.parametrize("spread", [1.0, 3000.0])
@pytest.mark.parametrize("seed", range(6))
def test_beliefs_are_sums_over_all_paths(seed, spread):
    """Also where likelihoods are so far apart that marginals are zero to rounding."""
    moves, table, slices, begins = problem(seed, spread)
    found, possible = reach(rank(moves), slices, begins, table, np.arange(5), 0, nothing_reached())
    assert possible
    for first, position in ((0, 0), (0, 1), (0, 2), (3, 3), (3, 4)):
        paths, logs = passing(moves, table, slices, first, position + 1)
        expected = np.array([np.logaddexp.reduce(logs[paths[:, -1] == k], initial=-np.inf) for k in range(3)])
        here = slice(found.offsets[position], found.offsets[position + 1])
        marginals = np.full(3, -np.inf)
        with np.errstate(divide="ignore"):
            marginals[found.states[here]] = np.where(
                found.marginals[here] > 0.0, np.log(found.marginals[here]), found.logs[here]
            )
        np.testing.assert_allclose(marginals, expected - expected.max(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spread", [1.0, 3000.0])
def test_paths_are_drawn_by_their_weights(spread):
    moves, table, slices, begins = problem(1, spread)
    found, _ = reach(rank(moves), slices, begins, table, np.arange(5), 0, nothing_reached())
    states, counts, n = np.zeros(5, dtype=np.int32), {}, 3000
    for sweep in range(n):
        walk_back(moves, slices, begins, found, KEY, sweep, 0, states)
        counts[tuple(states[:3])] = counts.get(tuple(states[:3]), 0) + 1
    paths, logs = passing(moves, table, slices, 0, 3)
    expected = np.exp(logs - np.logaddexp.reduce(logs))
    assert sum(counts.values()) == sum(counts.get(tuple(path), 0) for path in paths.tolist())
    for path, share in zip(paths.tolist(), expected, strict=True):
        assert counts.get(tuple(path), 0) / n == pytest.approx(share, abs=0.04)


def test_the_number_of_tables_has_its_expectation():
    counts, concentration = np.array([[30.0, 1.0, 0.0]]), np.array([[2.0, 0.1, 1.0]])
    tables, total = np.empty((1, 3)), np.zeros((1, 3))
    for sweep in range(2000):
        seat(counts, concentration, KEY, sweep, 0, tables)
        total += tables
    assert total[0] / 2000 == pytest.approx([(2.0 / (2.0 + np.arange(30))).sum(), 1.0, 0.0], rel=0.03)
