"""Experiments as commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from subchain.experiments import __main__ as command
from subchain.experiments.experiment import Claim, Experiment, Row, mean_of


class Tiny(Experiment):
    """Two rows."""

    name = "tiny"
    title = "Tiny"

    def rows(self) -> Iterable[Row]:
        yield {"a": 1, "b": 0.5}
        yield {"a": 2, "b": 1.5, "c": "x"}

    def claims(self, rows: list[Row]) -> list[Claim]:
        return [
            Claim("b is one on the average", mean_of(rows, "b") == 1.0, "1.0"),
            Claim("a is negative", False, "1, 2", doubted=True),
        ]

    def draw(self, rows: list[Row], axes: Any) -> None:
        axes.plot([row["a"] for row in rows], [row["b"] for row in rows])


def test_a_table_a_figure_and_a_verdict_are_written(tmp_path: Path) -> None:
    claims = Tiny(tell=lambda text: None).run(tmp_path / "new")
    assert [claim.failed for claim in claims] == [False, False]
    assert (tmp_path / "new" / "tiny.csv").read_text().splitlines() == ["a,b,c", "1,0.5,", "2,1.5,x"]
    assert (tmp_path / "new" / "tiny.png").stat().st_size > 1000
    verdict = (tmp_path / "new" / "tiny.txt").read_text()
    assert "holds: b is one" in verdict
    assert "does not come out: a is negative" in verdict


def test_the_command_lists_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([]) == 0
    assert "subchains_of_text" in capsys.readouterr().out
    monkeypatch.setitem(command.EXPERIMENTS, "tiny", Tiny)
    assert command.main(["tiny", "--out", str(tmp_path)]) == 0
    assert "holds: b is one" in capsys.readouterr().out


def test_data_that_are_missing_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    assert command.main(["subchains_of_text", "--out", str(tmp_path)]) == 2
    assert "set SUBCHAIN_DATA" in capsys.readouterr().err


@pytest.mark.parametrize("name", command.EXPERIMENTS)
def test_every_experiment_says_what_it_is(name: str) -> None:
    experiment = command.EXPERIMENTS[name](quick=True, tell=lambda text: None)
    assert experiment.title
    assert experiment.seeds >= 1
