"""`python -m experiments`: listed, run, and shown on one page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from experiments import registry
from experiments.__main__ import app
from experiments.experiment import Claim, Experiment, Row


class Small(Experiment):
    """Two rows, three claims."""

    name = "small"
    title = "A small thing (Somebody 2001, figure 7)"

    def rows(self) -> Iterable[Row]:
        yield {"a": 1, "b": 0.5}
        yield {"a": 2, "b": 1.5}

    def claims(self, rows: list[Row]) -> list[Claim]:
        return [
            Claim("a is <small>", True, "1, 2", published="1.5"),
            Claim("b is odd", False, "0.5", doubted=True),
            Claim("there are few rows", len(rows) < 3, "2"),
        ]

    def draw(self, rows: list[Row], axes: Any) -> None:
        axes.plot([row["a"] for row in rows])


class Wrong(Small):
    name = "wrong"

    def claims(self, rows: list[Row]) -> list[Claim]:
        return [Claim("a is large", False, "1, 2")]


@pytest.fixture
def experiments() -> Any:
    """Run `python -m experiments` in this process; its result."""

    def command(*arguments: object, status: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == status, result.output
        return result

    return command


@pytest.fixture
def answer(experiments: Any) -> Any:
    """Run it with --json; the object it prints."""

    def command(*arguments: object, status: int = 0) -> Any:
        return json.loads(experiments(*arguments, "--json", status=status).stdout)

    return command


@pytest.fixture(autouse=True)
def small_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"small": Small, "sentences": registry.EXPERIMENTS["sentences"]}
    monkeypatch.setattr(registry, "EXPERIMENTS", kinds)


def test_the_list_has_paper_figure_and_data(experiments: Any, answer: Any, folder: Path) -> None:
    told = experiments("list", "--data", folder).stdout
    assert "Somebody 2001" in told
    assert "ptb (missing)" in told
    assert "LDC" in told
    listed = answer("list")["experiments"]
    assert listed[0] == {
        "name": "small", "title": "A small thing", "source": "Somebody 2001, figure 7", "needs": []
    }  # fmt: skip


def test_a_run_leaves_table_figure_verdict_and_page(experiments: Any) -> None:
    told = experiments("run", "small", "--quick", "-o", "out").stdout
    assert "holds: a is <small>" in told
    assert {path.name for path in Path("out").iterdir()} == {
        "small.csv", "small.png", "small.txt", "small.json", "index.html"
    }  # fmt: skip
    page = Path("out", "index.html").read_text(encoding="utf8")
    assert "a is &lt;small&gt;</td><td>1.5</td><td>1, 2</td>" in page
    assert "does not come out" in page
    assert "data:image/png;base64," in page
    assert "Somebody 2001, figure 7" in page


class Timed(Small):
    name = "timed"

    def claims(self, rows: list[Row]) -> list[Claim]:
        return [Claim("seeds and seconds are as asked", (self.seeds, self.budget) == (2, 7.5), f"{self.seeds}")]


def test_seeds_and_seconds_are_the_experiments_own_unless_given(
    experiments: Any, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, "timed", Timed)
    given = answer("run", "timed", "--seeds", 2, "--budget", 7.5)
    assert given["experiments"][0]["claims"][0]["verdict"] == "holds"
    own = answer("run", "timed", status=6)
    assert own["experiments"][0]["claims"][0]["found"] == "3"
    assert "--budget" in experiments("run", "timed", "--budget", 0, status=2).stderr


def test_data_that_are_missing_are_named_and_others_run(answer: Any, folder: Path) -> None:
    found = answer("run", "--all", "--quick", "--data", folder, status=3)
    assert [entry["run"] for entry in found["experiments"]] == [True, False]
    assert "simple-examples" in found["experiments"][1]["why"]
    assert Path("results", "index.html").exists()


def test_a_claim_that_fails_is_in_the_exit_code(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, "wrong", Wrong)
    found = answer("run", "small", "wrong", status=6)
    assert found["experiments"][1]["claims"][0]["verdict"] == "failed"
    page = Path("results", "index.html").read_text(encoding="utf8")
    assert "Of 4 claims of 2 experiments, 2 hold, 1 do not hold, and 1 that were doubted" in page


def test_mistakes_give_one_message(experiments: Any) -> None:
    told = experiments("run", "sentnces", status=2).stderr
    assert "unknown experiment 'sentnces'" in told
    assert "Did you mean 'sentences'?" in told
    assert "--all" in experiments("run", status=2).stderr


@pytest.mark.parametrize("before", [None, "elsewhere"])
def test_the_folder_of_one_command_is_not_that_of_the_next(
    experiments: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv("SUBCHAIN_DATA", raising=False)
    if before is not None:
        monkeypatch.setenv("SUBCHAIN_DATA", before)
    experiments("list", "--data", folder)
    assert os.environ.get("SUBCHAIN_DATA") == before


def test_a_folder_of_data_that_does_not_exist_is_refused(experiments: Any) -> None:
    assert "is no folder" in experiments("list", "--data", "nowhere", status=3).stderr


def test_experiments_run_from_a_copy_of_the_sources(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-m", "experiments", "run", "joint_predictive", "--quick", "--json", "-o", str(tmp_path)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["experiments"][0]["run"]
    assert (tmp_path / "joint_predictive.csv").exists()


def test_the_old_spelling_says_where_experiments_went_and_is_not_offered(run: Any) -> None:
    told = run("experiments", "run", "sentences", "--quick", status=2)
    assert "python -m experiments" in told.stderr
    assert len(told.stderr.splitlines()) == 1
    assert "experiments" not in run("--help").stdout
