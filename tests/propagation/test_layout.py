"""Sequences as lanes: every position has one column, and steps are in order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from subchain.propagation.layout import side_by_side


@given(lengths=st.lists(st.integers(0, 9), max_size=20), most=st.integers(1, 6))
def test_every_position_has_one_column(lengths: list[int], most: int):
    edges = np.cumsum([0, *lengths])
    batches = list(side_by_side(edges[:-1], edges[1:], most))
    assert all(1 <= lanes.n_lanes <= most for lanes in batches)
    columns = np.concatenate([np.empty(0, dtype=np.int64), *(lanes.positions for lanes in batches)])
    np.testing.assert_array_equal(np.sort(columns), np.arange(edges[-1]))


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_a_lane_holds_consecutive_positions(lengths: list[int]):
    edges = np.cumsum([0, *lengths])
    (lanes,) = side_by_side(edges[:-1], edges[1:], len(lengths))
    first = lanes.positions[: lanes.n_lanes]
    assert set(first) == set(edges[:-1])
    for step in range(len(lanes.offsets) - 1):
        here = lanes.positions[lanes.offsets[step] : lanes.offsets[step + 1]]
        np.testing.assert_array_equal(here, first[: len(here)] + step)
