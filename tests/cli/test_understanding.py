"""Data that commands understand without being told, and what they say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM


def test_the_product_that_fit_prints_is_accepted(answer: Any) -> None:
    first = answer("fit", "walk.csv", "--sequence", "animal", "--states", 2)
    call = first["python"].split("HMM(2, ")[1].split(", inference=")[0]
    assert call.startswith("Product(numbers=Gaussian(columns=['speed', 'angle']), place=Categorical(columns='place'))")
    second = answer("fit", "walk.csv", "--sequence", "animal", "--states", 2, "--emission", call)
    assert second["objective"] == first["objective"]
    assert answer("fit", "walk.csv", "--states", 2, "--emission", "auto")["family"] == "Product"


def test_missing_entries_are_counted(run: Any, answer: Any) -> None:
    Path("x.csv").write_text(
        "a,b\n" + "".join(f"{i * i % 7 + 0.5},{'' if i % 4 == 0 else i % 3 + 0.5}\n" for i in range(40))
    )
    assert (
        "40 observations in 1 sequence, 2 columns, 10 of 80 entries missing"
        in run("fit", "x.csv", "--states", 2).stdout
    )
    assert answer("fit", "x.csv", "--states", 2)["n_missing"] == 10
    assert answer("score", "x.safetensors", "x.csv")["n_missing"] == 10
    assert answer("predict", "x.safetensors", "x.csv")["n_missing"] == 10
    assert "no entry missing" in run("fit", "codes.npy", "--states", 2).stdout


def test_households_that_are_not_chosen_as_sequences_are_noticed(run: Any) -> None:
    rows = [f"{house},{load}" for house in ("H1", "H2", "H3") for load in np.repeat([0.5, 2.5], 20)]
    Path("load.csv").write_text("\n".join(["household,kwh", *rows]))
    plain = " ".join(run("fit", "load.csv", "--states", 2, "--max-iter", 2).output.split())
    assert "column 'household' has 3 values, each in one stretch of rows, and is observed." in plain
    assert "If it names the sequences, choose it with --sequence 'household'." in plain
    told = run("fit", "load.csv", "--states", 2, "--max-iter", 2, "--sequence", "household").output
    assert "in one stretch" not in " ".join(told.split())


def test_words_that_the_training_text_did_not_have_do_not_end_the_prediction(run: Any, answer: Any) -> None:
    Path("train.tsv").write_text("\n".join(["the\tDT", "dog\tNN", "", "a\tDT", "cat\tNN", ""] * 20))
    run("fit", "train.tsv", "--states", 2, "-o", "m.safetensors")
    Path("new.tsv").write_text("the\tDT\nmouse\tNN\n\na\tDT\n")
    found = answer("predict", "m.safetensors", "new.tsv", "--no-header")
    assert [len(states) for states in found["states"]] == [2, 1]
    assert "hold symbols that the training data did not have ('mouse')" in found["warnings"][0]


def test_one_impossible_sentence_does_not_refuse_the_others(run: Any, answer: Any) -> None:
    Path("train.txt").write_text("the cat sat\na dog ran\n" * 20)
    run("fit", "train.txt", "--states", 2, "--inference", "em", "-o", "m.safetensors")
    Path("new.txt").write_text("the cat sat\nthe zebra sat\na dog ran\n")  # <unk> has probability zero after EM
    found = answer("predict", "m.safetensors", "new.txt")
    assert found["states"][1] == [-1, -1, -1]
    assert found["states"][0] == answer("predict", "m.safetensors", "train.txt")["states"][0]
    assert any("sequence 1 has probability zero" in warning for warning in found["warnings"])
    assert any("the symbol '<unk>' at position 1" in warning for warning in found["warnings"])
    run("predict", "m.safetensors", "new.txt", "--probabilities", "-o", "states.csv")
    rows = Path("states.csv").read_text().splitlines()
    assert rows[4] == "1,0,the,,,"  # no state, and no probabilities
    run("predict", "m.safetensors", "new.txt", "-o", "states.txt")
    assert Path("states.txt").read_text().splitlines()[1].strip() == ""


def test_densities_are_not_ranked_against_probabilities(run: Any) -> None:
    Path("n.csv").write_text("n\n" + "\n".join(map(str, np.random.default_rng(0).poisson(9.0, 60))) + "\n")
    for family in ("poisson", "gaussian", "categorical"):
        run("fit", "n.csv", "--states", 1, "--emission", family, "-o", f"{family}.safetensors")
    message = run("compare", "poisson.safetensors", "gaussian.safetensors", "n.csv", status=2).stderr
    assert "poisson.safetensors (Poisson) and gaussian.safetensors (Gaussian) cannot be ranked" in message
    assert "best" in run("compare", "poisson.safetensors", "categorical.safetensors", "n.csv").stdout


@pytest.mark.parametrize(
    "option", [["--unit", "words"], ["--sequences", "chain"], ["--array", "x"], ["--lengths", "x"]]
)
def test_options_for_other_files_are_errors(run: Any, option: list[str]) -> None:
    message = run("fit", "walk.csv", "--states", 2, *option, status=2).stderr
    assert option[0] in message
    assert "leave it out" in message


def test_words_are_imputed_as_words() -> None:
    model = HMM(2, random_state=0).fit([["sun", "sun", "sun", "rain", "rain", "rain"] * 10])
    assert model.impute(["sun", None, "sun"]).tolist() == ["sun", "sun", "sun"]
    assert [part.tolist() for part in model.impute([["rain", None, "rain"], ["sun"]])] == [["rain"] * 3, ["sun"]]
    assert model.impute([0, -1, 0]).dtype.kind == "i"
