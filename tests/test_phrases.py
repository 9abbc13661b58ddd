"""Charts of context-free grammars against all trees: sums, counts, spans, best trees, draws, cycles, brackets."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import naive_phrases
import naive_trees
import numpy as np
import pytest

from subchain.data.context_free import Rule, Token, as_rules
from subchain.data.sentences import check_brackets
from subchain.errors import InputError
from subchain.grammar import PCFG, load_grammar
from subchain.propagation.phrases.passes import BEST, DRAW, EXPECT, POSTERIOR, RULES, SCORE, SPANS, add_shares
from subchain.structures.phrases.drawing import drawn_trees
from subchain.structures.phrases.model import PhrasePoint, PhrasePosterior
from subchain.structures.phrases.rules import RuleSet, expanded, fully_connected
from subchain.structures.phrases.structure import PhraseTrees
from subchain.tables import GroupedWeights
from subchain.tasks.phrase_trees import TreeBuilder

GRAMMARS = {
    "normal form": "S -> S S [0.2] | A B [0.3] | 'a' [0.3] | 'b' [0.2]\nA -> 'a' [0.5] | S B [0.5]\nB -> 'b'",
    "any length": "S -> A B A [0.4] | 'a' S 'b' A [0.1] | A [0.3] | 'a' 'b' [0.2]\n"
    "A -> 'a' [0.6] | B [0.2] | S B [0.2]\nB -> 'b' [0.7] | 'a' [0.3]",
    "cycle": "S -> A [0.05] | S A [0.3] | 'a' [0.65]\nA -> B [0.05] | A [0.02] | 'a' [0.93]\n"
    "B -> A [0.05] | S [0.05] | 'b' [0.9]",
}
SENTENCES = ["a", "b", "a b", "a b a", "a a b b", "a b a a b"]


def structure_of(text: str, sentences: list[str], joint: str = " ", **settings: Any) -> tuple[PhraseTrees, Any]:
    cut = [tuple(s.split()) if joint else tuple(s) for s in sentences]
    rules, weights = expanded(as_rules(text), cut, joint)
    return PhraseTrees(cut, rules, **settings), weights


def naive_rules(rules: RuleSet, weights: Any) -> dict[naive_phrases.Rule, float]:
    found: dict[naive_phrases.Rule, float] = {}
    for rule, weight in enumerate(weights):
        right = [rules.symbols[c] if c >= 0 else f"'{rules.written(-1 - c)}'" for c in rules.right[rule]]
        found[rules.symbols[rules.left[rule]], tuple(right)] = float(weight)
    return found


def truth_of(
    structure: PhraseTrees, weights: Any, number: int, brackets: Any = None
) -> naive_phrases.Enumerated | None:
    rules = structure.rules
    named = naive_rules(rules, weights)
    tokens = structure.sentences[number]
    start = rules.symbols[rules.start]
    if not any(one.probability for one in naive_phrases.derivations(start, tokens, named, 3, rules.joint)):
        return None
    return naive_phrases.enumerate_trees(start, tokens, named, brackets, rules.joint)


def counts_of(structure: PhraseTrees, found: Any) -> Any:
    counts, totals = np.zeros(len(structure.rules)), np.zeros(len(structure.rules.symbols))
    some = np.arange(structure.n_clusters)
    add_shares(
        structure.grammar, structure.text, some, found.places, found.shares, counts, structure.rules.left, totals
    )
    np.testing.assert_allclose(totals, np.bincount(structure.rules.left, weights=counts, minlength=len(totals)))
    return counts


def compare(structure: PhraseTrees, weights: Any, tolerance: float, brackets: Any = None) -> None:
    """Compare likelihoods, counts and symbols at spans with those of all trees."""
    some = np.arange(structure.n_clusters)
    scores = structure.run(SCORE, weights, some).logs
    found, spans = structure.run(EXPECT, weights, some), structure.run(POSTERIOR, weights, some)
    names = list(naive_rules(structure.rules, weights))
    expected = np.zeros(len(structure.rules))
    for number in some.tolist():
        truth = truth_of(structure, weights, number, brackets[number] if brackets else None)
        own = spans.shares[spans.places[number] : spans.places[number + 1]]
        if truth is None:
            assert scores[number] == found.logs[number] == -np.inf
            assert not own.any()
            continue
        np.testing.assert_allclose([scores[number], found.logs[number]], np.log(truth.likelihood), atol=tolerance)
        expected += [truth.counts.get(name, 0.0) for name in names]
        n = len(structure.sentences[number])
        table = own.reshape(n, n + 1, -1)
        mine = {
            (symbol, i, j): table[i, j, a]
            for (a, symbol), i, j in itertools.product(enumerate(structure.rules.symbols), range(n), range(n + 1))
            if table[i, j, a] > 0.0
        }
        for key in mine.keys() | truth.spans.keys():
            assert mine.get(key, 0.0) == pytest.approx(truth.spans.get(key, 0.0), abs=tolerance), key
    np.testing.assert_allclose(counts_of(structure, found), expected, atol=tolerance * 10)


def sentences_for(name: str) -> list[str]:
    return ["a", "b", "a b"] if name == "cycle" else SENTENCES


@pytest.mark.parametrize("name", GRAMMARS)
def test_sums_are_those_of_all_trees(name: str) -> None:
    structure, weights = structure_of(GRAMMARS[name], sentences_for(name))
    compare(structure, weights, 1e-4 if name == "cycle" else 1e-10)


@pytest.mark.parametrize("name", ["any length", "cycle"])
def test_sums_in_log_space_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of the grammar is far less probable than another symbol over the same tokens."""
    text = GRAMMARS[name].replace("S ->", "Q -> S [0.5] | 'c' [0.5]\nS ->")
    structure, weights = structure_of(text, [*sentences_for(name)[:3], "c"])
    at = naive_rules(structure.rules, weights)
    weights[list(at).index(("Q", ("S",)))] = 1e-150
    some, shallow = np.arange(4), structure.run(EXPECT, weights, np.arange(3))
    truth = [truth_of(structure, weights, number) for number in range(3)]
    logs = [-np.inf if one is None else np.log(one.likelihood) for one in truth]
    np.testing.assert_allclose(shallow.logs, logs, atol=1e-4)
    compare(structure, weights, 1e-4 if name == "cycle" else 1e-10)
    assert structure.run(SCORE, weights, some).logs[3] == pytest.approx(np.log(0.5))


def test_substrings_are_terminals_of_several_tokens() -> None:
    text = "W -> V [0.4] | P V [0.6]\nV -> <substring>\nP -> 'a' [0.5] | 'b' [0.3] | <substring> [0.2]"
    structure, weights = structure_of(text, ["abab", "ba", "a"], joint="")
    assert len(structure.rules.terminals) == len({"a", "b", "ab", "ba", "aba", "bab", "abab"})
    compare(structure, weights, 1e-10)
    trees = structure.run(BEST, weights, np.arange(3)).trees
    assert trees is not None
    assert "".join(TreeBuilder(structure.grammar, structure.rules).tree(trees[0]).leaves()) == "abab"  # type: ignore[union-attr]


def test_phrases_cross_no_brackets() -> None:
    brackets = [[], [], [], [(1, 3)], [(0, 2), (0, 4)], [(1, 4), (2, 4)]]
    for name in ("normal form", "any length"):
        structure, weights = structure_of(GRAMMARS[name], SENTENCES, brackets=brackets)
        compare(structure, weights, 1e-10, brackets)


@pytest.mark.parametrize("name", GRAMMARS)
def test_best_trees_are_the_best_of_all(name: str) -> None:
    sentences = sentences_for(name)
    structure, weights = structure_of(GRAMMARS[name], sentences)
    builder, some = TreeBuilder(structure.grammar, structure.rules), np.arange(structure.n_clusters)
    best, spans = structure.run(BEST, weights, some), structure.run(SPANS, weights, some)
    for number in some.tolist():
        truth = truth_of(structure, weights, number)
        assert best.trees is not None
        assert spans.trees is not None
        tree, safest = builder.tree(best.trees[number]), builder.tree(spans.trees[number])
        if truth is None:
            assert tree is safest is None
            assert best.logs[number] == -np.inf
            continue
        largest = max(truth.posterior.values())
        assert tree is not None
        assert safest is not None
        assert truth.posterior[tree] == pytest.approx(largest)
        assert best.logs[number] == pytest.approx(np.log(largest * truth.likelihood), abs=1e-5)
        if name != "cycle":
            gain = {t: sum(truth.spans[span] for span in t.spans()) for t in truth.posterior}
            assert gain[safest] == pytest.approx(max(gain.values()))


def test_max_rule_trees_have_the_largest_product_of_posteriors() -> None:
    structure, weights = structure_of(GRAMMARS["normal form"], SENTENCES)
    builder, named = TreeBuilder(structure.grammar, structure.rules), naive_rules(structure.rules, weights)
    trees = structure.run(RULES, weights, np.arange(structure.n_clusters)).trees
    assert trees is not None
    for number, sentence in enumerate(SENTENCES):
        truth = truth_of(structure, weights, number)
        if truth is None:
            continue
        anchored: Counter[Any] = Counter()
        for tree, share in truth.posterior.items():
            anchored.update(dict.fromkeys(places_of(tree), share))
        value = {tree: np.prod([anchored[place] for place in places_of(tree)]) for tree in truth.posterior}
        found = builder.tree(trees[number])
        assert found is not None
        assert found.leaves() == sentence.split()
        assert value[found] == pytest.approx(max(value.values()))
    assert named


def places_of(tree: Any) -> list[Any]:
    """Return the rules of a tree with the spans of all symbols."""
    nodes, spans = list(tree.subtrees()), tree.spans()
    at = {id(node): span for node, span in zip(nodes, spans, strict=True)}
    return [(at[id(n)], *(c if isinstance(c, str) else at[id(c)] for c in n.children)) for n in nodes]


@pytest.mark.parametrize("name", ["any length", "cycle"])
def test_trees_are_drawn_as_often_as_they_are_probable(name: str) -> None:
    copies = 20_000
    structure, weights = structure_of(GRAMMARS[name], ["a b" if name == "cycle" else "a b a"] * copies)
    truth = truth_of(structure, weights, 0)
    assert truth is not None
    builder = TreeBuilder(structure.grammar, structure.rules)
    drawn = structure.run(DRAW, weights, np.arange(copies), np.array([3, 5], dtype=np.uint64)).trees
    assert drawn is not None
    counts = Counter(tuple(rules.tolist()) for rules in drawn)
    shares: Counter[Any] = Counter()
    for rules, count in counts.items():
        shares[builder.tree(rules)] += count / copies
    for tree, share in truth.posterior.items():
        assert shares[tree] == pytest.approx(share, abs=5.0 * np.sqrt(share / copies) + 2.0 / copies)


@pytest.mark.parametrize(("again", "copies"), [(0.5, 2000), (0.99, 2000), (0.9999, 50)])
def test_draws_go_round_cycles_as_often_as_is_probable(again: float, copies: int) -> None:
    """The numbers of rounds are geometric: their mean is p / (1 - p), and so nearly is their deviation."""
    text = f"S -> S [{again}] | 'a' [{1.0 - again:.4f}]"
    draws = []
    for jobs in (1, 2):
        structure, weights = structure_of(text, ["a"] * copies, n_jobs=jobs)
        draws.append(drawn_trees(structure, weights, np.arange(copies), np.random.default_rng(0)))
    assert all(map(np.array_equal, *draws))
    rounds = np.array([len(tree) - 1 for tree in draws[0]])
    exact = again / (1.0 - again)
    assert rounds.mean() == pytest.approx(exact, abs=4.0 * np.sqrt(again / copies) / (1.0 - again))
    assert rounds.max() > 2.5 * exact
    structure.tree_sizes = lambda clusters: np.full(len(clusters), 100_000)  # type: ignore[method-assign]
    few = drawn_trees(structure, weights, np.arange(20), np.random.default_rng(0))
    assert all(map(np.array_equal, few, draws[0]))  # whatever the room


def test_trees_that_go_round_cycles_nearly_for_ever_are_refused() -> None:
    structure, weights = structure_of("S -> S [0.9] | 'a' [0.1]", ["a"] * 3)
    weights[:] = [1.0 - 1e-9, 1e-9]
    with pytest.raises(InputError, match="more than 1,048,576 rules: cycles of unary rules have nearly all the weight"):
        drawn_trees(structure, weights, np.arange(3), np.random.default_rng(0))


def test_gibbs_counts_all_rounds_and_hastings_begins_with_trees_that_have_room() -> None:
    copies = 500
    structure, weights = structure_of("S -> S [0.99] | 'a' [0.01]", ["a"] * copies)
    hidden, drawn = structure.draw(PhrasePoint(GroupedWeights(weights)), np.arange(copies), np.random.default_rng(0))
    assert drawn.rules.counts[0] / copies == pytest.approx(99.0, abs=4.0 * 100.0 / np.sqrt(copies))
    assert len(hidden) == structure.rooms[-1]
    assert hidden[structure.rooms[:-1]].sum() == drawn.rules.counts.sum()
    grammar = PCFG("S -> S [0.999] | 'a' [0.001]", "hastings", iterations=1, random_state=0, progress=False)
    counts = grammar.fit(["a"] * 5).rules_["count"]
    assert 5.0 <= counts.sum() + 1e-6 <= 5 * structure.tree_sizes(np.arange(1))[0]


def test_no_sentences_have_no_trees() -> None:
    grammar = PCFG("S -> S S [0.2] | 'a' [0.8]", progress=False)
    for method in ("viterbi", "max-rule", "mbr"):
        assert grammar.parse([], method) == []
    assert grammar.sample_trees([], random_state=0) == grammar.posterior([]) == []
    assert grammar.score([]) == 0.0


@pytest.mark.parametrize("unit", ["word", "character"])
def test_sentences_of_trees_are_their_leaves(unit: str) -> None:
    grammar = PCFG("S -> S S [0.2] | 'a' [0.8]", unit=unit, progress=False)
    tree = grammar.parse([["a", "a", "a"]])[0]
    assert grammar.parse([tree]) == [tree]
    assert grammar.score([tree]) == grammar.score([["a", "a", "a"]])
    one, other = grammar.fit([tree]).rules_, grammar.fit([["a", "a", "a"]]).rules_
    np.testing.assert_array_equal(one, other)
    with pytest.raises(InputError, match="sentence 1 "):
        grammar.parse(["a", 5])


def test_rules_need_no_blanks() -> None:
    apart = as_rules("S -> NP-1 'b' [0.5] | 'a' [0.5]\nNP-1 → 'c'\nNP-1 -> - 'd'\n- -> 'x'")
    assert as_rules("S->NP-1'b'[0.5]|'a'[0.5]\nNP-1→'c'\nNP-1->- 'd'\n- ->'x'") == apart
    assert [rule.left for rule in apart] == ["S", "S", "NP-1", "NP-1", "-"]
    for text in ("S->A->'a'", "->'a'", "S->->'a'"):
        with pytest.raises(InputError, match=r"line 1.*(not expected on a right-hand side|must begin)"):
            as_rules(text)


def test_sentences_that_brackets_alone_exclude_are_told_from_others() -> None:
    grammar = PCFG("S -> A 'b' | 'b'\nA -> 'a' 'a'", progress=False)
    sentences, brackets = ["b", "a a b", "c", "a a b"], [[], [(1, 3)], [(0, 1)], [(np.int64(0), 2)]]
    with pytest.warns(
        UserWarning,
        match=r"cannot derive sentence 2 \('c'\); the given brackets exclude "
        r"all trees of sentence 1 \('a a b'\); left out of the fit",
    ):
        fitted = grammar.fit(sentences, brackets=brackets)
    np.testing.assert_allclose(fitted.rules_["count"].sum(), 3.0)
    with pytest.raises(InputError, match="^the given brackets exclude .*nothing is left to learn from"):
        grammar.fit(sentences[1:2], brackets=brackets[1:2])


@pytest.mark.parametrize("span", [(0.5, 2.5), (0.0, 2.0), "02", (0, 4), (1, 1), (0, 1, 2), 3])
def test_brackets_are_whole_numbers(span: Any) -> None:
    with pytest.raises(InputError, match="of sentence 0 is no span of its 3 tokens.*whole numbers"):
        check_brackets([[span]], [("a", "a", "b")])


@pytest.mark.parametrize("inference", ["em", "vi"])
def test_a_loaded_grammar_knows_which_rules_are_allowed(inference: str, tmp_path: Path) -> None:
    sentences = ["a b", "b a b", "a b a"]
    grammar = PCFG(
        inference=inference, n_nonterminals=2, iterations=2, random_state=0, progress=False,
        allowed=lambda left, right: right != ("X0", "X0") and (left, right) != ("X1", ("'a'",)),
    ).fit(sentences)  # fmt: skip
    for again in range(2):
        grammar.save(tmp_path / str(again))
        loaded = load_grammar(tmp_path / str(again))
        assert isinstance(loaded, PCFG)
        np.testing.assert_array_equal(loaded.rules_, grammar.rules_)
        new = loaded.fit([*sentences, "c"]).rules_
        rules = set(zip(new["left"].tolist(), new["right"].tolist(), strict=True))
        assert {("X1", "'b'"), ("X1", "'c'"), ("X0", "'a'"), ("X0", "X0 X1")} <= rules
        assert not {("X0", "X0 X0"), ("X1", "X0 X0"), ("X1", "'a'")} & rules
        grammar = loaded


@pytest.mark.parametrize("n_preterminals", [None, 2])
def test_matrices_of_a_fully_connected_grammar_give_what_lists_give(n_preterminals: int | None) -> None:
    rng, tokens = np.random.default_rng(1), ["a", "b", "c"]
    rules = fully_connected(3, n_preterminals, tokens, " ")
    weights = PhrasePosterior.of(rules, np.ones(len(rules))).sample(rng).rules.weights  # type: ignore[attr-defined]
    sentences = [tuple(rng.choice(tokens, size=n).tolist()) for n in (1, 2, 3, 6, 9)]
    dense = PhraseTrees(sentences, rules)
    assert dense.grammar.n_rows == 3
    lists = PhraseTrees(sentences, dataclasses.replace(rules, connected=None))
    some = np.arange(5)
    for task in (SCORE, EXPECT, POSTERIOR):
        one, other = dense.run(task, weights, some), lists.run(task, weights, some)
        np.testing.assert_allclose(one.logs, other.logs, rtol=1e-12)
        np.testing.assert_allclose(one.shares, other.shares, atol=1e-12)


def test_a_long_sentence_neither_underflows_nor_depends_on_threads() -> None:
    rng, tokens = np.random.default_rng(2), ["a", "b"]
    rules = fully_connected(2, None, tokens, " ")
    weights = PhrasePosterior.of(rules, np.ones(len(rules))).sample(rng).rules.weights  # type: ignore[attr-defined]
    sentences = [tuple(rng.choice(tokens, size=n).tolist()) for n in (300, 150, 10, 11, 12, 13)]
    weights = weights * np.where(np.arange(len(rules)) >= rules.n_structural, 1e-20, 1.0)
    found = [PhraseTrees(sentences, rules, n_jobs=jobs) for jobs in (1, 2)]
    one, two = (structure.expected(PhrasePoint(GroupedWeights(weights)), np.arange(6)) for structure in found)
    np.testing.assert_array_equal(one.rules.counts, two.rules.counts)
    assert one.log_normalizer == two.log_normalizer
    assert one.rules.counts[rules.n_structural :].sum() == pytest.approx(sum(map(len, sentences)))
    assert found[0].run(SCORE, weights, np.arange(1)).logs[0] < -300 * 20 * np.log(10.0)


def test_the_dependency_model_is_a_grammar_in_normal_form() -> None:
    """Its expansion into binary and unary rules gives the likelihoods of the enumeration of dependency trees."""
    rng, n_tags = np.random.default_rng(4), 2
    model = naive_trees.Rules(
        rng.dirichlet(np.ones(n_tags)), rng.dirichlet(np.ones(2), (n_tags, 2, 2)),
        rng.dirichlet(np.ones(n_tags), (n_tags, 2)),
    )  # fmt: skip
    given: list[tuple[str, tuple[Any, ...], float]] = []
    for h in range(n_tags):
        given += [("S", (f"D{h}",), model.root[h]), (f"R{h}0", (Token(str(h)),), 1.0)]
        for has, (side, stage, after) in itertools.product(
            range(2), ((naive_trees.RIGHT, "R", "L{}0"), (naive_trees.LEFT, "L", "D{}"))
        ):
            stop = model.stop[h, side, has, naive_trees.STOP]
            given.append((after.format(h), (f"{stage}{h}{has}",), stop))
            for d in range(n_tags):
                weight = model.stop[h, side, has, naive_trees.GO_ON] * model.attach[h, side, d]
                head = f"{stage}{h}{has}"
                given.append((f"{stage}{h}1", (head, f"D{d}") if stage == "R" else (f"D{d}", head), weight))
    sentences = [(0,), (0, 1), (1, 0, 0), (0, 1, 1, 0)]
    rules = [Rule(left, right, weight) for left, right, weight in given]
    structure = PhraseTrees([tuple(map(str, s)) for s in sentences], *expanded(rules, [], " ")[:1])
    weights = expanded(rules, [], " ")[1]
    scores = structure.run(SCORE, weights, np.arange(4)).logs
    for score, sentence in zip(scores, sentences, strict=True):
        assert np.exp(score) == pytest.approx(naive_trees.enumerate_trees(list(sentence), model).likelihood)
        assert np.exp(score) == pytest.approx(naive_trees.inside_of_grammar(list(sentence), model))


def test_charts_that_would_not_fit_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subchain.structures.phrases.structure.MOST_BYTES", 10_000)
    with pytest.raises(InputError, match="sentence 1 has 30 tokens; its charts would take"):
        structure_of(GRAMMARS["normal form"], ["a b", "a " * 30])
