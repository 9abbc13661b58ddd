"""The estimator PCFG: every algorithm, what each of them must keep to, grammars as text, files, and bad input."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import naive_phrases
import numpy as np
import pytest
from test_phrases import naive_rules

from subchain import CVI, EM, SCVI, SVI, VI, Gibbs, Hastings
from subchain.core.files import read_arrays, write_arrays
from subchain.data.context_free import as_rules, parse_rules
from subchain.errors import FileFormatError, InputError, NotFittedError
from subchain.grammar import PCFG, Tree, read_dependencies
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.problem import Problem
from subchain.propagation.phrases.passes import EXPECT
from subchain.structures.phrases.ledger import PhraseLedger
from subchain.structures.phrases.model import PhrasePosterior
from subchain.structures.phrases.rules import expanded
from subchain.structures.phrases.starts import begun
from subchain.structures.phrases.structure import PhraseTrees
from subchain.structures.phrases.walkers import PhraseWalker
from subchain.tables import DirichletRowTable, GroupedDirichlet, GroupedSums, RuleSums
from subchain.tasks.phrase_trees import TreeBuilder

#: Recursive, so that trees use rules twice.
RULES = "S -> S S | A S | 'b'\nA -> 'a' | 'b' | S A"
SENTENCES = ["a a b", "a b", "", "b b", "a a a b", "b a b", "a b a b"]
SMALL = ["a b", "b b b"]

ALGORITHMS: dict[str, Any] = {
    "em": EM(max_iter=30),
    "vi": VI(max_iter=30),
    "svi": SVI(batch=3, max_updates=40, report_every=10),
    "scvi": SCVI(batch=3, max_updates=40, report_every=10),
    "online em": EM(batch=3, max_updates=40, report_every=10),
    "cvi": CVI(max_iter=20),
    "cvi batch": CVI(max_iter=20, order="batch"),
    "cvi shuffled": CVI(max_iter=20, order="shuffled"),
    "cvi without exclusion": CVI(max_iter=20, exclude=False),
    "gibbs": Gibbs(n_samples=20, burn_in=10, n_chains=2),
    "hastings": Hastings(n_samples=20, burn_in=10, n_chains=2),
}


def fitted(inference: Any = "em", sentences: Any = SENTENCES, rules: Any = RULES, **settings: Any) -> PCFG:
    return PCFG(rules, inference, progress=False, random_state=0, **settings).fit(sentences)


def structure_of(sentences: list[str] = SENTENCES, rules: str = RULES) -> tuple[PhraseTrees, Any]:
    cut = [tuple(s.split()) for s in sentences]
    made, weights = expanded(as_rules(rules), cut, " ")
    return PhraseTrees(cut, made), weights


def prior_of(structure: PhraseTrees, concentration: float) -> PhrasePosterior:
    return PhrasePosterior.of(structure.rules, np.full(len(structure.rules), concentration))


# ---- algorithms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_fits_parses_and_resumes(name: str, tmp_path: Path) -> None:
    algorithm = ALGORITHMS[name]
    grammar = fitted(algorithm)
    rules = grammar.rules_
    for symbol in grammar.symbols_:
        assert rules["probability"][rules["left"] == symbol].sum() == pytest.approx(1.0)
    trees = grammar.parse(SENTENCES)
    assert [tree.leaves() if tree else [] for tree in trees] == [s.split() for s in SENTENCES]
    limit = next(key for key in ("max_iter", "max_updates", "n_samples") if hasattr(algorithm, key))
    kind = EM if name == "online em" else type(algorithm)
    short = kind(**(algorithm.get_params(deep=False) | {limit: 10}))
    PCFG(RULES, short, progress=False, random_state=0).fit(SENTENCES, checkpoint=tmp_path / "c")
    again = PCFG(RULES, algorithm, progress=False, random_state=0, n_jobs=1)
    resumed = again.fit(SENTENCES, checkpoint=tmp_path / "c", resume=True)
    for key, array in resumed.posterior_.arrays().items():
        np.testing.assert_array_equal(array, grammar.posterior_.arrays()[key])


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("init", ["given", "flat", "uniform", "random"])
def test_the_likelihood_never_falls_in_em(hard: bool, init: str) -> None:
    """With `hard` it is that of the best trees."""
    grammar = fitted(init=init, hard=hard, iterations=25)
    assert np.diff(grammar.trace_.objective).min() >= -1e-9
    if not hard:
        assert grammar.score(SENTENCES) >= grammar.trace_.objective[-1] - 1e-9


def tree_evidence(structure: PhraseTrees, concentration: float) -> dict[tuple[Tree, ...], float]:
    """The log joint probability of sentences and every choice of their trees, parameters integrated out."""
    prior, builder = prior_of(structure, concentration), TreeBuilder(structure.grammar, structure.rules)
    choices = []
    for number in range(structure.n_clusters):  # every tree is drawn in so many draws
        copies = PhraseTrees([structure.sentences[number]] * 4000, structure.rules)
        hidden, _ = copies.draw(prior.mean(), np.arange(4000), np.random.default_rng(1))  # type: ignore[arg-type]
        own = {tuple(hidden[at + 1 : at + 1 + hidden[at]].tolist()) for at in copies.rooms[:-1].tolist()}
        choices.append(sorted(own))
    found = {}
    for chosen in itertools.product(*choices):
        counts = structure.counts_of(np.array(list(itertools.chain(*chosen))))
        evidence = prior.log_evidence(structure.record(counts, 0.0, 1.0))
        assert evidence is not None
        trees = tuple(builder.tree(rules) for rules in chosen)
        found[trees] = evidence  # type: ignore[index]
    return found


def test_the_variational_bound_never_falls_and_is_below_the_evidence() -> None:
    grammar = fitted("vi", SMALL, iterations=30, concentration=0.7)
    bound = np.array(grammar.trace_.objective)
    assert np.diff(bound).min() >= -1e-9
    evidence = np.logaddexp.reduce(list(tree_evidence(structure_of(SMALL)[0], 0.7).values()))
    assert bound[-1] < evidence < bound[-1] + 4.0
    assert fitted("cvi", SMALL, iterations=30, concentration=0.7).trace_.objective[-1] < evidence + 0.5


@pytest.mark.parametrize("name", ["gibbs", "hastings"])
def test_samplers_draw_trees_as_often_as_the_posterior_says(name: str) -> None:
    """With parameters drawn in turn; and summed out, where proposals are rejected since the grammar is recursive."""
    kind = {"n_samples": 3000, "burn_in": 100, "n_chains": 2, "keep_states": True}
    algorithm = Gibbs("sequence", "sampled", **kind) if name == "gibbs" else Hastings(**kind)  # type: ignore[arg-type]
    structure, _ = structure_of(SMALL)
    problem = Problem(structure, prior_of(structure, 0.3))
    begin = structure.statistics(problem.prior.mean())
    start = RunState(Known(begin, problem.prior.update(begin).mean()), seed=5)
    drawn = fit_problem(problem, algorithm, [lambda: start], np.random.SeedSequence(1)).best
    assert drawn is not None
    accepted = np.mean(drawn.trace.measures["accepted"])
    assert accepted == 1.0 if name == "gibbs" else 0.3 < accepted < 0.99
    builder, rooms = TreeBuilder(structure.grammar, structure.rules), structure.rooms[:-1].tolist()
    counts: Counter[Any] = Counter()
    for hidden in drawn.results.memory["samples.hidden"].reshape(-1, structure.rooms[-1]).tolist():
        counts[tuple(tuple(hidden[at + 1 : at + 1 + hidden[at]]) for at in rooms)] += 1
    logs = tree_evidence(structure, 0.3)
    weights = np.exp(np.array(list(logs.values())) - np.logaddexp.reduce(list(logs.values())))
    shares: Counter[Any] = Counter()
    for chosen, count in counts.items():
        shares[tuple(builder.tree(rules) for rules in chosen)] += count / sum(counts.values())
    for trees, weight in zip(logs, weights, strict=True):
        assert shares[trees] == pytest.approx(weight, abs=0.03)


def test_the_sampler_agrees_with_the_joint_distribution() -> None:
    """Geweke's test: sweeps and new words in turn keep the joint distribution of sentences of these lengths."""
    structure, _ = structure_of(["a b b", "b b"], "S -> S S | A S | 'b' | 'a'\nA -> 'a' | 'b' | S A")
    prior, rng = prior_of(structure, 0.1), np.random.default_rng(3)
    walker: Any = structure.walkers(Hastings(), prior, 7).walker(0, np.empty(0, dtype=np.int64))
    walker.begin(prior.mean())
    kept: list[Any] = []
    for sweep in range(6000):
        walker.sweeps(sweep, np.ones(1))
        redraw_words(walker, prior.rules.concentration, rng)
        kept.append(features(trees_of(walker)))
    named = naive_rules(structure.rules, np.ones(len(structure.rules)))
    places = {rule: number for number, rule in enumerate(named)}
    choices = [
        [
            (np.bincount([places[rule] for rule in one.rules], minlength=len(places)), one.tree)
            for words in itertools.product("ab", repeat=n)
            for one in naive_phrases.derivations("S", words, named, 1)
        ]
        for n in (3, 2)
    ]
    pairs = list(itertools.product(*choices))
    logs = np.array([prior.log_evidence(structure.record(one[0] + two[0] + 0.0, 0.0, 1.0)) for one, two in pairs])
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    truth = weights @ np.array([features([one[1], two[1]]) for one, two in pairs])
    np.testing.assert_allclose(np.mean(kept, axis=0)[2], truth[2], atol=0.012)
    np.testing.assert_allclose(np.mean(kept, axis=0), truth, atol=0.12)


def trees_of(walker: PhraseWalker) -> list[Tree | None]:
    """Return the trees of a walker."""
    structure, hidden = walker.structure, np.asarray(walker.hidden)
    builder = TreeBuilder(structure.grammar, structure.rules)
    return [builder.tree(hidden[at + 1 : at + 1 + hidden[at]].tolist()) for at in structure.rooms[:-1].tolist()]


def features(trees: list[Any]) -> list[float]:
    """Return what is compared of two trees: uses of recursive rules, their squares, and how alike words are."""
    rules = Counter(
        (node.label, tuple(c if isinstance(c, str) else c.label for c in node.children))
        for tree in trees
        for node in tree.subtrees()
    )
    pairs, backwards, a, b = (rules["S", ("S", "S")], rules["A", ("S", "A")], rules["S", ("a",)], rules["S", ("b",)])
    return [float(value) for value in (pairs, pairs**2, backwards, a + b, abs(a - b), a * b)]


def redraw_words(walker: PhraseWalker, concentration: Any, rng: np.random.Generator) -> None:
    """Draw every word of the text again given the shape of its tree and all other words."""
    structure = walker.structure
    grammar, hidden = structure.grammar, np.array(walker.hidden)
    first = len(grammar.binary_pair) + len(grammar.unary)
    counts = concentration + walker.statistics().rules.counts  # type: ignore[attr-defined]
    terminals = np.repeat(np.arange(len(structure.rules.terminals)), np.diff(grammar.lexical_first))
    edge = 0
    for at in structure.rooms[:-1].tolist():
        for place in range(at + 1, at + 1 + hidden[at]):
            if hidden[place] < first:
                continue
            symbol = grammar.lexical_symbol[hidden[place] - first]
            counts[grammar.lexical_weight[hidden[place] - first]] -= 1.0
            rows = np.flatnonzero(grammar.lexical_symbol == symbol)
            odds = counts[grammar.lexical_weight[rows]]
            row = int(rng.choice(rows, p=odds / odds.sum()))
            counts[grammar.lexical_weight[row]] += 1.0
            hidden[place], structure.text.edge[edge, 2] = first + row, terminals[row]
            edge += 1
    walker.hidden = hidden
    walker._count()


def test_the_sampler_accepts_everything_where_no_symbol_comes_twice() -> None:
    """With one rule of a left-hand side a tree, the proposal is the conditional (Wang 2016, 4.25-4.29)."""
    words, rules = ["abab", "ba", "abb", "b"], "W -> V | V M | P V M\nV -> <substring>\nM -> <substring>\nP -> 'a'"
    grammar = fitted(Hastings(n_samples=30, burn_in=0, n_chains=1), words, rules, unit="character", concentration=0.1)
    assert np.mean(grammar.trace_.measures["accepted"]) == 1.0
    assert np.mean(grammar.trace_.measures["changed"]) > 0.0
    assert np.mean(fitted(ALGORITHMS["hastings"], concentration=2.0).trace_.measures["accepted"]) < 1.0


# ---- collapsed inference ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("excludes", [False, True])
def test_a_visit_takes_the_sentence_out_first(excludes: bool) -> None:
    """One pass, written out with the posterior predictive of the other sentences, or of all."""
    structure, _ = structure_of()
    prior = prior_of(structure, 0.3)
    ledger, n = PhraseLedger(structure, prior), structure.n_clusters
    ledger.begin(structure.statistics(prior.mean()))
    begin: Any = prior.update(structure.statistics(prior.mean())).predictive()
    counted = [structure.expected(begin, np.array([i])) for i in range(n)]
    total_entropy = 0.0
    for i in range(n):
        others = sum(own.rules.counts for j, own in enumerate(counted) if j != i or not excludes)
        weights = prior.update(structure.record(others, 0.0, 0.0)).predictive()
        counted[i] = structure.expected(weights, np.array([i]))  # type: ignore[arg-type]
        total_entropy += counted[i].log_normalizer
    ledger.visit(np.arange(n), excludes=excludes, puts_back=True)
    expected = sum(own.rules.counts for own in counted)
    np.testing.assert_allclose(ledger.statistics.rules.counts, expected, atol=2e-6)  # type: ignore[attr-defined]
    assert ledger.since[0] == pytest.approx(total_entropy, abs=1e-5)


def test_visits_begin_with_what_the_start_expects_of_each_sentence() -> None:
    """Not with what its counts, shared by all sentences, make of them: flat weights are no probabilities."""
    structure, _ = structure_of()
    prior, weights = prior_of(structure, 0.3), np.random.default_rng(0).uniform(0.5, 1.5, len(structure.rules))
    ledger = PhraseLedger(structure, prior)
    ledger.begin(begun(structure, weights, prior))
    found = structure.run(EXPECT, weights, np.arange(structure.n_clusters))
    np.testing.assert_allclose(ledger.shares["rules"], found.shares, rtol=1e-6)
    ledger.check_sum(ledger.statistics)


def test_rules_that_are_not_allowed_get_no_share_from_a_start() -> None:
    structure, _ = structure_of()
    forbidden = structure.rules.right.index((1, 0))  # S -> A S, beside S -> S S
    concentration = np.where(np.arange(len(structure.rules)) == forbidden, 0.0, 0.3)
    prior = PhrasePosterior.of(structure.rules, concentration)
    ledger = PhraseLedger(structure, prior)
    ledger.begin(begun(structure, np.ones(len(structure.rules)), prior))
    assert ledger.counts["rules"][forbidden] == 0.0
    assert ledger.counts["rules"].sum() > concentration.sum() + 1.0


def test_counts_are_the_sum_of_all_shares_after_any_pass() -> None:
    structure, _ = structure_of()
    prior = prior_of(structure, 0.3)
    ledger = PhraseLedger(structure, prior)
    ledger.begin(structure.statistics(prior.mean()))
    for excludes, puts_back in ((True, True), (False, True)):
        ledger.visit(np.arange(structure.n_clusters), excludes=excludes, puts_back=puts_back)
        ledger.check_sum(ledger.statistics)
        before = ledger.counts["rules"].copy()
        ledger.add_up()
        np.testing.assert_allclose(ledger.counts["rules"], before, atol=1e-12)
    ledger.visit(np.arange(structure.n_clusters), excludes=True, puts_back=False)
    with pytest.raises(FileFormatError, match="sum of the shares"):
        ledger.check_sum(ledger.statistics)


def test_the_entropy_of_a_visited_sentence_is_that_of_all_its_trees() -> None:
    structure, _ = structure_of(["a b a b"])
    prior = prior_of(structure, 0.5)
    ledger = PhraseLedger(structure, prior)
    ledger.begin(structure.statistics(prior.mean()))
    ledger.visit(np.arange(1), excludes=True, puts_back=True)
    rules = naive_rules(structure.rules, prior.mean().rules.weights)  # type: ignore[attr-defined]
    truth = naive_phrases.enumerate_trees("S", structure.sentences[0], rules)
    assert ledger.since.tolist() == pytest.approx([np.log(truth.likelihood), truth.entropy])


# ---- use -------------------------------------------------------------------------------------------------------------


def test_a_written_grammar_is_used_without_a_fit() -> None:
    grammar = PCFG("S -> 'a' S 'b' [0.4] | 'a' 'b' [0.6]", progress=False)
    with pytest.warns(UserWarning, match=r"cannot derive sentence 1 \('a'\)"):
        trees = grammar.parse(["a a b b", "a", ""])
    assert [str(tree) for tree in trees] == ["(S a (S a b) b)", "None", "None"]
    with pytest.warns(UserWarning, match="-inf"):
        scores = grammar.score_samples(["a a b b", "b", ""])
    np.testing.assert_allclose(scores, [np.log(0.24), -np.inf, 0.0])
    assert grammar.perplexity(["a a b b"]) == pytest.approx(0.24 ** (-1 / 4))
    assert grammar.perplexity(["a a b b", ""], per="sentence") == pytest.approx(1 / 0.24)
    spans = grammar.posterior(["a a b b"])[0]
    assert spans.shape == (1, 4, 4)
    assert {tuple(place) for place in np.argwhere(spans).tolist()} == {(0, 0, 3), (0, 1, 2)}
    assert grammar.memory_estimate(["a b " * 150]) > 300 * 301 * 16
    assert {str(tree) for tree in grammar.sample(30, max_length=4, random_state=0)} == {"(S a b)", "(S a (S a b) b)"}


def test_sampled_trees_have_the_probability_that_the_grammar_gives_them() -> None:
    grammar = fitted("vi", concentration=1.0)
    trees = grammar.sample(20_000, max_length=3, random_state=3)
    counts = Counter(tree.leaves().__len__() for tree in trees)
    sentences = [" ".join(words) for n in (1, 2, 3) for words in itertools.product("ab", repeat=n)]
    with pytest.warns(UserWarning, match="cannot derive"):
        scores = np.exp(grammar.score_samples(sentences))
    by_length = np.array([sum(p for p, s in zip(scores, sentences, strict=True) if len(s.split()) == n)
                          for n in (1, 2, 3)])  # fmt: skip
    for n, share in enumerate(by_length / by_length.sum(), start=1):
        assert counts[n] / len(trees) == pytest.approx(share, abs=0.02)
    drawn = grammar.sample_trees(SENTENCES, random_state=1)
    assert [tree.leaves() if tree else [] for tree in drawn] == [s.split() for s in SENTENCES]


def test_a_treebank_gives_relative_frequencies() -> None:
    one = Tree("S", [Tree("NP", ["dogs"]), Tree("VP", ["bark"])])
    two = Tree("S", [Tree("NP", ["the", Tree("N", ["dog"])]), Tree("VP", ["barks"])])
    grammar = PCFG.from_trees([one, two, one])
    rules = {(left, right): p for left, right, p in grammar.rules_[["left", "right", "probability"]].tolist()}
    assert rules["NP", "'dogs'"] == pytest.approx(2 / 3)
    assert rules["NP", "'the' N"] == pytest.approx(1 / 3)
    assert grammar.rules_["count"].sum() == 10.0
    assert grammar.parse(["the dog barks"]) == [two]
    smoothed = PCFG.from_trees([one, two, one], smoothing=1.0)
    assert dict(smoothed.rules_[["right", "probability"]].tolist())["'dogs'"] == pytest.approx(3 / 5)
    assert smoothed.rules_["count"].sum() == 10.0
    tops = PCFG.from_trees([one, Tree("X", ["hey"])])
    assert tops.symbols_[0] == "ROOT"
    assert tops.score(["hey"]) == pytest.approx(np.log(0.5))
    again = grammar.fit(["dogs bark", "dogs barks"], brackets=[[(0, 1)], []])
    assert dict(again.rules_[["right", "probability"]].tolist())["'barks'"] == pytest.approx(0.5)


def test_a_fully_connected_grammar_is_learned_with_brackets_and_without_rules_that_are_not_allowed() -> None:
    sentences, settings = ["a b c", "a b", "a b c c"] * 3, {"progress": False, "random_state": 0, "iterations": 15}
    brackets = [[(0, 2)] if len(s.split()) > 2 else [] for s in sentences]
    grammar = PCFG(n_nonterminals=3, **settings).fit(sentences, brackets=brackets)  # type: ignore[arg-type]
    assert np.diff(grammar.trace_.objective).min() >= -1e-9
    free = PCFG(
        n_nonterminals=2,
        n_preterminals=2,
        inference="cvi",
        allowed=lambda left, right: right != ("X0", "X0"),
        **settings,
    ).fit(sentences)  # type: ignore[arg-type]
    assert ("X0", "X0") not in {tuple(right.split()) for right in free.rules_["right"]}
    tree = free.parse(["a b c"])[0]
    assert tree is not None
    assert {node.label[0] for node in tree.subtrees() if isinstance(node.children[0], str)} == {"T"}
    assert np.isfinite(free.score(sentences))


def test_open_classes_take_what_the_sentences_have() -> None:
    grammar = fitted(
        sentences=["in 1 2", "at 3"], rules="S -> W N | W N N\nW -> /[a-z]+/\nN -> /[0-9]/", tokens=["4 5"]
    )
    assert {right for left, right in grammar.rules_[["left", "right"]].tolist() if left == "W"} == {"'in'", "'at'"}
    smoothed = fitted("vi", ["in 1 2", "at 3"], "S -> W N | W N N\nW -> /[a-z]+/\nN -> /[0-9]/", tokens=["4 5"])
    assert np.isfinite(smoothed.score(["at 4 5"]))
    with pytest.raises(InputError, match="matches no token"):
        fitted(sentences=["a"], rules="S -> /[0-9]/ | 'a'")
    with pytest.raises(NotFittedError):
        PCFG("S -> /[0-9]/").parse(["1"])


def test_tags_of_treebanks_are_sentences() -> None:
    import io

    text = read_dependencies(io.StringIO("Dogs\tNNS\t2\nbark\tVBP\t0\n"))
    assert fitted(sentences=text, rules="S -> 'NNS' 'VBP'").score(text) == 0.0


def test_sentences_that_no_weights_can_derive_are_left_out() -> None:
    with pytest.warns(
        UserWarning, match=r"cannot derive 2 sentences, the first of them sentence 1 \('c'\); left out of"
    ):
        grammar = fitted(sentences=["a b", "c", "b", "a"])
    assert grammar.score(["a b", "b"]) > -10.0
    with pytest.raises(InputError, match="nothing is left"):
        fitted(sentences=["c"])


# ---- files and bad input ---------------------------------------------------------------------------------------------


def test_files_keep_grammars_exactly(tmp_path: Path) -> None:
    for grammar in (
        fitted("vi", concentration={"S": 0.5, "": 2.0}),
        PCFG(n_nonterminals=2, n_preterminals=2, progress=False, random_state=1).fit(SENTENCES),
        PCFG.from_trees([Tree("S", ["a", Tree("B", ["b"])])], smoothing=0.5),
        fitted("cvi", ["abab", "ba"], "W -> V | V V\nV -> <substring>", unit="character"),
    ):
        grammar.save(tmp_path / "g")
        loaded = PCFG.load(tmp_path / "g")
        np.testing.assert_array_equal(loaded.rules_, grammar.rules_)
        sentences = ["ab"] if grammar.unit == "character" else ["a b"]
        assert loaded.score(sentences) == grammar.score(sentences)
        assert loaded.status_ == grammar.status_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": [[0, 7]]}, "whole number"),
        ({"right": [[0, 0]]}, "fit its symbols"),
        ({"symbols": ["S", "S"]}, "twice"),
        ({"start": 9}, "whole number"),
        ({"terminals": [["a"], ["a"]]}, "different"),
        ({"connected": [2, 2, 0]}, "another number"),
        ({"weights": "median"}, "median"),
    ],
)
def test_forged_files_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    fitted().save(tmp_path / "g")
    arrays, header = read_arrays(tmp_path / "g", "context-free grammar")
    write_arrays(tmp_path / "g", arrays, header | change)
    with pytest.raises(FileFormatError, match=message):
        PCFG.load(tmp_path / "g")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> 'a' [0]", "line 1: the rule S -> 'a' has no probability"),
        ("S -> 'a' [1.0] | 'b'", "nothing is left for the rule S -> 'b'"),
        ("S -> 'a' [0.4] | 'b' [0.4]", "sum to 0.8"),
        ("S -> A 'a'", "A in the rule S -> A 'a' has no rules"),
        ("S -> 'a' | A\nA -> A S", "A derives no tokens"),
        ("S -> A\nA -> S", "S derives no tokens"),
        ("S -> 'a'\nB -> 'b'", "B cannot be reached from the start, which is S"),
        ("S -> 'a' |", "derives nothing"),
        ("S -> 'a'\n'b' 'c'", "line 2 must begin with a symbol and '->'"),
        ("S -> 'a' [x]", "no probability between"),
        ("S -> /(/", "no regular expression"),
        ("S -> 'a' /b/", "mixes an open class"),
        ("S -> 'a' ]", "not expected"),
        ("# S -> nothing", "no rules"),
        ("no-such-file", "neither a grammar"),
    ],
)
def test_mistakes_in_a_grammar_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        PCFG(text).parse(["a"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs rules"),
        ({"rules": "S -> 'a'", "n_nonterminals": 2}, "not both"),
        ({"rules": "S -> 'a'", "n_preterminals": 2}, "fully connected"),
        ({"rules": "S -> 'a'", "inference": "beam"}, "fits no grammars"),
        ({"n_nonterminals": 500}, "125,000,000 rules"),
        ({"rules": "S -> 'a'", "init": "harmonic"}, "start"),
        ({"rules": "S -> S | 'a'", "init": "flat"}, "cycle of unary rules"),
        ({"rules": "S -> 'a'", "n_init": 3}, "alike"),
        ({"rules": "S -> 'a'", "hard": True, "inference": "vi"}, "hard=True"),
        ({"rules": "S -> 'a'", "concentration": 0.0}, "positive number"),
        ({"rules": "S -> 'a'", "concentration": {"T": 1.0}}, "symbol of concentration"),
        ({"rules": "S -> 'a'", "unit": "syllable"}, "unit"),
        ({"rules": "S -> 'a'", "inference": CVI(order="shards")}, "shards"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PCFG(progress=False, **settings).fit(["a"])
    with pytest.raises(InputError, match="no span of its 1 tokens"):
        PCFG("S -> 'a'", progress=False).fit(["a"], brackets=[[(0, 2)]])


def test_rules_are_written_as_they_are_read() -> None:
    rules = parse_rules("S -> NP 'it\\'s' [0.5] # comment\n  | /[a-z]/ [.5]\nNP -> <substring>")
    assert [str(rule) for rule in rules] == ['S -> NP "it\'s"', "S -> /[a-z]/", "NP -> <substring>"]
    assert [rule.probability for rule in rules] == [0.5, 0.5, None]


def test_grouped_distributions_are_those_of_separate_ones() -> None:
    rng, groups = np.random.default_rng(0), np.array([0, 1, 0, 1, 1])
    prior = GroupedDirichlet(np.array([0.5, 1.0, 2.0, 0.0, 0.3]), groups)
    posterior = prior.update(GroupedSums(np.array([3.0, 1.0, 0.0, 5.0, 2.0])))
    parts = [(DirichletRowTable(d.concentration[None, groups == g]), g) for d in (posterior,) for g in (0, 1)]
    for kind in ("mean", "mode", "expected_log"):
        found = getattr(posterior, kind)().weights
        for part, g in parts:
            np.testing.assert_allclose(found[groups == g], getattr(part, kind)().weights[0])
    priors = [DirichletRowTable(prior.concentration[None, groups == g]) for g in (0, 1)]
    assert posterior.kl(prior) == pytest.approx(sum(p.kl(q) for (p, _), q in zip(parts, priors, strict=True)))
    sums = GroupedSums(np.array([3.0, 1.0, 0.0, 0.0, 2.0]))
    evidence = sum(q.log_evidence(RuleSums(sums.counts[None, groups == g])) or 0.0 for g, q in enumerate(priors))
    assert prior.log_evidence(sums) == pytest.approx(evidence)
    draws = np.array([posterior.sample(rng).weights for _ in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean().weights, atol=0.02)
