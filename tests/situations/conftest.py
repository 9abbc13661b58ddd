"""Both ways to a fitted model, with the number of states and nothing else: the command line, and Python."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from typer.testing import CliRunner

from subchain import HMM, read
from subchain.cli.app import app
from subchain.data import Sequences


class Answer(NamedTuple):
    """What the user has in the end.

    Attributes
    ----------
    model : the fitted model
    data : the data as they were read
    states : (N,) the decoded states
    notes : sentences about what was chosen and noticed
    """

    model: HMM
    data: Sequences
    states: NDArray[np.int64]
    notes: str

    def accuracy(self, truth: NDArray[Any]) -> float:
        """Share of the positions whose state is the true one, with the best matching of states."""
        table = np.zeros((self.model.n_states_, int(truth.max()) + 1))
        np.add.at(table, (self.states, truth), 1)
        return float(table[linear_sum_assignment(-table)].sum() / len(truth))


def _run(arguments: list[str], given: bytes | None) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"], input=given)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def _read(path: Path | str, given: bytes | None) -> Sequences:
    if given is None:
        return read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        return read(path)


def by_command(path: Path | str, n_states: int, given: bytes | None = None) -> Answer:
    """`subchain fit PATH --states K`, and `subchain predict MODEL PATH`."""
    told = _run(["fit", str(path), "--states", str(n_states), "-o", "model.safetensors"], given)
    states = _run(["predict", "model.safetensors", str(path)], given)["states"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = _read(path, given)
    return Answer(HMM.load("model.safetensors"), data, np.concatenate(states), " ".join(told["warnings"]))


def by_python(path: Path | str, n_states: int, given: bytes | None = None) -> Answer:
    """`HMM(K).fit(read(PATH))`, and `predict`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = _read(path, given)
        model = HMM(n_states, random_state=0).fit(data)
    states = model.predict(data)
    flat = np.concatenate(states) if isinstance(states, list) else states
    return Answer(model, data, flat, " ".join([*(str(note.message) for note in caught), model.family_reason_]))


@pytest.fixture(params=[by_command, by_python], ids=["command line", "Python"])
def fit(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """One of the two ways."""
    monkeypatch.chdir(tmp_path)
    way: Callable[..., Answer] = request.param
    return way


@pytest.fixture
def sticky() -> Callable[..., NDArray[np.int64]]:
    """States of a chain that stays for a while."""

    def draw(rng: np.random.Generator, n: int, n_states: int, stay: float = 0.95) -> NDArray[np.int64]:
        states = [int(rng.integers(n_states))]
        while len(states) < n:
            move = int(rng.integers(1, n_states)) if rng.random() > stay else 0
            states.append((states[-1] + move) % n_states)
        return np.array(states)

    return draw
