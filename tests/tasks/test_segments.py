"""Stretches of equal states, and the files they are written to."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import FAMILIES, draw, model_of, sparse_model, with_holes

from subchain import CVI, HMM, Categorical, as_sequences
from subchain.errors import ImpossibleSequenceError, InputError
from subchain.tasks.colours import COLOURS, shaded
from subchain.tasks.segments import Segments


def slowly(model: HMM, x: Any, decoding: str, **known: Any) -> list[tuple[int, int, int, int, float]]:
    """What segments are: states that are equal, one after the other."""
    found = []
    states, chances = model.predict(x, decoding, **known), model.predict_proba(x, **known)
    for sequence, (path, table) in enumerate(zip(states, chances, strict=True)):
        start = 0
        for state, run in groupby(path.tolist()):
            stop = start + len(list(run))
            found.append((sequence, start, stop, state, table[start:stop, state].mean()))
            start = stop
    return found


def check(found: Segments, expected: list[tuple[int, int, int, int, float]]) -> None:
    columns = (found.sequence, found.start, found.stop, found.state)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [row[:4] for row in expected]
    np.testing.assert_allclose(found.probability, [row[4] for row in expected], atol=1e-6)


@pytest.mark.parametrize("decoding", ["posterior", "viterbi"])
@pytest.mark.parametrize("family", FAMILIES)
def test_they_are_the_stretches_of_predicted_states(family: str, decoding: str) -> None:
    model = model_of(family, n_jobs=1)
    x = [with_holes(draw(model, 30)), draw(model, 1), draw(model, 17)]
    check(model.segments(x, decoding), slowly(model, x, decoding))


@given(st.lists(st.lists(st.integers(0, 1), max_size=9), min_size=1, max_size=6).filter(any))
def test_they_cover_every_sequence_and_neighbours_differ(pieces: list[list[int]]) -> None:
    emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    model = HMM.from_parameters([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], emission, n_jobs=1)
    found = model.segments(pieces)
    check(found, slowly(model, pieces, "posterior"))
    assert np.bincount(found.sequence, found.length, len(pieces)).tolist() == [len(piece) for piece in pieces]


@pytest.mark.parametrize("decoding", ["posterior", "viterbi"])
def test_what_is_known_of_the_states_is_kept(decoding: str) -> None:
    model = model_of("categorical", n_jobs=1)
    x, states = [draw(model, 40)], np.full(40, -1)
    states[10:20] = 1
    check(model.segments(x, decoding, states=[states]), slowly(model, x, decoding, states=[states]))
    legal = np.ones((40, 3), dtype=bool)
    legal[::2, 2] = legal[5:30, 0] = False
    check(model.segments(x, decoding, allowed=[legal]), slowly(model, x, decoding, allowed=[legal]))


@pytest.mark.filterwarnings("ignore:CVI stopped")
def test_training_data_are_answered_for_by_the_run() -> None:
    x = [np.array([0, 0, 0, 1, 1, 1] * 10), np.array([1, 1, 0, 0])]
    model = HMM(2, "categorical", inference=CVI(max_iter=3), random_state=0, n_jobs=1).fit(x)
    assert model.training_marginals_ is not None
    check(model.segments(x), slowly(model, x, "posterior"))


def test_sequences_that_need_logarithms() -> None:
    emission = Categorical.from_parameters([[1.0, 0.0, 0.0], [1e-300, 1.0, 1e-300], [0.0, 0.0, 1.0]])
    transition = [[0.5, 0.5, 0.0], [1e-200, 0.5, 0.5], [0.5, 0.0, 0.5]]
    model = HMM.from_parameters([1.0, 0.0, 0.0], transition, emission, n_jobs=1)
    x = [np.array([0, 0, 1, 0, 2, 2, 2])]
    check(model.segments(x), slowly(model, x, "posterior"))


def test_a_chain_in_a_file_is_cut_as_one_in_memory(tmp_path: Path) -> None:
    model = model_of("categorical", n_jobs=2)
    x = draw(model, 20_000).astype(np.uint8)
    np.save(tmp_path / "x.npy", x)
    in_file, in_memory = model.segments(tmp_path / "x.npy"), model.segments([x])
    assert in_file.start.tolist() == in_memory.start.tolist()
    assert len(in_file) == 1 + np.count_nonzero(np.diff(model.predict(x)))


def test_impossible_sequences_and_unknown_ways_are_named() -> None:
    with pytest.warns(UserWarning, match="sequence 1 has probability zero"):
        found = sparse_model(n_jobs=1).segments([[0, 1], [2, 1, 0, 1], [0]])
    assert set(found.sequence.tolist()) == {0, 2}
    assert found.n_sequences == 3
    with pytest.raises(ImpossibleSequenceError, match="sequence 0"):
        sparse_model(n_jobs=1).segments([2, 1, 0, 1])
    with pytest.raises(InputError, match="unknown decoding"):
        sparse_model(n_jobs=1).segments([[0, 1]], "vitebi")


# ---- the table -------------------------------------------------------------------------------------------------------


@pytest.fixture
def model() -> HMM:
    emission = Categorical.from_parameters([[0.95, 0.05], [0.05, 0.95]])
    found = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], emission, n_jobs=1)
    found.state_names_ = ["quiet", "active promoter"]
    return found


@pytest.fixture
def found(model: HMM) -> Segments:
    return model.segments({"GM": [0, 0, 0, 1, 1, 1, 0, 0], "K5": [1, 1, 1, 0, 0]})


def test_rows_can_be_counted_read_and_chosen(found: Segments) -> None:
    assert len(found) == 5
    assert [(row.sequence_name, row.start, row.stop, row.state_name) for row in found] == [
        ("GM", 0, 3, "quiet"),
        ("GM", 3, 6, "active promoter"),
        ("GM", 6, 8, "quiet"),
        ("K5", 0, 3, "active promoter"),
        ("K5", 3, 5, "quiet"),
    ]
    assert found[-1] == list(found)[4]
    assert found[found.length > 2].start.tolist() == [0, 3, 0]
    assert found[1:3].stop.tolist() == [6, 8]
    assert [row.sequence_name for row in found.of("K5")] == ["K5", "K5"]
    assert found.of(0).stop.tolist() == [3, 6, 8]
    assert ((found.probability > 0.5) & (found.probability <= 1.0)).all()
    with pytest.raises(IndexError):
        found[5]


def test_a_sequence_that_is_not_there_is_named(found: Segments, model: HMM) -> None:
    with pytest.raises(InputError, match="unknown sequence 'K6'; known are 'GM', 'K5'"):
        found.of("K6")
    with pytest.raises(InputError, match="there is no sequence 2;.*indices run from 0 to 1"):
        model.segments([[0], [1]]).of(2)


def test_as_a_table_of_pandas(found: Segments, model: HMM) -> None:
    pytest.importorskip("pandas")
    table = found.to_pandas()
    assert list(table.columns) == ["sequence", "start", "stop", "state", "probability"]
    assert table["sequence"].tolist() == ["GM"] * 3 + ["K5"] * 2
    assert table["state"].tolist() == [row.state_name for row in found]
    assert model.segments([[0], [1]]).to_pandas()["sequence"].tolist() == [0, 1]


# ---- BED -------------------------------------------------------------------------------------------------------------


def lines(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_a_file_has_nine_columns(found: Segments, model: HMM, tmp_path: Path) -> None:
    found.of("GM").to_bed(tmp_path / "x.bed", chrom="chr11", step=200, offset=1000)
    written = lines(tmp_path / "x.bed")
    frequent, rare = ("0,114,178", "230,159,0")
    assert [line[:4] for line in written] == [
        ["chr11", "1000", "1600", "quiet"],
        ["chr11", "1600", "2200", "active_promoter"],
        ["chr11", "2200", "2600", "quiet"],
    ]
    assert [int(line[4]) for line in written] == np.round(1000 * found.of("GM").probability).tolist()
    assert [line[5:] for line in written] == [
        [".", "1000", "1600", frequent],
        [".", "1600", "2200", rare],
        [".", "2200", "2600", frequent],
    ]
    assert model.state_occupancy_[0] > model.state_occupancy_[1]


def test_colours_of_your_own_or_none(found: Segments, tmp_path: Path) -> None:
    found.to_bed(tmp_path / "x.bed", colours={"quiet": "#FFFFFF"})
    assert {(line[3], line[8]) for line in lines(tmp_path / "x.bed")} == {
        ("quiet", "255,255,255"),
        ("active_promoter", "230,159,0"),
    }
    found.to_bed(tmp_path / "x.bed", colours=False)
    assert lines(tmp_path / "x.bed")[-1] == ["K5", "3", "5", "quiet"]


def test_a_track_has_a_line_that_browsers_understand(found: Segments, tmp_path: Path) -> None:
    found.to_bed(tmp_path / "x.bed", track='my "best"\nstates')
    first, *rest = (tmp_path / "x.bed").read_text().splitlines()
    name = "my 'best' states"
    assert first == f'track name="{name}" description="{name}" visibility=1 itemRgb="On"'
    assert len(rest) == len(found)


def test_sequences_are_chromosomes_by_their_names_or_by_what_is_said(model: HMM, tmp_path: Path) -> None:
    for x, chrom, expected in (
        ([[0], [1]], None, ["sequence_0", "sequence_1"]),
        ({"chr1": [0], "chr2": [1]}, None, ["chr1", "chr2"]),
        (as_sequences([[0], [1]], names=[1, 2]), None, ["1", "2"]),
        ([[0], [1]], ["chrX", "chrY"], ["chrX", "chrY"]),
    ):
        model.segments(x).to_bed(tmp_path / "x.bed", chrom=chrom)
        assert [line[0] for line in lines(tmp_path / "x.bed")] == expected


def test_parts_of_a_chromosome_lie_side_by_side_but_not_upon_each_other(found: Segments, tmp_path: Path) -> None:
    found.to_bed(tmp_path / "x.bed", chrom="chr11", offset=[5, 0])
    assert [line[1] for line in lines(tmp_path / "x.bed")] == ["5", "8", "11", "0", "3"]
    with pytest.raises(InputError, match="overlap on chr11"):
        found.to_bed(tmp_path / "y.bed", chrom="chr11")
    with pytest.raises(InputError, match="overlap on chr11"):
        found[::-1].to_bed(tmp_path / "y.bed", chrom="chr11", offset=[4, 0])
    assert os.listdir(tmp_path) == ["x.bed"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chrom": ["chr1"]}, "one name for each of 2 sequences"),
        ({"step": 0}, "step, the number of bases per position, must be"),
        ({"step": 0.5}, "step, the number of bases per position, must be"),
        ({"offset": -1}, "offset must be a whole number of bases"),
        ({"offset": [1, 2, 3]}, "one for each of 2 sequences"),
        ({"colours": {"quite": "#ffffff"}}, "unknown state 'quite'.*Did you mean 'quiet'"),
        ({"colours": {"quiet": "white"}}, "written as #rrggbb"),
    ],
)
def test_mistakes_are_explained_and_leave_no_file(
    found: Segments, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        found.to_bed(tmp_path / "x.bed", **settings)
    assert os.listdir(tmp_path) == []


def test_a_file_appears_when_it_is_complete(found: Segments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.bed").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write .*x\.bed: No space left on device") as raised:
        found.to_bed(tmp_path / "x.bed")
    assert raised.value.filename == str(tmp_path / "x.bed")
    assert os.listdir(tmp_path) == ["x.bed"]
    assert (tmp_path / "x.bed").read_text() == "old"


def test_colours_are_those_of_the_report_and_differ_for_two_dozen_states() -> None:
    import subchain.reports

    script = Path(subchain.reports.__file__).with_name("page") / "base.js"
    assert ", ".join(f'"{colour}"' for colour in COLOURS) in script.read_text()
    assert [shaded(rank) for rank in range(8)] == list(COLOURS)
    assert len({shaded(rank) for rank in range(24)}) == 24
