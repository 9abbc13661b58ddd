"""`subchain lm`: train, score and sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from subchain.cli.app import app

pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")

TRAIN = ("train", "--states", "8", "--embedding", "8", "--epochs", "2", "--streams", "4", "--length", "8")
TEXT = "the dog runs\na cat sleeps\nthe cat runs\na dog sleeps\n" * 6


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(TEXT)
    Path("valid.txt").write_text("the dog sleeps\na zebra runs\n")
    groups = {"the": 0, "a": 0, "dog": 1, "cat": 1, "runs": 2, "sleeps": 2, "</s>": 3}
    Path("groups.txt").write_text("".join(f"{word}\t{group}\n" for word, group in groups.items()))


def lm(*arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["lm", *arguments, "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_a_model_is_trained_scored_and_sampled() -> None:
    trained = lm(*TRAIN, "train.txt", "--validation", "valid.txt", "--groups", "groups.txt", "-o", "lm.safetensors")
    assert trained["n_words"] == 4 * 24
    scored = lm("score", "lm.safetensors", "valid.txt")
    assert (scored["n_words"], scored["n_sentences"], scored["n_unknown"]) == (8, 2, 1)
    assert np.isclose(scored["perplexity"], np.exp(-scored["log_likelihood"] / 8))
    assert np.isclose(scored["perplexity"], trained["validation_perplexity"], rtol=1e-6)
    drawn = lm("sample", "lm.safetensors", "-n", "30", "--seed", "1")
    assert drawn == lm("sample", "lm.safetensors", "-n", "30", "--seed", "1")
    assert {word for line in drawn["sentences"] for word in line.split()} <= {*TEXT.split(), "<unk>"}


def test_features_make_a_low_rank_model() -> None:
    dense = lm(*TRAIN, "train.txt", "-o", "dense.safetensors")
    low = lm(*TRAIN, "train.txt", "--features", "3", "-o", "low.safetensors")
    assert low["n_parameters"] == dense["n_parameters"] + 8 * 3


def test_a_run_goes_on_from_its_checkpoint() -> None:
    lm(*TRAIN, "train.txt", "-o", "lm.safetensors", "--checkpoint", "run.ckpt")
    assert (
        "exists already" in lm(*TRAIN, "train.txt", "-o", "lm.safetensors", "--checkpoint", "run.ckpt", code=2)["error"]
    )
    again = lm(*TRAIN, "train.txt", "-o", "lm.safetensors", "--checkpoint", "run.ckpt", "--resume")
    assert again["epochs"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("train", "nothing.txt", "-o", "lm"), 3, "there is no file 'nothing.txt'"),
        (("score", "nothing", "valid.txt"), 3, "there is no file 'nothing'"),
        (("score", "train.txt", "valid.txt"), 3, "not a subchain file"),
        ((*TRAIN, "train.txt", "-o", "lm", "--resume"), 2, "--resume needs --checkpoint FILE"),
        ((*TRAIN, "train.txt", "-o", "train.txt"), 4, "is also an input"),
        ((*TRAIN, "train.txt", "-o", "lm", "--features", "0"), 2, "features must be a whole number"),
        ((*TRAIN, "train.txt", "-o", "lm", "--groups", "valid.txt"), 3, "line 1 of 'valid.txt' is 'the dog sleeps'"),
    ],
)
def test_mistakes_get_one_sentence(arguments: tuple[str, ...], code: int, says: str) -> None:
    assert says in lm(*arguments, code=code)["error"]
