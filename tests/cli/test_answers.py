"""Answers of commands: forecasts, imputed tables, named states, joined columns, draws, unknown words, plain numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM, Categorical, Gaussian
from subchain.tasks.numbers import dwell, significant, with_spread

READ = ("--columns", "speed,angle", "--sequence", "animal")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


class TestForecast:
    def test_it_is_that_of_python(self, walk: Path, run: Any, answer: Any) -> None:
        model = HMM.load(walk)
        found = rows(run("forecast", walk, "walk.csv", *READ, "-n", 2).stdout)
        assert [(row["sequence"], row["step"]) for row in found[:3]] == [("x", "1"), ("x", "2"), ("y", "1")]
        from subchain import read

        expected = model.forecast(read("walk.csv", columns=["speed", "angle"], sequence="animal"), 2)[0]
        low, high = expected.quantiles([0.05, 0.95])[:, :, 0]
        np.testing.assert_allclose([float(row["speed"]) for row in found[:2]], expected.mean[:, 0], rtol=1e-5)
        np.testing.assert_allclose([float(row["speed_low"]) for row in found[:2]], low, rtol=1e-5)
        np.testing.assert_allclose([float(row["speed_high"]) for row in found[:2]], high, rtol=1e-5)
        assert answer("forecast", walk, "walk.csv", *READ, "-n", 2)["forecast"][0]["step"] == 1

    def test_symbols_and_mixed_tables(self, run: Any) -> None:
        run("fit", "walk.csv", "--columns", "speed,place", "--states", 2, "-q", "-o", "m.safetensors")
        found = rows(run("forecast", "m.safetensors", "walk.csv", "-n", 1).stdout)
        assert found[0]["place"] in ("wood", "field")
        assert 0.0 < float(found[0]["p_place"]) <= 1.0
        assert float(found[0]["speed_low"]) < float(found[0]["speed"]) < float(found[0]["speed_high"])

    def test_a_file(self, walk: Path, run: Any) -> None:
        told = run("forecast", walk, "walk.csv", *READ, "-n", 2, "-o", "next.tsv")
        assert "2 steps after 3 sequences written to next.tsv" in told.stdout
        assert Path("next.tsv").read_text().startswith("sequence\tstep\t")

    @pytest.mark.parametrize(
        ("options", "told"),
        [(("-n", 0), "--steps must be at least 1"), (("--interval", 2), "--interval must lie between 0 and 1"),
         (("-o", "a.pdf"), "forecasts are written to .csv and .tsv")],
    )  # fmt: skip
    def test_what_makes_no_sense(self, options: tuple[object, ...], told: str, walk: Path, run: Any) -> None:
        assert told in run("forecast", walk, "walk.csv", *options, status=2).stderr


class TestImpute:
    def test_missing_cells_are_filled_and_all_others_copied(self, walk: Path, run: Any, answer: Any) -> None:
        lines = Path("walk.csv").read_text().splitlines()
        cells = lines[5].split(",")
        Path("gaps.csv").write_text("\n".join([*lines[:5], ",".join([cells[0], "", *cells[2:]]), *lines[6:]]) + "\n")
        told = run("impute", walk, "gaps.csv", *READ, "-o", "complete.csv").stdout
        assert "1 missing entry of 120 observations filled and written to complete.csv" in told
        complete = Path("complete.csv").read_text().splitlines()
        assert [*complete[:5], *complete[6:]] == [*lines[:5], *lines[6:]]
        filled = complete[5].split(",")
        assert [filled[0], *filled[2:]] == [cells[0], *cells[2:]]
        assert abs(float(filled[1])) < 2.0  # the state of its neighbours
        assert run("impute", walk, "gaps.csv", *READ).stdout.splitlines() == complete
        assert answer("impute", walk, "gaps.csv", *READ)["n_imputed"] == 1


class TestRename:
    def test_by_arguments(self, walk: Path, run: Any) -> None:
        assert "2 states named" in run("rename", walk, "0=calm", "1=busy").stdout
        assert HMM.load(walk).state_names_ == ["calm", "busy"]
        run("rename", walk, "calm=quiet", "-o", "other.safetensors")
        assert HMM.load("other.safetensors").state_names_ == ["quiet", "busy"]
        assert HMM.load(walk).state_names_ == ["calm", "busy"]

    def test_by_a_file_as_the_report_writes_it(self, walk: Path, run: Any) -> None:
        Path("names.json").write_text(json.dumps({"states": {"1": "träge"}}), encoding="utf8")
        run("rename", walk, "--names", "names.json")
        assert HMM.load(walk).state_names_ == ["0", "träge"]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ('{"states": {"7": "a"}}', "names the state '7', but the model has the states 0 to 1"),
            ('{"states": {"0": 3}}', "is not a JSON object"),
            ('["a", "b"]', "is not a JSON object"),
            ("states", "cannot be read as a JSON object"),
        ],
    )
    def test_files_of_something_else(self, text: str, told: str, walk: Path, run: Any) -> None:
        Path("names.json").write_text(text)
        assert told in run("rename", walk, "--names", "names.json", status=3).stderr
        assert HMM.load(walk).state_names_ == ["0", "1"]

    @pytest.mark.parametrize(
        ("names", "told"),
        [(["calm"], "'calm' is not STATE=NAME"), (["9=calm"], "unknown state '9'"), ([], "rename needs names"),
         (["0=a", "1=a"], "must differ")],
    )  # fmt: skip
    def test_names_that_make_no_sense(self, names: list[str], told: str, walk: Path, run: Any) -> None:
        assert told in run("rename", walk, *names, status=2).stderr


class TestJoin:
    def test_all_columns_of_a_table_come_beside_the_states(self, walk: Path, run: Any) -> None:
        run("predict", walk, "walk.csv", *READ, "--join", "-o", "joined.csv")
        lines, joined = Path("walk.csv").read_text().splitlines(), Path("joined.csv").read_text().splitlines()
        assert joined[0] == "animal,speed,angle,place,state"
        assert [line.rpartition(",")[0] for line in joined] == lines
        assert {line.rpartition(",")[2] for line in joined[1:]} == {"0", "1"}

    def test_rows_of_scattered_sequences_keep_their_states(self, walk: Path, run: Any) -> None:
        header, *lines = Path("walk.csv").read_text().splitlines()
        order = np.arange(120).reshape(3, 40).T.ravel()  # one row of each animal in turn
        Path("scattered.csv").write_text("\n".join([header, *(lines[i] for i in order)]) + "\n")
        run("predict", walk, "scattered.csv", *READ, "--join", "-o", "joined.csv")
        run("predict", walk, "walk.csv", *READ, "--join", "-o", "expected.csv")
        assert sorted(Path("joined.csv").read_text().splitlines()) == sorted(
            Path("expected.csv").read_text().splitlines()
        )

    def test_a_column_called_state_is_kept(self, walk: Path, run: Any) -> None:
        Path("walk.csv").write_text(Path("walk.csv").read_text().replace("place", "state", 1))
        told = run("predict", walk, "walk.csv", *READ, "--join", "--probabilities").stdout
        assert told.splitlines()[0] == "animal,speed,angle,state,predicted_state,p_0,p_1"

    def test_arrays_have_their_own_columns(self, run: Any) -> None:
        run("fit", "codes.npy", "--states", 2, "-q")
        told = run("predict", "codes.safetensors", "codes.npy", "--join").stdout.splitlines()
        assert told[0] == "sequence,position,column_0,state"
        assert [int(line.split(",")[2]) for line in told[1:]] == np.load("codes.npy").tolist()

    def test_files_without_room(self, walk: Path, run: Any) -> None:
        told = run("predict", walk, "walk.csv", "--join", "-o", "states.npy", status=2).stderr
        assert ".npy files have no room for --join" in told


class TestSample:
    def test_the_terminal_shows_what_a_file_gets(self, walk: Path, run: Any) -> None:
        shown = run("sample", walk, "-n", 5, "--seed", 3).stdout
        run("sample", walk, "-n", 5, "--seed", 3, "-o", "drawn.csv")
        assert shown == Path("drawn.csv").read_text()
        assert shown.startswith("speed,angle,state\n")

    def test_so_it_does_for_text(self, book: Path, run: Any) -> None:
        shown = run("sample", book, "-n", 20).stdout
        run("sample", book, "-n", 20, "-o", "drawn.txt")
        assert shown == Path("drawn.txt").read_text()


def test_unknown_words_are_counted_and_named(run: Any) -> None:
    from subchain import Vocabulary, read_text

    known = Vocabulary(["the", "cat", "sat", "on", "mat", "<unk>"], unknown="<unk>")
    data = read_text("book.txt", vocabulary=known)
    HMM(2, Categorical(), random_state=0).fit(data).save("words.safetensors")
    Path("new.txt").write_text("the zebra sat on the zebra\nthe gnu\n")
    told = run("score", "words.safetensors", "new.txt").stderr
    assert "3 of 8 symbols are not in the vocabulary of the model and are read as <unk>: 2 different" in told
    assert "'zebra', 'gnu'" in told
    Path("known.txt").write_text("the cat sat on the mat\n")
    assert "vocabulary" not in run("score", "words.safetensors", "known.txt").stderr


def test_a_state_that_is_never_left_says_so(run: Any) -> None:
    emission = Gaussian.from_parameters([[0.0], [1223.4]], [[[1.0]], [[35_000.0]]])
    HMM.from_parameters([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], emission).save("m.safetensors")
    told = run("info", "m.safetensors").stdout
    assert "never left" in told
    assert "inf" not in told.replace("inference", "").replace("info", "")
    assert "1,220 ± 190" in told


@pytest.mark.parametrize(
    ("mean", "spread", "text"),
    [
        (1223.4, 187.2, "1,220 ± 190"),
        (-0.004, 1.02, "0.0 ± 1.0"),
        (0.0, 0.0, "0 ± 0"),
        (5.0, 1e-9, "5 ± 1e-09"),
        (2.0131, 0.4987, "2.01 ± 0.50"),
        (1e15, 2e14, "1e+15 ± 2e+14"),
    ],
)
def test_numbers_have_the_digits_that_they_mean(mean: float, spread: float, text: str) -> None:
    assert with_spread(mean, spread) == text


def test_small_and_large_numbers_alone() -> None:
    assert [significant(x) for x in (-0.0, 12.5, 1234567.0, 0.000123456)] == ["0", "12.5", "1,234,567", "0.0001235"]
    assert [dwell(x) for x in (1.04, 455.2, float("inf"))] == ["1.0", "455", "never left"]
