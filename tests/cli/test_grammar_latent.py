"""Grammars with latent annotations from the command line: fitted to a treebank, used, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import Run
from typer.testing import CliRunner

from subchain.cli.app import app
from subchain.grammar import LatentPCFG, clean_tree, read_trees

BANK = """(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))
(S (NP-SBJ (PRP it)) (VP (VBZ sees) (NP (-NONE- *))))
(S (NP (PRP it)) (VP (VBZ sees) (NP (NP (DT a) (NN dog)) (PP (IN with) (NP (DT the) (NN cat))))))
"""
IN_STAGES = ("--model", "latent", "--training", "split_merge", "--annotations", 2)


@pytest.fixture(autouse=True)
def treebank(folder: Path) -> None:
    Path("bank.txt").write_text(BANK * 3, encoding="utf8")
    Path("text.txt").write_text("it sees the dog\nsees it the\n", encoding="utf8")


def test_a_treebank_is_learned_used_and_scored(run: Run) -> None:
    options = ["--model", "latent", "--annotations", 2, "--iterations", 6, "--inference", "cvi"]
    found = json.loads(run("grammar", "fit", "bank.txt", "-o", "g", *options, "--json").stdout)
    fitted = LatentPCFG(2, "cvi", iterations=6, random_state=0, progress=False).fit("bank.txt")
    assert (found["n_trees"], found["n_symbols"]) == (9, len(fitted.symbols_))
    assert LatentPCFG.load("g").score(["it sees"]) == fitted.score(["it sees"])
    [tree] = fitted.parse(["it sees the dog"])
    parsed = run("grammar", "parse", "g", "text.txt")
    assert parsed.stdout.splitlines() == [str(tree), ""]
    assert "cannot derive sentence 1" in parsed.stderr
    run("grammar", "parse", "g", "bank.txt", "-o", "parsed.txt")
    gold = [tree for tree in map(clean_tree, read_trees("bank.txt")) if tree is not None]
    assert [own.leaves() for own in read_trees("parsed.txt")] == [own.leaves() for own in gold]
    scores = json.loads(run("grammar", "score", "g", "bank.txt", "--json").stdout)
    assert scores["log_probability"] == pytest.approx(fitted.score(gold))
    assert scores["f1"] > 0.5
    assert "without trees to compare" in run("grammar", "score", "g", "text.txt").stdout
    drawn = run("grammar", "sample", "g", "-n", 2, "--format", "tree").stdout
    assert drawn.count("ROOT") == 2


def test_a_training_in_stages_is_resumed(run: Run) -> None:
    options = ["--model", "latent", "--annotations", 2, "--training", "split_merge", "--iterations", 4]
    run("grammar", "fit", "bank.txt", "-o", "g", *options, "--checkpoint", "c")
    Path("c.2").unlink()
    run("grammar", "fit", "bank.txt", "-o", "again", *options, "--checkpoint", "c", "--resume")
    one, other = (LatentPCFG.load(name).posterior_.rules.concentration for name in ("g", "again"))
    np.testing.assert_array_equal(one, other)


def test_lines_of_the_output_are_those_of_the_input(run: Run) -> None:
    run("grammar", "fit", "bank.txt", "-o", "g", "--model", "latent", "--iterations", 1)
    lines = BANK.splitlines()
    Path("traces.txt").write_text("\n".join([lines[0], "(S (NP (-NONE- *)))", lines[2]]), encoding="utf8")
    parsed = run("grammar", "parse", "g", "traces.txt").stdout.splitlines()
    assert [bool(line) for line in parsed] == [True, False, True]
    scores = json.loads(run("grammar", "score", "g", "traces.txt", "--json").stdout)
    assert np.isfinite(scores["log_probability"])
    assert (scores["n_sentences"], scores["n_words"], scores["n_missing"]) == (3, 12, 0)
    shown = run("grammar", "score", "g", "traces.txt").stdout.splitlines()
    assert [line[:12].strip() for line in shown[2:]] == [
        "sentences", "no tree", "precision", "recall", "F1", "exact", "tags"
    ]  # fmt: skip
    Path("empty lines.txt").write_text("it sees the dog\n\n", encoding="utf8")
    scored = run("grammar", "score", "g", "empty lines.txt", "--json")
    assert json.loads(scored.stdout)["log_probability"] == LatentPCFG.load("g").score(["it sees the dog"])
    assert not scored.stderr


@pytest.mark.parametrize("command", ["parse", "score"])
def test_nothing_to_read_is_named(run: Run, command: str) -> None:
    run("grammar", "fit", "bank.txt", "-o", "g", "--model", "latent", "--iterations", 1)
    Path("tags.txt").write_text("DT NN VB\nNN VB\n", encoding="utf8")
    run("grammar", "fit", "tags.txt", "-o", "dmv", "--iterations", 1)
    run("grammar", "fit", "tags.txt", "-o", "pcfg", "--nonterminals", 1, "--preterminals", 2, "--iterations", 1)
    Path("empty.txt").write_text("\n", encoding="utf8")
    Path("traces.txt").write_text("(S (NP (-NONE- *)))\n", encoding="utf8")
    for grammar in ("g", "dmv", "pcfg"):
        text = "text.txt" if grammar == "g" else "tags.txt"
        for arguments, message in (
            (["empty.txt"], "no sentence with words that could be used"),
            ([text, "--max-length", "0"], "--max-length must be at least 1, not 0"),
            ([text, "--max-length", "1"], "no sentence with words that could be used"),
            *([(["traces.txt"], "no sentence with words")] if grammar == "g" else []),
        ):
            refused = CliRunner().invoke(app, ["grammar", command, grammar, *arguments])
            assert refused.exit_code not in (0, 1), (grammar, arguments)
            assert message in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "bank.1", "-o", "x", *IN_STAGES, "--checkpoint", "bank"], "'bank.1' is also an input"),
        (["fit", "bank.txt", "-o", "x.2", *IN_STAGES, "--checkpoint", "x"], "'x.2' is also an input"),
        (["fit", "bank.txt", "-o", "x", "--annotations", 2], "--annotations is for --model latent, not dmv"),
        (["fit", "bank.txt", "-o", "x", "--model", "latent", "--training", "slow"], "training"),
        (["fit", "bad.txt", "-o", "x", "--model", "latent"], "brackets are open"),
        (["parse", "g", "text.txt", "--format", "heads"], "--format"),
        (["parse", "g", "text.txt", "--method", "mbr"], "method of parsing"),
        (["parse", "g", "text.txt", "--column", "upos"], "--column is for files of tags"),
        (["sample", "g", "-n", 0], "whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, arguments: list[str], message: str) -> None:
    Path("bad.txt").write_text("(S (NP a)\n", encoding="utf8")
    Path("bank.1").write_text(BANK, encoding="utf8")
    run("grammar", "fit", "bank.txt", "-o", "g", "--model", "latent", "--iterations", 1)
    refused = CliRunner().invoke(app, ["grammar", *map(str, arguments)])
    assert refused.exit_code != 0
    assert message in refused.stderr
    assert not Path("x").exists()
