"""Grammars from the command line: fitted, used, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.conftest import Run
from typer.testing import CliRunner

from subchain.cli.app import app
from subchain.grammar import DMV, PCFG, bracket_scores, read_dependencies, read_trees

TAGS = "DT NN VB\nNN VB\nDT NN VB DT NN\nNN VB NN\n"
GOLD = "the\tDT\t2\ndog\tNN\t3\nbarks\tVB\t0\n.\t.\t3\n\ndogs\tNN\t2\nbark\tVB\t0\n"


@pytest.fixture(autouse=True)
def sentences(folder: Path) -> None:
    Path("tags.txt").write_text(TAGS, encoding="utf8")
    Path("gold.tsv").write_text(GOLD, encoding="utf8")


def test_a_grammar_is_fitted_used_and_scored(run: Run) -> None:
    found = json.loads(run("grammar", "fit", "tags.txt", "-o", "g", "--iterations", 5, "--json").stdout)
    assert (found["n_sentences"], found["n_words"], found["n_tags"]) == (4, 13, 3)
    grammar = DMV.load("g")
    fitted = DMV(iterations=5, random_state=0, progress=False).fit(Path("tags.txt"))
    np.testing.assert_array_equal(grammar.rules_["probability"], fitted.rules_["probability"])
    heads = run("grammar", "parse", "g", "tags.txt", "--format", "heads").stdout.splitlines()
    assert heads == [" ".join(str(head + 1) for head in own) for own in fitted.parse(Path("tags.txt"))]
    run("grammar", "parse", "g", "gold.tsv", "--no-punctuation", "-o", "parsed.conllu")
    parsed = read_dependencies("parsed.conllu")
    run("grammar", "score", "g", "parsed.conllu")
    assert parsed.words == [["the", "dog", "barks"], ["dogs", "bark"]]
    assert [own.tolist() for own in parsed.heads or []] == [own.tolist() for own in fitted.parse(parsed)]
    scores = json.loads(run("grammar", "score", "g", "gold.tsv", "--no-punctuation", "--json").stdout)
    assert scores["log_probability"] == pytest.approx(fitted.score(parsed))
    assert scores["n_words"] == 5
    assert 0.0 <= scores["directed"] <= scores["undirected"] <= 1.0
    assert "perplexity" in run("grammar", "score", "g", "tags.txt").stdout
    tree = run("grammar", "parse", "g", "gold.tsv", "--no-punctuation", "--max-length", 2, "--format", "tree").stdout
    assert sorted(line.lstrip(" ┌└─") for line in tree.splitlines()) == ["bark", "dogs"]


def test_options_reach_the_grammar_and_a_run_is_resumed(run: Run) -> None:
    options = ["--inference", "CVI(max_iter=3)", "--concentration", 0.5, "--stop-concentration", 2, "--seed", 7]
    run("grammar", "fit", "tags.txt", "-o", "g", *options, "--checkpoint", "c")
    grammar = DMV.load("g")
    assert (grammar.concentration, grammar.stop_concentration, grammar.random_state) == (0.5, 2.0, 7)
    assert grammar.inference.get_params()["max_iter"] == 3  # type: ignore[union-attr]
    run("grammar", "fit", "tags.txt", "-o", "again", *options, "--checkpoint", "c", "--resume")
    assert DMV.load("again").score(Path("tags.txt")) == grammar.score(Path("tags.txt"))


@pytest.mark.parametrize("column", ["upos", "xpos"])
def test_tags_are_written_into_the_column_that_they_came_from(run: Run, column: str) -> None:
    rows = ["#sent_id=1", "1\tdogs\t_\tN\tNNS\t_\t2\tdep\t_\t_", "2\tbark\t_\tV\tVBP\t_\t0\troot\t_\t_", ""]
    Path("gold.conllu").write_text("\n".join(rows), encoding="utf8")
    run("grammar", "fit", "gold.conllu", "-o", "g", "--column", column)
    run("grammar", "parse", "g", "gold.conllu", "--column", column, "-o", "parsed.conllu")
    parsed = read_dependencies("parsed.conllu", column)
    assert parsed.tags == read_dependencies("gold.conllu", column).tags
    scores = [
        run("grammar", "score", "g", f"{name}.conllu", "--column", column, "--json") for name in ("gold", "parsed")
    ]
    gold, own = (json.loads(found.stdout) for found in scores)
    assert own["log_probability"] == gold["log_probability"]
    assert own["exact"] == 1.0


def test_a_grammar_generates_sentences(run: Run) -> None:
    run("grammar", "fit", "tags.txt", "-o", "g", "--inference", "vi")
    run("grammar", "sample", "g", "-n", 5, "--max-length", 6, "--seed", 3, "-o", "drawn.conllu")
    drawn, expected = read_dependencies("drawn.conllu"), DMV.load("g").sample(5, 6, random_state=3)
    assert drawn.tags == expected.tags
    assert [own.tolist() for own in drawn.heads or []] == [own.tolist() for own in expected.heads or []]
    shown = run("grammar", "sample", "g", "-n", 5, "--max-length", 6, "--seed", 3, "--format", "heads").stdout
    assert shown.splitlines() == [" ".join(str(head + 1) for head in own) for own in expected.heads or []]
    found = json.loads(run("grammar", "sample", "g", "--seed", 3, "--max-length", 6, "--json").stdout)
    assert found["tags"] == expected.tags[:1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "tags.txt", "-o", "g", "--model", "hmm"], "grammar"),
        (["fit", "tags.txt", "-o", "g", "--inference", "beam"], "--inference"),
        (["fit", "tags.txt", "-o", "tags.txt"], "overwritten"),
        (["fit", "tags.txt", "-o", "g", "--checkpoint", "tags.txt", "--restart"], "overwritten"),
        (["sample", "tags.txt"], "tags.txt"),
        (["fit", "tags.txt", "-o", "g", "--max-length", "1"], "no sentence"),
        (["fit", "tags.txt", "-o", "g", "--no-punctuation"], "plain text"),
        (["fit", "none.txt", "-o", "g"], "none.txt"),
        (["fit", "gold.tsv", "-o", "g", "--column", "xpos"], "CoNLL-U"),
        (["parse", "tags.txt", "tags.txt"], "tags.txt"),
        (["fit", "tags.txt", "-o", "g", "--model", "pcfg"], "--rules FILE"),
        (["fit", "tags.txt", "-o", "g", "--rules", "none.cfg"], "none.cfg"),
        (["fit", "tags.txt", "-o", "g", "--rules", "tags.txt"], "line 1 must begin with a symbol"),
        (["fit", "tags.txt", "-o", "g", "--nonterminals", "2", "--model", "dmv"], "--model pcfg"),
        (["fit", "tags.txt", "-o", "g", "--nonterminals", "2", "--stop-concentration", "1"], "--stop-concentration"),
        (["fit", "tags.txt", "-o", "g", "--unit", "character"], "--unit is for --model pcfg"),
        (["fit", "tags.txt", "-o", "g", "--checkpoint", "g"], "'g' is also an input, or another output"),
        (["fit", "tags.txt", "-o", "g", "--rules", "tags.txt", "--checkpoint", "tags.txt"], "is also an input"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(arguments: list[str], message: str) -> None:
    found = CliRunner().invoke(app, ["grammar", *arguments])
    assert found.exit_code != 0
    assert message in found.stderr
    assert not Path("g").exists()


CFG = "S -> NP VP [0.7] | VP [0.3]\nNP -> 'DT' 'NN' | 'NN' | 'DT' 'JJ' 'NN'\nVP -> 'VB' NP | 'VB'\n"


def test_a_context_free_grammar_is_fitted_used_and_scored(run: Run) -> None:
    Path("g.cfg").write_text(CFG, encoding="utf8")
    found = json.loads(run("grammar", "fit", "tags.txt", "--rules", "g.cfg", "-o", "g", "--json").stdout)
    assert (found["n_sentences"], found["n_words"], found["n_rules"]) == (4, 13, 7)
    grammar = PCFG.load("g")
    fitted = PCFG(CFG, random_state=0, progress=False).fit(TAGS.splitlines())
    np.testing.assert_array_equal(grammar.rules_["probability"], fitted.rules_["probability"])
    trees = run("grammar", "parse", "g", "tags.txt").stdout.splitlines()
    assert trees == [str(tree) for tree in fitted.parse(TAGS.splitlines())]
    assert trees[0] == "(S (NP DT NN) (VP VB))"
    drawn = run("grammar", "parse", "g", "tags.txt", "--max-length", 2, "--format", "tree", "--method", "mbr").stdout
    assert drawn == "S\n├─ NP NN\n└─ VP VB\n"
    run("grammar", "parse", "g", "tags.txt", "--method", "max-rule", "-o", "trees.txt")
    assert Path("trees.txt").read_text(encoding="utf8").splitlines() == trees
    assert json.loads(run("grammar", "parse", "g", "tags.txt", "--json").stdout)["trees"] == trees
    scores = json.loads(run("grammar", "score", "g", "tags.txt", "--json").stdout)
    assert scores["log_probability"] == pytest.approx(fitted.score(TAGS.splitlines()))
    assert "without trees to compare" in run("grammar", "score", "g", "tags.txt").stdout
    Path("gold.txt").write_text("(S (NP DT NN) (VP VB))\n(S NN (VP VB DT NN))\n", encoding="utf8")
    scores = json.loads(run("grammar", "score", "g", "gold.txt", "--json").stdout)
    theirs = bracket_scores(fitted.parse(["DT NN VB", "NN VB DT NN"]), read_trees("gold.txt"))
    assert (scores["precision"], scores["recall"], scores["f1"]) == (theirs.precision, theirs.recall, theirs.f1)
    assert 0.0 < theirs.f1 < 1.0
    run("grammar", "fit", "gold.txt", "--rules", "g.cfg", "-o", "again")
    assert PCFG.load("again").score(["NN VB"]) == PCFG(CFG, progress=False).fit(["DT NN VB", "NN VB DT NN"]).score(
        ["NN VB"]
    )
    sampled = run("grammar", "sample", "g", "-n", 4, "--seed", 3).stdout.splitlines()
    assert sampled == [str(tree) for tree in grammar.sample(4, random_state=3)]
    Path("other.txt").write_text("NN VB\nVB VB\n", encoding="utf8")
    found_ = run("grammar", "parse", "g", "other.txt")
    assert found_.stdout == "(S (NP NN) (VP VB))\n\n"
    assert "cannot derive sentence 1" in found_.stderr


def test_a_context_free_grammar_is_found(run: Run) -> None:
    options = ["--nonterminals", 2, "--preterminals", 2, "--inference", "Hastings(n_samples=3, burn_in=2, n_chains=1)"]
    run("grammar", "fit", "tags.txt", *options, "-o", "g", "--seed", 4)
    grammar = PCFG.load("g")
    assert grammar.symbols_ == ["X0", "X1", "T0", "T1", "S"]
    assert np.isfinite(grammar.score(TAGS.splitlines()))
    Path("words.txt").write_text("abab\nba\n", encoding="utf8")
    Path("w.cfg").write_text("W -> V | V V\nV -> <substring>\n", encoding="utf8")
    run("grammar", "fit", "words.txt", "--rules", "w.cfg", "--unit", "character", "--init", "flat",
        "--inference", "vi", "-o", "w")  # fmt: skip
    assert PCFG.load("w").parse(["ab"])[0] is not None


def test_a_page_is_written(run: Run) -> None:
    run("grammar", "fit", "tags.txt", "-o", "g", "--iterations", 2)
    shown = run("grammar", "report", "g", "gold.tsv", "--no-punctuation", "-o", "page.html").stdout
    assert shown == "report written to page.html\n"
    page = Path("page.html").read_text(encoding="utf8")
    assert "<h1>gold.tsv</h1>" in page
    assert "directed accuracy" in page
    refused = CliRunner().invoke(app, ["grammar", "report", "g", "gold.tsv", "-o", "gold.tsv"])
    assert refused.exit_code not in (0, 1)
    assert Path("gold.tsv").read_text(encoding="utf8") == GOLD
