"""Visits of states are those of the path, and the share that lasts longer is the product-limit estimate."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest

from subchain.checks.visits import Visits, survival


def runs_of(path, offsets):
    """Runs of equal states, one by one: state, length, whether the end of the sequence cuts it off."""
    found = []
    for start, stop in pairwise(offsets):
        runs = [(state, len(list(group))) for state, group in groupby(path[start:stop])]
        found += [(state, length, place == len(runs) - 1) for place, (state, length) in enumerate(runs)]
    return found


def naive_survival(runs, at):
    """Product over lengths d of one minus the share of ends among visits that are seen beyond d or end there."""
    share = 1.0
    for d in range(1, at + 1):
        ends = sum(length == d and not is_cut for length, is_cut in runs)
        at_risk = sum(length > d or (length == d and not is_cut) for length, is_cut in runs)
        share *= 1.0 - ends / at_risk if at_risk else 1.0
    return share


@pytest.mark.parametrize("block", [1, 7, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_visits_are_counted_over_blocks_and_sequences(seed, block) -> None:
    rng = np.random.default_rng(seed)
    path = np.cumsum(rng.random(300) < 0.3) * rng.integers(1, 3) % 3
    offsets = np.array([0, 40, 40, 41, 200, 300])
    visits = Visits(offsets, 3)
    for start in range(0, 300, block):
        visits.add(start, path[start : start + block])
    visits.close()
    runs = runs_of(path.tolist(), offsets.tolist())
    number, longest = visits.totals()
    for state in range(3):
        lengths, ended, cut = visits.of(state)
        mine = [(length, is_cut) for found, length, is_cut in runs if found == state]
        assert number[state] == len(mine)
        assert longest[state] == max((length for length, _ in mine), default=0)
        for length, n_ended, n_cut in zip(lengths, ended, cut, strict=True):
            assert (n_ended, n_cut) == (mine.count((length, False)), mine.count((length, True)))
        at = np.arange(1, longest[state] + 1)
        expected = [naive_survival(mine, d) for d in at]
        np.testing.assert_allclose(survival(lengths, ended, cut, at), expected)


def test_beyond_the_longest_visit_nothing_is_left_or_nothing_is_known() -> None:
    lengths, at = np.array([2, 5]), np.array([6])
    assert survival(lengths, np.array([1, 1]), np.array([0, 0]), at) == 0.0
    assert np.isnan(survival(lengths, np.array([1, 0]), np.array([0, 1]), at))
    assert np.isnan(survival(np.zeros(0, int), np.zeros(0, int), np.zeros(0, int), at))
