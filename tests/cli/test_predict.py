"""`subchain predict`: states in files of all kinds."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM, read

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


@pytest.fixture
def track(run: Any) -> Path:
    """A model of yes-or-no tracks, and files with such tracks."""
    rng = np.random.default_rng(1)
    hidden = np.repeat(np.arange(20) % 2, 10)
    one, two = (rng.random((200, 3)) < np.where(hidden == 1, 0.9, 0.1)[:, None] for _ in range(2))
    np.savez("cells.npz", GM=one, K5=two, marks=np.array(["a", "b", "c"]), bin_size=200)
    np.savez("chr1.npz", x=one)
    np.savez("chr2.npz", x=two)
    run("fit", "cells.npz", "--array", "GM,K5", "--emission", "bernoulli", "--states", 2, "-o", "cells.safetensors")
    return Path("cells.safetensors")


def bed(path: str) -> list[list[str]]:
    return [line.split("\t") for line in Path(path).read_text().splitlines()]


def test_segments_cover_the_chromosome(run: Any, track: Path) -> None:
    run("predict", track, "chr1.npz", "-o", "s.bed", "--chrom", "chr11", "--bin", 200, "--decoding", "viterbi")
    lines = bed("s.bed")
    assert {line[0] for line in lines} == {"chr11"}
    assert lines[0][1] == "0"
    assert lines[-1][2] == str(200 * 200)
    assert [line[2] for line in lines[:-1]] == [line[1] for line in lines[1:]]
    assert all(before[3] != after[3] for before, after in pairwise(lines))
    assert {len(line) for line in lines} == {9}


def test_segments_are_those_of_the_library(run: Any, track: Path) -> None:
    found = HMM.load(track).segments(read("cells.npz", array=["GM", "K5"]))
    found.to_bed("ours.bed", step=200, offset=400, colours=False, track="states")
    run("predict", track, "cells.npz", "--array", "GM,K5", "-o", "s.bed", "--bin", 200, "--offset", 400,
        "--no-colours", "--track", "states")  # fmt: skip
    assert Path("s.bed").read_text() == Path("ours.bed").read_text()
    assert {line[0] for line in bed("s.bed")[1:]} == {"GM", "K5"}


def test_shares_are_those_of_the_states(answer: Any, track: Path) -> None:
    shares = answer("predict", track, "cells.npz", "--array", "GM,K5", "-o", "s.bed")["shares"]
    assert shares == answer("predict", track, "cells.npz", "--array", "GM,K5", "-o", "s.npy")["shares"]


def test_segments_of_several_sequences_bear_their_names(run: Any, walk: Path, track: Path) -> None:
    run("predict", walk, *TABLE, "-o", "s.bed")
    assert {line[0] for line in bed("s.bed")} == {"x", "y", "z"}
    run("predict", track, "chr1.npz", "chr2.npz", "-o", "s.bed")
    assert {line[0] for line in bed("s.bed")} == {"chr1", "chr2"}


def test_several_sequences_do_not_share_a_chromosome(run: Any, track: Path) -> None:
    said = run("predict", track, "chr1.npz", "chr2.npz", "--chrom", "chr11", "-o", "s.bed", status=2).stderr
    assert "--chrom chr11 names one chromosome, but there are 2 sequences (chr1, chr2)" in said
    assert "--chrom chr1,chr2" in said
    assert "-o '{sequence}.bed'" in said
    said = run("predict", track, "chr1.npz", "chr2.npz", "--chrom", "a,b,c", "-o", "s.bed", status=2).stderr
    assert "--chrom names 3 chromosomes, but there are 2 sequences" in said
    assert not Path("s.bed").exists()
    run("predict", track, "chr1.npz", "chr2.npz", "--chrom", "chrX,chrY", "-o", "s.bed")
    assert {line[0] for line in bed("s.bed")} == {"chrX", "chrY"}


def test_each_sequence_can_have_a_file(run: Any, answer: Any, track: Path) -> None:
    run("predict", track, "cells.npz", "--array", "GM,K5", "-o", "all.bed")
    cells = ["predict", track, "cells.npz", "--array", "GM,K5", "-o", "{sequence}.bed"]
    run(*cells, "--chrom", "chr11", "--track", "cell {sequence}")
    for name in ("GM", "K5"):
        first, *lines = bed(f"{name}.bed")
        assert first[0].startswith(f'track name="cell {name}"')
        assert [["chr11", *line[1:]] for line in bed("all.bed") if line[0] == name] == lines
    run(*cells, "--chrom", "chr1,chr2")
    assert [bed(f"{name}.bed")[0][0] for name in ("GM", "K5")] == ["chr1", "chr2"]
    assert "2 files, GM.bed to K5.bed" in run(*cells).stdout
    assert answer(*cells)["output"] == ["GM.bed", "K5.bed"]
    assert [bed(f"{name}.bed")[0][0] for name in ("GM", "K5")] == ["GM", "K5"]


def test_names_that_cannot_be_files_are_refused(run: Any, walk: Path) -> None:
    text = Path("walk.csv").read_text().replace("\ny,", "\n../y,")
    Path("odd.csv").write_text(text)
    said = run("predict", walk, "odd.csv", "--sequence", "animal", "-o", "{sequence}.bed", status=2).stderr
    assert "different sequence names that are valid file names" in said
    assert not list(Path().glob("*.bed"))


def test_text_is_cut_as_the_model_knows_it(answer: Any, book: Path) -> None:
    Path("new.txt").write_text("the mouse\n")
    found = answer("predict", book, "new.txt")
    assert found["n_observations"] == len("the mouse\n")
    assert len(found["states"][0]) == len("the mouse\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "states.doc"], "states are written to .csv"),
        (["-o", "states.bed", "--probabilities"], "no room for --probabilities"),
        (["-o", "states.bed", "--bin", "0"], "--bin must be at least 1"),
        (["-o", "states.bed", "--offset", "-1"], "--offset must be at least 0"),
        (["-o", "states.bed", "--chrom", "chr1,"], "names an empty chromosome"),
        (["-o", "{sequence}.csv"], "is possible for segments (.bed) only"),
        (["--decoding", "viterbo"], "Did you mean 'viterbi'?"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_read(
    run: Any, walk: Path, arguments: list[str], said: str
) -> None:
    assert said in run("predict", walk, "walk.csv", *arguments, status=2).stderr
