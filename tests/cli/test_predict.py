"""`subchain predict`: states in files of all kinds."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM, read
from subchain.cli.answers import segments

TABLE = ["walk.csv", "--sequence", "animal"]


@pytest.fixture
def states(walk: Path) -> list[int]:
    """What the model itself says of the table."""
    model = HMM.load(walk)
    data = read("walk.csv", columns=["speed", "angle"], sequence="animal")
    return np.concatenate(model.predict(data)).tolist()


def test_a_table_has_a_row_for_every_observation(run: Any, walk: Path, states: list[int]) -> None:
    run("predict", walk, *TABLE, "-o", "states.csv")
    with open("states.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["state"]) for row in rows] == states
    assert [row["sequence"] for row in rows[::40]] == ["x", "y", "z"]
    assert [int(row["position"]) for row in rows] == [*range(40)] * 3


def test_without_a_file_the_table_goes_to_standard_output(run: Any, walk: Path) -> None:
    run("predict", walk, *TABLE, "-o", "states.csv")
    assert run("predict", walk, *TABLE).stdout == Path("states.csv").read_text()


def test_arrays_and_lines_hold_the_same_states(run: Any, walk: Path, states: list[int]) -> None:
    run("predict", walk, *TABLE, "-o", "states.npy")
    run("predict", walk, *TABLE, "-o", "states.txt")
    run("predict", walk, *TABLE, "-o", "states.parquet", "--probabilities")
    assert np.load("states.npy").tolist() == states
    assert [int(name) for name in Path("states.txt").read_text().split()] == states
    assert len(Path("states.txt").read_text().splitlines()) == 3
    table = pytest.importorskip("pyarrow.parquet").read_table("states.parquet")
    assert [int(name) for name in table["state"].to_pylist()] == states
    assert table.column_names == ["sequence", "position", "state", "p_0", "p_1"]


def test_probabilities_are_those_of_the_model(run: Any, walk: Path) -> None:
    run("predict", walk, *TABLE, "-o", "p.npy", "--probabilities")
    data = read("walk.csv", columns=["speed", "angle"], sequence="animal")
    np.testing.assert_allclose(np.load("p.npy"), np.concatenate(HMM.load(walk).predict_proba(data)), atol=1e-12)


def test_segments_cover_the_chromosome(run: Any, walk: Path) -> None:
    run("predict", walk, "walk.csv", "-o", "s.bed", "--chrom", "chr11", "--bin", 200, "--decoding", "viterbi")
    lines = [line.split("\t") for line in Path("s.bed").read_text().splitlines()]
    assert {line[0] for line in lines} == {"chr11"}
    assert lines[0][1] == "0"
    assert lines[-1][2] == str(120 * 200)
    assert [line[2] for line in lines[:-1]] == [line[1] for line in lines[1:]]
    assert all(before[3] != after[3] for before, after in pairwise(lines))


def test_segments_of_several_sequences_bear_their_names(run: Any, walk: Path) -> None:
    run("predict", walk, *TABLE, "-o", "s.bed")
    assert {line.split("\t")[0] for line in Path("s.bed").read_text().splitlines()} == {"x", "y", "z"}


def test_stretches_of_equal_states() -> None:
    assert segments(np.array([], dtype=int)) == []
    assert segments(np.array([1])) == [(0, 1)]
    assert segments(np.array([1, 1, 0, 1])) == [(0, 2), (2, 3), (3, 4)]


def test_text_is_cut_as_the_model_knows_it(answer: Any, book: Path) -> None:
    Path("new.txt").write_text("the mouse\n")
    found = answer("predict", book, "new.txt")
    assert found["n_observations"] == len("the mouse\n")
    assert len(found["states"][0]) == len("the mouse\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "states.doc"], "files that end in .csv"),
        (["-o", "states.bed", "--probabilities"], "no room for --probabilities"),
        (["-o", "states.bed", "--bin", "0"], "--bin must be at least 1"),
        (["--decoding", "viterbo"], "Did you mean 'viterbi'?"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_read(
    run: Any, walk: Path, arguments: list[str], said: str
) -> None:
    assert said in run("predict", walk, "walk.csv", *arguments, status=2).stderr
