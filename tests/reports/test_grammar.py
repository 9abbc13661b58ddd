"""The page on a grammar: trees, posteriors, gold trees and scores, rules, bad input, and a browser without errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import report
from subchain.errors import NotFittedError, SubchainError
from subchain.grammar import DMV, PCFG, LatentPCFG, Tree, bracket_scores, dependency_scores, parse_bracketed
from subchain.reports.grammar import tree_steps

TAGS = ["DT NN VB", "NN VB", "", "DT NN VB DT NN", "NN VB NN"]
RULES = "S -> NP VP\nNP -> 'DT' N | N\nN -> 'NN'\nVP -> 'VB' | 'VB' NP"
BANK = [
    parse_bracketed("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))"),
    parse_bracketed("(S (NP-SBJ (PRP it)) (VP (VBZ sees)))"),
]


def page(grammar: Any, x: Any, folder: Path, **settings: Any) -> tuple[str, dict[str, Any]]:
    report(grammar, x, folder / "report.html", **settings)
    text = (folder / "report.html").read_text(encoding="utf8")
    found = re.search(r'<script type="application/json" id="contents">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return text, json.loads(found[1])


def steps_as_tree(steps: list[Any]) -> Tree:
    """What the page's script makes of the steps of a tree."""
    waiting: list[Any] = []
    for step in reversed(steps):
        if isinstance(step, str):
            waiting.append(step)
        else:
            waiting.append(Tree(step[0], [waiting.pop() for _ in range(step[1])]))
    [tree] = waiting
    return tree  # type: ignore[no-any-return]


def test_dependencies_have_their_posteriors_and_scores(tmp_path: Path) -> None:
    lines = "the\tDT\t2\ndog\tNN\t3\nbarks\tVB\t0\n\ndogs\tNN\t2\nbark\tVB\t0\n"
    (tmp_path / "gold.tsv").write_text(lines, encoding="utf8")
    grammar = DMV("vi", iterations=4, progress=False).fit(TAGS)
    text, contents = page(grammar, tmp_path / "gold.tsv", tmp_path)
    tags, gold = ["DT NN VB", "NN VB"], [[1, 2, -1], [1, -1]]
    first, second = contents["sentences"]
    assert (first["words"], first["tags"], second["gold"]) == (["the", "dog", "barks"], tags[0].split(), gold[1])
    assert [first["heads"], second["heads"]] == [own.tolist() for own in grammar.parse(tags)]
    arcs = grammar.posterior(tags)[0]
    assert first["chances"] == [round(arcs[d if h < 0 else h, d], 3) for d, h in enumerate(first["heads"])]
    assert f"<td>{100 * dependency_scores(grammar.parse(tags), gold).directed:.2f}</td>" in text
    assert len(contents["trace"]) == 4
    _, plain = page(grammar, TAGS, tmp_path)
    assert [own["number"] for own in plain["sentences"]] == [1, 2, 4, 5]
    assert "gold" not in plain["sentences"][0]


def test_phrases_have_their_posteriors_and_gold_trees(tmp_path: Path) -> None:
    grammar = PCFG(RULES, progress=False).fit(TAGS)
    gold = [parse_bracketed("(S (NP DT (N NN)) (VP VB))"), parse_bracketed("(S (VP NN VB))")]
    text, contents = page(grammar, gold, tmp_path, title="<b>Trees</b>")
    assert "<h1>&lt;b&gt;Trees&lt;/b&gt;</h1>" in text
    found = grammar.parse(["DT NN VB", "NN VB"])
    assert [steps_as_tree(own["tree"]) for own in contents["sentences"]] == found
    assert [steps_as_tree(own["gold"]) for own in contents["sentences"]] == gold
    assert [step[3] for step in contents["sentences"][1]["tree"] if not isinstance(step, str)] == [True, *[False] * 3]
    assert {step[2] for step in contents["sentences"][0]["tree"] if not isinstance(step, str)} == {1.0}
    assert f"<td>{100 * bracket_scores(found, gold).f1:.2f}</td>" in text
    rules = grammar.rules_
    assert sorted(contents["rules"]) == sorted(
        [f"{r['left']} → {r['right']}", round(float(r["probability"]), 6), round(float(r["count"]), 2)] for r in rules
    )
    _, plain = page(PCFG(RULES, progress=False), ["NN VB", "VB VB"], tmp_path)
    assert [own["log"] is None for own in plain["sentences"]] == [False, True]
    assert plain["sentences"][1]["tree"] is None
    assert {count for _, _, count in plain["rules"]} == {None}
    assert plain["trace"] == []


def test_treebanks_are_compared_in_the_form_of_the_grammar(tmp_path: Path) -> None:
    grammar = LatentPCFG(2, iterations=2, progress=False, random_state=0).fit(BANK * 3)
    text, contents = page(grammar, BANK, tmp_path)
    steps = contents["sentences"][1]["tree"]
    assert steps_as_tree(steps) == grammar.parse(["it sees"])[0]
    assert [(label, right) for label, _, _, right in (s for s in steps if not isinstance(s, str))][:3] == [
        ("ROOT", None), ("S", True), ("NP", True)
    ]  # fmt: skip
    spans = {(s.label, s.first, s.end): s.probability for s in grammar.posterior(["it sees"])[0]}
    assert next(s[2] for s in steps if s[0] == "S") == round(spans["S", 0, 2], 3)
    rules = [rule for rule, _, _ in contents["rules"]]
    assert {rule for rule in rules if re.fullmatch(r"(ROOT-0 → S-\d|PRP-\d → it)", rule)} >= {
        "ROOT-0 → S-0",
        "PRP-0 → it",
    }
    assert "with annotations" in text


def test_long_sentences_are_left_out_of_the_drawings(tmp_path: Path) -> None:
    grammar = PCFG("S -> 'a' S | 'a'", progress=False)
    _, contents = page(grammar, ["a " * 60, "a a"], tmp_path)
    assert [own["number"] for own in contents["sentences"]] == [2]
    _, contents = page(grammar, ["a " * 60, "a " * 70], tmp_path)
    assert [own["number"] for own in contents["sentences"]] == [1]
    assert tree_steps(Tree("S", ["a"]), {}, None) == [["S", 1, -1.0, None], "a"]


def test_bad_input_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    grammar = PCFG(RULES, progress=False)
    for message, x, settings in (
        ("takes sentences, path and title", TAGS, {"step": 2}),
        ("takes sentences, path and title", TAGS, {"pairs": [0]}),
        ("no sentence with words", [""], {}),
    ):
        with pytest.raises(SubchainError, match=message):
            report(grammar, x, tmp_path / "page.html", **settings)  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        report(DMV(), TAGS, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_a_browser_draws_the_trees(browser: Any, tmp_path: Path) -> None:
    grammar = DMV(iterations=3, progress=False).fit(TAGS)
    for model, n_drawn in ((grammar, ".arc"), (PCFG(RULES, progress=False), ".edge")):
        report(model, TAGS, tmp_path / "page.html")
        browser.open(tmp_path / "page.html")
        assert browser.run(f"return document.querySelectorAll('#tree {n_drawn}').length") > 1
        browser.click("#next")
        assert browser.run("return document.getElementById('choose-sentence').selectedIndex") == 1
        assert browser.complaints() == []
    assert np.isfinite(grammar.score(["NN VB"]))
