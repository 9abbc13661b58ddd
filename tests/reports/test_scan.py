"""A scan over blocks finds what one finds with all marginals in one table."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest
from small_models import model_of

from subchain import Sequences
from subchain.reports import tracks
from subchain.reports.kernels import HIDDEN
from subchain.reports.runs import Runs, affordable
from subchain.reports.scan import Scan
from subchain.tasks.profiles import Numbers, profile

LENGTHS = [70, 0, 1, 333, 12]
#: Pieces that simulations are compared with.
BOUNDS = np.array([[0, 70], [100, 140], [400, 416]])


@pytest.fixture
def subject():
    model = model_of("gaussian")
    values = np.vstack([model.sample(n, random_state=n).observations for n in LENGTHS if n])
    values[5] = np.nan
    return model, Sequences(values, np.concatenate([[0], np.cumsum(LENGTHS)]))


def scan(model, data, plan, block, hidden=None):
    slot = np.arange(3, dtype=np.uint8)
    if hidden is not None:
        slot[hidden:] = [HIDDEN, *range(hidden, 2)]
    columns = [part for part in profile(model.emission_, model.family_) if isinstance(part, Numbers)]
    return Scan(data, plan, slot, columns, BOUNDS).run(model.predict_proba_blocks(data, block))


@pytest.mark.parametrize("block", [7, 50, 10_000])
def test_bins_hold_the_mean_beliefs_entropies_and_numbers_of_their_positions(subject, block) -> None:
    model, data = subject
    marginals = np.vstack(model.predict_proba(data))
    entropy = -(marginals * np.log(np.maximum(marginals, 1e-300))).sum(axis=1)
    plan = [tracks.Track(3, "3", 71, 333, 10, True, 0), tracks.Track(0, "0", 0, 70, 70, True, 0)]
    summary = scan(model, data, plan, block)
    for found in summary.tracks:
        track = found.track
        for b in range(track.n_bins):
            inside = [p for p in range(track.length) if p * track.n_bins // track.length == b]
            rows = track.start + np.array(inside)
            np.testing.assert_allclose(found.bins.mean_shares()[b], marginals[rows].mean(axis=0), atol=1e-9)
            np.testing.assert_allclose(found.bins.mean_entropies()[b], entropy[rows].mean(), atol=1e-9)
            if np.isnan(data.values[rows]).all():
                assert np.isnan(found.numbers[b]).all()
                continue
            expected = [summary(data.values[rows], axis=0) for summary in (np.nanmin, np.nanmean, np.nanmax)]
            np.testing.assert_allclose(found.numbers[b].T, expected, atol=1e-9)
    np.testing.assert_allclose(summary.whole.shares.sum(axis=0), marginals.sum(axis=0), atol=1e-9)
    assert summary.certainty.sum() == data.n_observations


@pytest.mark.parametrize("block", [7, 10_000])
def test_runs_are_those_of_the_decoded_states_and_end_with_their_sequence(subject, block) -> None:
    model, data = subject
    summary = scan(model, data, tracks.plan(data, 10), block)
    runs = [(s, len(list(g))) for path in model.predict(data) for s, g in groupby(path.tolist())]
    for state in range(3):
        lengths = [length for found, length in runs if found == state]
        number, longest = summary.visits.totals()
        assert number[state] == len(lengths)
        assert longest[state] == max(lengths)


@pytest.mark.parametrize("block", [7, 10_000])
def test_changes_are_those_between_neighbours_of_one_sequence(subject, block) -> None:
    model, data = subject
    counted = np.zeros((3, 3), dtype=int)
    for path in model.predict(data):
        for before, after in pairwise(path.tolist()):
            counted[before, after] += before != after
    found = scan(model, data, tracks.plan(data, 10), block).visits.changes
    np.testing.assert_array_equal(found[:3, :3], counted)
    assert found.sum() == counted.sum()


@pytest.mark.parametrize("block", [7, 10_000])
def test_ranges_are_those_of_all_data_and_starts_the_marginals_of_the_pieces(subject, block) -> None:
    model, data = subject
    plan = [tracks.Track(0, "0", 0, 70, 10, True, 0)]  # the other sequences are not drawn
    summary = scan(model, data, plan, block)
    expected = np.column_stack([np.nanmin(data.values, axis=0), np.nanmax(data.values, axis=0)])
    np.testing.assert_array_equal(summary.ranges, expected)
    marginals = np.vstack(model.predict_proba(data))
    np.testing.assert_allclose(summary.starts.marginals, marginals[BOUNDS[:, 0]], atol=1e-12)
    np.testing.assert_array_equal(summary.best, marginals.argmax(axis=1)[summary.positions])


def test_single_positions_are_the_decoded_states(subject) -> None:
    model, data = subject
    summary = scan(model, data, tracks.plan(data, 10), 50)
    for found in summary.tracks:
        (stretch,) = found.stretches
        np.testing.assert_array_equal(stretch.best, model.predict(data)[found.track.sequence])


def test_stretches_of_a_long_track_are_its_beginning_and_where_states_are_most_frequent(subject, monkeypatch) -> None:
    model, data = subject
    monkeypatch.setattr("subchain.reports.scan.STRETCH", 20)
    states = model.predict(data)[3]
    summary = scan(model, data, [tracks.Track(3, "3", 71, 333, 10, False, 4)], 50)
    found = summary.tracks[0].stretches
    assert found[0].first == 0
    for stretch in found:
        np.testing.assert_array_equal(stretch.best, states[stretch.first : stretch.first + 20])
    whole = states[: 16 * 20].reshape(16, 20)
    for state in range(3):
        most = (whole == state).sum(axis=1).max()
        assert max((stretch.best == state).sum() for stretch in found) == most


def unpacked(runs):
    """The positions of runs, one by one."""
    lengths, length, unit = [], 0, 1
    for byte in runs.lengths.tolist():
        length, unit = length + (byte & 127) * unit, unit * 128
        if byte < 128:
            lengths.append(length)
            length, unit = 0, 1
    return np.repeat(runs.states, lengths)


@pytest.mark.parametrize("block", [7, 10_000])
def test_runs_of_a_long_track_are_its_decoded_states(subject, block) -> None:
    model, data = subject
    plan = [tracks.Track(3, "3", 71, 333, 10, False, 2), tracks.Track(0, "0", 0, 70, 10, True, 0)]
    long, short = scan(model, data, plan, block).tracks
    np.testing.assert_array_equal(unpacked(long.runs), model.predict(data)[3])
    assert short.runs is None


def test_runs_that_last_take_as_many_bytes_as_they_need() -> None:
    runs = Runs()
    for state, length in [(2, 1), (0, 127), (1, 128), (2, 16_383), (1, 16_384), (0, 5_000_000)]:
        runs.add(np.full(length, state, dtype=np.uint8))
    packed = runs.packed()
    assert packed.states.tolist() == [2, 0, 1, 2, 1, 0]
    assert len(packed.lengths) == 1 + 1 + 2 + 2 + 3 + 4
    assert len(unpacked(packed)) == 1 + 127 + 128 + 16_383 + 16_384 + 5_000_000


def test_too_many_runs_are_left_out(monkeypatch) -> None:
    monkeypatch.setattr("subchain.reports.runs.MOST_RUNS", 100)
    many, few = Runs(), Runs()
    for _ in range(3):
        many.add(np.arange(60, dtype=np.uint8))
        few.add(np.arange(30, dtype=np.uint8))
    assert many.packed() is None
    kept = few.packed()
    assert affordable([None, kept, kept]) == [None, kept, kept]
    monkeypatch.setattr("subchain.reports.runs.RUN_BYTES", kept.deflated)
    assert affordable([kept, None, kept]) == [kept, None, None]


def test_states_that_are_not_shown_take_part_in_nothing(subject) -> None:
    model, data = subject
    marginals = np.vstack(model.predict_proba(data))
    summary = scan(model, data, tracks.plan(data, 10), 50, hidden=1)
    np.testing.assert_allclose(summary.whole.shares.sum(axis=0), marginals[:, [0, 2]].sum(axis=0), atol=1e-9)
    assert summary.visits.totals()[0][:2].sum() > 0
    assert summary.visits.totals()[0][2:HIDDEN].sum() == 0


def test_a_plan_keeps_within_its_limits_and_covers_every_short_sequence() -> None:
    lengths = np.random.default_rng(0).integers(0, 4000, 500)
    data = Sequences(np.zeros(lengths.sum()), np.concatenate([[0], np.cumsum(lengths)]))
    found = tracks.plan(data, 40)
    assert len(found) == tracks.MOST_TRACKS
    assert sum(track.n_bins for track in found) <= tracks.MOST_BINS
    kept = sum(track.length if track.is_whole else track.n_stretches * tracks.STRETCH for track in found)
    assert kept <= tracks.MOST_POSITIONS
    assert lengths.argmax() in {track.sequence for track in found}
    few = tracks.plan(Sequences(np.zeros(30), [0, 10, 10, 30]), 40)
    assert [(track.sequence, track.n_bins, track.is_whole) for track in few] == [(0, 10, True), (2, 20, True)]
