"""Small files and small models that commands are tried on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from subchain.cli.app import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder of its own, with a table, a text and arrays."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    rng = np.random.default_rng(0)
    states = np.repeat(np.arange(12) % 2, 10)
    speeds, angles = rng.normal(5 * states, 1), rng.normal(-3 * states, 1)
    lines = [
        f"{'xyz'[row // 40]},{speeds[row]:.3f},{angles[row]:.3f},{'wood' if states[row] else 'field'}"
        for row in range(len(states))
    ]
    Path("walk.csv").write_text("\n".join(["animal,speed,angle,place", *lines]) + "\n")
    Path("book.txt").write_text("the cat sat on the mat\na dog saw the cat\n" * 20)
    np.save("codes.npy", states + 2 * rng.integers(2, size=len(states)))
    np.savez("marks.npz", marks=rng.integers(2, size=(100, 3)).astype(np.uint8), lengths=np.array([60, 40]))
    return tmp_path


Run = Callable[..., Any]


@pytest.fixture
def run() -> Run:
    """Run a command that goes well; its result."""

    def command(*arguments: object, status: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == status, result.output
        return result

    return command


@pytest.fixture
def answer(run: Run) -> Run:
    """Run a command with --json; the object it prints."""

    def command(*arguments: object, status: int = 0) -> Any:
        return json.loads(run(*arguments, "--json", status=status).stdout)

    return command


@pytest.fixture
def walk(run: Run) -> Path:
    """A model of the table's numbers."""
    run("fit", "walk.csv", "--columns", "speed,angle", "--sequence", "animal", "--states", 2, "-o", "walk.safetensors")
    return Path("walk.safetensors")


@pytest.fixture
def book(run: Run) -> Path:
    """A model of the text's characters."""
    run("fit", "book.txt", "--unit", "characters", "--states", 3, "--max-iter", 5, "-o", "book.safetensors")
    return Path("book.safetensors")
