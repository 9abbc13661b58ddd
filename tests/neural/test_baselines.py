"""The LSTM of the experiments, and the command that runs everything on a machine with a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")

from neural_examples import text  # noqa: E402

from experiments.lstm import Network, perplexity, trained, width_for  # noqa: E402
from subchain.neural.batches import Text  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")


@pytest.mark.parametrize("budget", [4_000, 50_000, 3_600_000])
def test_the_width_is_the_largest_within_the_budget(budget: int) -> None:
    def size(width: int) -> int:
        with torch.device("meta"):
            return sum(parameter.numel() for parameter in Network(100, width, 2, 0.5).parameters())

    width = width_for(budget, 100, 2)
    assert size(width) <= budget < size(width + 8)


def test_its_perplexity_is_that_of_sentences_one_by_one() -> None:
    torch.manual_seed(0)
    network, x = Network(5, 8, 2, 0.5).eval(), text(1, 20)
    total = 0.0
    with torch.no_grad():
        for sentence in x:
            words = torch.from_numpy(np.asarray(sentence))
            before = torch.cat([torch.tensor([5]), words[:-1]])
            logs = torch.log_softmax(network(before[None])[0], dim=1)
            total += float(logs[torch.arange(len(words)), words].double().sum())
    found = perplexity(network, Text.of(np.asarray(x.values), x.offsets, joined=False), CPU)
    assert np.isclose(found, np.exp(-total / x.n_observations), rtol=1e-5)


def test_it_learns_and_keeps_the_best_epoch() -> None:
    found = trained(text(0, 200), text(1), text(2), 5, 20_000, 12, 0, 64, dropout=0.0)
    assert found.n_parameters <= 20_000
    assert found.valid < 3.8  # at best 3.0; 5.0 by frequencies
    assert abs(found.test - found.valid) < 0.5


def run(*arguments: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.gpu", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_everything_is_run_by_one_command_which_writes_a_log(tmp_path: Path) -> None:
    done = run("--tiny", "--only", "groups", "--out", str(tmp_path / "gpu"))
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "gpu" / "log.txt").read_text(encoding="utf8").splitlines()
    assert "PyTorch" in log[0]
    assert any(row.startswith("groups: ") for row in log)
    assert log[-1].split()[:2] == ["groups", "done"]
    assert "unknown step; known are tests, speed" in run("--tiny", "--only", "nothing").stderr
    if not torch.cuda.is_available():
        assert "there is no GPU" in run("--out", str(tmp_path)).stderr
