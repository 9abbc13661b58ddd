"""Commands that use a model: score, sample, info, compare, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subchain
from subchain import HMM, read


def test_scores_are_those_of_the_model(answer: Any, walk: Path) -> None:
    found = answer("score", walk, "walk.csv", "--sequence", "animal", "--each")
    data = read("walk.csv", columns=["speed", "angle"], sequence="animal")
    assert found["log_likelihood"] == HMM.load(walk).score(data)
    assert found["per_observation"] == found["log_likelihood"] / 120
    assert [entry["name"] for entry in found["sequences"]] == ["x", "y", "z"]


def test_a_score_is_readable(run: Any, walk: Path) -> None:
    assert "120 observations in 3 sequences" in run("score", walk, "walk.csv", "--sequence", "animal", "--each").stdout


def test_draws_are_text_if_the_model_was_made_from_text(run: Any, answer: Any, book: Path) -> None:
    text = run("sample", book, "-n", 30, "--seed", 1).stdout
    assert len(text) == 31
    assert set(text) <= set(Path("book.txt").read_text())
    assert "".join(answer("sample", book, "-n", 30, "--seed", 1)["observations"]) + "\n" == text


def test_draws_go_on_from_a_past(answer: Any, book: Path) -> None:
    Path("past.txt").write_text("the ca\n")
    assert len(answer("sample", book, "-n", 5, "--given", "past.txt")["states"]) == 5


def test_draws_are_written(run: Any, walk: Path) -> None:
    for name in ("draw.csv", "draw.npy", "draw.txt"):
        run("sample", walk, "-n", 4, "-o", name)
    drawn = np.load("draw.npy")
    assert drawn.shape == (4, 2)
    lines = Path("draw.csv").read_text().splitlines()
    assert lines[0] == "speed,angle,state"
    np.testing.assert_array_equal([[float(cell) for cell in line.split(",")[:2]] for line in lines[1:]], drawn)
    assert len(Path("draw.txt").read_text().splitlines()) == 4


def test_a_model_is_described(run: Any, answer: Any, walk: Path) -> None:
    told = run("info", walk).stdout
    assert "2 of 2 states are used" in told
    assert "speed" in told
    found = answer("info", walk)
    assert len(found["states"]) == 2
    assert found["columns"] == ["speed", "angle"]
    means = sorted(state["emits"]["speed"]["mean"] for state in found["states"])
    np.testing.assert_allclose(means, [0, 5], atol=0.5)
    np.testing.assert_allclose(np.sum(found["transition_matrix"], axis=1), 1.0)


def test_models_are_compared_best_first(run: Any, answer: Any, walk: Path) -> None:
    one = ["fit", "walk.csv", "--columns", "speed,angle", "--states", 1, "-o", "one.safetensors"]
    run(*one)
    found = answer("compare", "one.safetensors", walk, "walk.csv")
    assert found["best"] == str(walk)
    scores = [entry["score"] for entry in found["models"]]
    assert scores == sorted(scores, reverse=True)
    assert run("compare", "one.safetensors", walk, "walk.csv").stdout.count("best") == 1


def test_models_of_different_kinds_are_compared_with_a_warning(run: Any, walk: Path) -> None:
    other = ["--columns", "speed", "--states", 1, "--emission", "diagonal_gaussian", "-o", "other.safetensors"]
    run("fit", "walk.csv", *other)
    assert "are not comparable" in run("compare", "other.safetensors", walk, "walk.csv").stderr


def test_a_report_is_written_by_the_report(run: Any, answer: Any, walk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(model: HMM, x: Any, path: Path, *, title: Any, step: float, unit: Any, offset: float) -> None:
        Path(path).write_text(f"{title} {x.n_observations} {model.n_states_} {step:g} {unit} {offset:g}")

    monkeypatch.setattr(subchain, "report", write, raising=False)
    assert answer("report", walk, "walk.csv", "--title", "Walks")["report"] == "report.html"
    assert Path("report.html").read_text() == "Walks 120 2 1 None 0"
    assert run("report", walk, "walk.csv", "-q").output == ""
    answer("report", walk, "walk.csv", "--step", 0.5, "--step-unit", "s", "--offset", 30)
    assert Path("report.html").read_text() == "walk 120 2 0.5 s 30"


def test_a_step_of_nothing_is_one_sentence(run: Any, walk: Path) -> None:
    found = run("report", walk, "walk.csv", "--sequence", "animal", "--step", 0, status=2)
    assert "step must be a number between" in found.stderr
    assert not Path("report.html").exists()


def test_the_demonstration_shows_states_and_scores(run: Any, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(model: HMM, x: Any, path: Path, *, title: str | None = None) -> None:
        Path(path).write_text("report")

    monkeypatch.setattr(subchain, "report", write, raising=False)
    monkeypatch.setattr("subchain.cli.demo.MOST_STATES", 4)
    monkeypatch.setattr("subchain.cli.demo.ITERATIONS", 2)
    monkeypatch.setattr("subchain.cli.demo.FINITE", (2, 3))
    told = run("demo").stdout
    assert "states are used" in told
    assert "unigram" in told
    assert "(best finite)" in told
    assert "report written to report.html" in told
    found = answer("demo", "-o", "alice.html")
    assert found["best_finite"] in found["scores"]
    assert found["report"] == "alice.html"


@pytest.mark.filterwarnings("ignore")
def test_the_program_that_the_demonstration_prints_can_be_pasted_and_run(
    answer: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subchain, "report", lambda *_, **__: None)
    monkeypatch.setattr("subchain.cli.demo.ITERATIONS", 2)
    monkeypatch.setattr("subchain.cli.demo.MOST_STATES", 4)
    monkeypatch.setattr("subchain.cli.demo.FINITE", (2,))
    found = answer("demo")
    exec(found["python"], {})
    (infinite,) = (score for name, score in found["scores"].items() if name.startswith("infinite"))
    assert float(capsys.readouterr().out) == pytest.approx(infinite, abs=1e-12)


def test_the_demonstration_says_whether_its_limit_was_reached() -> None:
    from subchain.cli.demo import MOST_STATES, _answer

    assert f"up to {MOST_STATES} states" in _answer(MOST_STATES - 20)
    assert "there may be more kinds" in _answer(MOST_STATES)
