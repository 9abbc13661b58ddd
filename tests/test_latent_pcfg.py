"""Grammars with latent annotations: inside-outside, parsing, every algorithm, training, files and bad input."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path
from typing import Any

import naive_latent
import numpy as np
import pytest

from subchain import CVI, EM, SCVI, SVI, VI, Gibbs, Hastings
from subchain.core.files import read_arrays, write_arrays
from subchain.data.treebank import prepare_trees
from subchain.data.unseen_words import word_class
from subchain.errors import FileFormatError, InputError, NotFittedError
from subchain.grammar import LatentPCFG, Tree, bracket_scores, clean_tree, parse_bracketed, read_trees
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.problem import Problem
from subchain.propagation.latent.passes import count_drawn
from subchain.structures.latent import structure as structure_module
from subchain.structures.latent.grammar import treebank_grammar
from subchain.structures.latent.layout import Layout, entries_of, layout_of
from subchain.structures.latent.ledger import AnnotatedLedger
from subchain.structures.latent.model import AnnotatedPosterior
from subchain.structures.latent.sizes import MOST_WORDS
from subchain.structures.latent.splitting import (
    merge_counts,
    merge_maps,
    smooth_counts,
    split_counts,
    split_sizes,
)
from subchain.structures.latent.starts import start_statistics
from subchain.structures.latent.structure import AnnotatedTrees

TREEBANK = Path(__file__).resolve().parents[2] / "shared" / "data" / "treebank"
TEXT = """
(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))
(S (NP-SBJ (NP (DT the) (NN cat)) (PP (IN with) (NP (DT a) (NN dog)))) (VP (VBZ sees) (NP (-NONE- *))))
(S (NP (PRP it)) (VP (VBZ sees) (NP (NP (DT a) (NN dog)) (PP (IN with) (NP (DT the) (NN cat))))))
(S (NP (PRP it)) (VP (VBZ sees) (NP (DT the) (NN dog)) (PP (IN with) (NP (PRP it)))))
(S (VP (VBZ barks)))
(S (S (NP (PRP it)) (VP (VBZ sees))) (CC and) (S (NP (DT the) (NN cat)) (VP (VBZ sees))))
"""
TREES = [parse_bracketed(line) for line in TEXT.strip().splitlines()] * 2
SENTENCES = [["the", "dog", "sees"], ["it", "sees", "a", "dog"], ["the", "cat", "with", "it", "sees"], ["it", "purrs"]]

ALGORITHMS: dict[str, Any] = {
    "em": EM(max_iter=8, tolerance=0.0),
    "vi": VI(max_iter=8, tolerance=0.0),
    "svi": SVI(batch=3, max_updates=12, report_every=4),
    "scvi": SCVI(batch=3, max_updates=12, report_every=4),
    "cvi": CVI(max_iter=8, tolerance=0.0),
    "cvi of groups": CVI(max_iter=8, tolerance=0.0, cluster_size=5),
    "cvi batch": CVI(max_iter=8, tolerance=0.0, order="batch"),
    "cvi without exclusion": CVI(max_iter=8, tolerance=0.0, exclude=False, order="shuffled"),
    "gibbs": Gibbs(n_samples=6, burn_in=4, n_chains=2),
    "hastings": Hastings(n_samples=6, burn_in=4, n_chains=2),
}


def fitted(inference: Any = "em", n_annotations: int = 2, trees: Any = TREES, **settings: Any) -> LatentPCFG:
    chosen = {"iterations": 8} | settings if isinstance(inference, str) else settings
    return LatentPCFG(n_annotations, inference, progress=False, random_state=0, **chosen).fit(trees)


def naive_weights(grammar: LatentPCFG) -> naive_latent.Weights:
    return naive_latent.weights_of(grammar.grammar_, grammar._layout, grammar._point().rules.weights)


def uneven(seed: int = 0) -> tuple[list[Tree], AnnotatedTrees, Any, Any]:
    """Trees whose symbols have different numbers of annotations, with random weights."""
    rng = np.random.default_rng(seed)
    prepared = prepare_trees(TREES[:6]).trees
    grammar, forest = treebank_grammar(prepared)
    sizes = rng.integers(1, 4, grammar.n_symbols)
    sizes[0] = 1
    layout = layout_of(grammar, sizes)
    prior = AnnotatedPosterior.symmetric(layout.widths, 0.8)
    return prepared, AnnotatedTrees(forest, layout), grammar, prior.sample(rng)


# ---- given trees -----------------------------------------------------------------------------------------------------


def test_expected_counts_are_those_over_all_annotations() -> None:
    trees, structure, grammar, point = uneven()
    some = [0, 4, 2]
    weights = naive_latent.weights_of(grammar, structure.layout, point.rules.weights)
    known = set(grammar.words)
    total, counts = 0.0, np.zeros(structure.layout.n_entries)
    for number in some:
        leaves = trees[number].leaves()
        replaced = [w if w in known else word_class(w, is_first=k == 0) for k, w in enumerate(leaves)]
        log, uses = naive_latent.expected_counts(trees[number], weights, replaced)
        assert structure.score(point)[number] == pytest.approx(log)
        total += log
        counts += _counts_of(grammar, structure.layout, uses)
    found = structure.expected(point, np.array(some))
    np.testing.assert_allclose(found.rules.counts, counts, atol=1e-12)
    assert found.log_normalizer == pytest.approx(total)
    assert found.n_observations == sum(len(trees[number].leaves()) for number in some)


def _counts_of(grammar: Any, layout: Layout, uses: Any) -> np.ndarray:
    """Counts of named versions of rules in the order of a layout; numbered entries tell where each of them is."""
    places = naive_latent.weights_of(grammar, layout, np.arange(layout.n_entries))
    found = np.zeros(layout.n_entries)
    for version, count in uses.items():
        found[int(places.versions[version])] += count
    return found


def test_every_entry_belongs_to_one_version_of_a_rule() -> None:
    _, structure, _, _ = uneven()
    layout = structure.layout
    np.testing.assert_array_equal(np.sort(entries_of(layout)), np.arange(layout.n_entries))
    assert len(layout.widths) == layout.sizes.sum()


def test_blocks_and_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    _, structure, _, point = uneven()
    everything = np.arange(structure.n_clusters)
    whole = structure.expected(point, everything)
    threads = AnnotatedTrees(structure.forest, structure.layout, 2).expected(point, everything)
    np.testing.assert_array_equal(threads.rules.counts, whole.rules.counts)
    monkeypatch.setattr(structure_module, "BLOCK_ENTRIES", 1)
    one_by_one = structure.expected(point, everything)
    np.testing.assert_allclose(one_by_one.rules.counts, whole.rules.counts, atol=1e-12)


def test_drawn_annotations_have_the_expected_counts() -> None:
    trees, structure, _, point = uneven()
    rng, some = np.random.default_rng(1), np.repeat(np.arange(len(trees)), 4000)
    _, drawn = structure.draw(point, some, rng)
    expected = structure.expected(point, np.arange(len(trees))).rules.counts
    np.testing.assert_allclose(drawn.rules.counts / 4000, expected, atol=0.06)


@pytest.mark.parametrize("name", ["gibbs", "hastings"])
def test_samplers_draw_annotations_as_often_as_the_posterior_says(name: str) -> None:
    """With parameters drawn in turn; and summed out, where proposals are rejected since trees use rules twice."""
    text = ["(S (S (A a) (A b)) (A a))", "(S (A a) (A b))"]
    trees = prepare_trees([parse_bracketed(line) for line in text]).trees
    grammar, forest = treebank_grammar(trees)
    layout = layout_of(grammar, np.array([1, *[2] * (grammar.n_symbols - 1)]))
    structure, prior = AnnotatedTrees(forest, layout), AnnotatedPosterior.symmetric(layout.widths, 0.6)
    kind = {"n_samples": 6000, "burn_in": 50, "n_chains": 1, "keep_states": True}
    algorithm = Gibbs("sequence", "sampled", **kind) if name == "gibbs" else Hastings(**kind)  # type: ignore[arg-type]
    start = RunState(Known(structure.statistics(prior.mean()), prior.mean()), seed=5)  # type: ignore[arg-type]
    drawn = fit_problem(Problem(structure, prior), algorithm, [lambda: start], np.random.SeedSequence(1)).best
    assert drawn is not None
    accepted = np.mean(drawn.trace.measures["accepted"])
    assert accepted == 1.0 if name == "gibbs" else 0.5 < accepted < 0.99
    kept = drawn.results.memory["samples.hidden"].reshape(-1, len(forest.rules))
    sizes = layout.rules.sizes[forest.rules, 0].tolist()
    logs: dict[tuple[int, ...], float] = {}
    for chosen in itertools.product(*map(range, sizes)):
        counts = np.zeros(layout.n_entries)
        count_drawn(forest, layout.rules, np.array(chosen), counts)
        evidence = prior.log_evidence(structure.record(counts, 0.0, 5.0))
        assert evidence is not None
        logs[chosen] = evidence
    weights = np.exp(np.array(list(logs.values())) - np.logaddexp.reduce(list(logs.values())))
    every, found = np.array(list(logs)), np.array(kept)
    free = [k for k, size in enumerate(sizes) if size > 1]
    for one, other in itertools.combinations(free, 2):
        truth = weights @ (every[:, one] == every[:, other])
        assert (found[:, one] == found[:, other]).mean() == pytest.approx(truth, abs=0.03)
    whole = weights @ (every[:, free].sum(axis=1) % 2)
    assert (found[:, free].sum(axis=1) % 2).mean() == pytest.approx(whole, abs=0.03)


def test_one_annotation_is_the_treebank_grammar() -> None:
    grammar = fitted(n_annotations=1, iterations=2)
    counts, parents = grammar.grammar_.counts, grammar.grammar_.rules[:, 0]
    totals = np.bincount(parents, counts)[parents]
    assert grammar.trace_.objective[-1] == pytest.approx(float((counts * np.log(counts / totals)).sum()))
    np.testing.assert_allclose(grammar._point().rules.weights, counts / totals)
    rules = grammar.rules_
    [uses] = rules["count"][(rules["parent"] == "NP") & (rules["left"] == "DT") & (rules["right"] == "NN")]
    assert uses == pytest.approx(2 * 8)


# ---- algorithms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_fits_parses_and_resumes(name: str, tmp_path: Path) -> None:
    algorithm = ALGORITHMS[name]
    grammar = fitted(algorithm)
    rules = grammar.rules_
    assert np.isfinite(rules["probability"]).all()
    assert all(
        tree is not None and tree.leaves() == s for tree, s in zip(grammar.parse(SENTENCES), SENTENCES, strict=True)
    )
    limit = next(key for key in ("max_iter", "max_updates", "n_samples") if hasattr(algorithm, key))
    short = type(algorithm)(**(algorithm.get_params(deep=False) | {limit: getattr(algorithm, limit) // 2}))
    fit = {"progress": False, "random_state": 0}
    LatentPCFG(2, short, **fit).fit(TREES, checkpoint=tmp_path / "c")  # type: ignore[arg-type]
    resumed = LatentPCFG(2, algorithm, **fit).fit(TREES, checkpoint=tmp_path / "c", resume=True)  # type: ignore[arg-type]
    for key, array in resumed.posterior_.arrays().items():
        np.testing.assert_array_equal(array, grammar.posterior_.arrays()[key])


@pytest.mark.parametrize("inference", [EM(max_iter=40, tolerance=0.0), VI(max_iter=40, tolerance=0.0)])
def test_the_likelihood_of_em_and_the_bound_of_vi_never_fall(inference: Any) -> None:
    grammar = fitted(inference, 3)
    objective = grammar.trace_.objective
    assert np.diff(objective).min() >= -1e-9
    assert objective[-1] > objective[0] + 1.0


def test_more_annotations_find_more_likely_rules() -> None:
    one, two = fitted(n_annotations=1), fitted(n_annotations=2, iterations=40)
    assert two.trace_.objective[-1] > one.trace_.objective[-1] + 1.0


@pytest.mark.parametrize("size", [1, 5])
def test_the_counts_of_a_pass_are_the_sum_of_the_shares(size: int) -> None:
    _, structure, grammar, _ = uneven()
    prior = AnnotatedPosterior.symmetric(structure.layout.widths, 0.01)
    ledger = structure.ledger(CVI(cluster_size=size), prior)
    ledger.begin(start_statistics(structure, grammar, 0.5, np.random.default_rng(0)))
    for _ in range(3):
        ledger.visit(np.arange(ledger.size), excludes=True, puts_back=True)
    visited = ledger.statistics
    ledger.check_sum(visited)
    assert visited.part("rules").counts.sum() == pytest.approx(len(structure.forest.rules))  # type: ignore[attr-defined]
    ledger.add_up()
    np.testing.assert_allclose(
        visited.part("rules").counts,
        ledger.statistics.part("rules").counts,
        atol=1e-9,  # type: ignore[attr-defined]
    )


def test_a_visit_is_a_pass_under_the_counts_of_the_other_trees() -> None:
    _, structure, grammar, _ = uneven()
    prior = AnnotatedPosterior.symmetric(structure.layout.widths, 0.3)
    ledger = structure.ledger(CVI(), prior)
    ledger.begin(start_statistics(structure, grammar, 0.5, np.random.default_rng(0)))
    before = ledger.statistics.part("rules").counts.copy()  # type: ignore[attr-defined]
    one = np.array([3])
    own = _share_of(ledger, 3, structure.layout)
    weights = prior.update(structure.record(before - own, 0.0, 0.0)).mean()
    fresh = structure.expected(weights, one)  # type: ignore[arg-type]
    ledger.since = np.zeros(2)
    ledger.visit(one, excludes=True, puts_back=True)
    np.testing.assert_allclose(
        ledger.statistics.part("rules").counts,
        before - own + fresh.rules.counts,
        atol=1e-6,  # type: ignore[attr-defined]
    )
    assert ledger.since[0] == pytest.approx(fresh.log_normalizer)
    used = fresh.rules.counts > 0.0
    entropy = fresh.log_normalizer - (fresh.rules.counts[used] * np.log(weights.rules.weights[used])).sum()  # type: ignore[attr-defined]
    assert ledger.since[1] == pytest.approx(entropy, abs=1e-5)


def _share_of(ledger: AnnotatedLedger, group: int, layout: Layout) -> np.ndarray:
    groups, found = ledger.groups, np.zeros(layout.n_entries)
    for u in range(groups.rules[group], groups.rules[group + 1]):
        rule, share = groups.used[u], ledger.shares["uses"][groups.places[u] : groups.places[u + 1]]
        width = int(layout.rules.sizes[rule, 1:].prod())
        for x in range(layout.rules.sizes[rule, 0]):
            at = layout.rules.places[rule] + x * layout.rules.strides[rule]
            found[at : at + width] += share[x * width : (x + 1) * width]
    return found


def test_one_tree_is_known_by_the_prior_alone() -> None:
    grammar = fitted(CVI(max_iter=1), trees=TREES[:1])
    structure = AnnotatedTrees(treebank_grammar(prepare_trees(TREES[:1]).trees)[1], grammar._layout)
    prior = AnnotatedPosterior.symmetric(grammar._layout.widths, 0.01)
    left_out = structure.score(prior.mean())[0]  # type: ignore[arg-type]
    assert grammar.trace_.measures["left_out"][0] == pytest.approx(left_out)


def test_shares_take_less_with_more_trees_at_once() -> None:
    _, structure, _, _ = uneven()
    prior = AnnotatedPosterior.symmetric(structure.layout.widths, 0.3)
    alone, together = (structure.ledger(CVI(cluster_size=n), prior).n_marginals for n in (1, 6))
    assert together == structure.layout.n_entries < alone


# ---- splitting, merging, smoothing -----------------------------------------------------------------------------------


def test_split_counts_are_merged_to_what_they_were() -> None:
    _, structure, grammar, point = uneven()
    before, counts = structure.layout, structure.expected(point, np.arange(6)).rules.counts
    after = layout_of(grammar, split_sizes(before.sizes))
    split = split_counts(grammar, counts, before, after, 0.0, np.random.default_rng(0))
    maps = [np.arange(size) * old // size for size, old in zip(after.sizes, before.sizes, strict=True)]
    np.testing.assert_allclose(merge_counts(grammar, split, after, before, maps), counts, atol=1e-12)
    noisy = split_counts(grammar, counts, before, after, 0.01, np.random.default_rng(0))
    assert np.abs(noisy - split).max() <= 0.01 * split.max()
    assert (noisy != split)[split > 0.0].all()


def test_annotations_that_do_the_same_are_merged_first() -> None:
    grammar = fitted(n_annotations=1, iterations=1)
    before = grammar._layout
    structure = AnnotatedTrees(treebank_grammar(prepare_trees(TREES).trees)[1], before)
    counts, after = grammar.grammar_.counts.astype(float), layout_of(grammar.grammar_, split_sizes(before.sizes))
    split = split_counts(grammar.grammar_, counts, before, after, 0.0, np.random.default_rng(0))
    symbol = grammar.symbols_.index("NP")  # the only one whose annotations differ: subjects and pronouns, and others
    table = naive_latent.weights_of(grammar.grammar_, after, np.arange(after.n_entries)).versions
    for (rule, own), place in table.items():
        if rule[0] == "NP" and (rule[1] == "PRP") != (own[0] == 0):
            split[int(place)] *= 0.1
        if rule[0] in ("S", "VP") and "NP" in rule and (rule[0] == "S") != (own[rule.index("NP")] == 0):
            split[int(place)] *= 0.1
    structure = AnnotatedTrees(structure.forest, after)
    prior = AnnotatedPosterior.symmetric(after.widths, 1.0)
    point = prior.update(structure.record(split, 0.0, 1.0)).mode()
    maps = merge_maps(structure, grammar.grammar_, point, 0.9)  # type: ignore[arg-type]
    assert maps[symbol].max() == 1
    assert sum(int(new.max()) for new in maps) <= 2
    assert len(merge_maps(structure, grammar.grammar_, point, 0.0)[symbol]) == 2  # type: ignore[arg-type]


def test_smoothing_keeps_totals_and_draws_annotations_together() -> None:
    _, structure, grammar, point = uneven()
    layout, counts = structure.layout, structure.expected(point, np.arange(6)).rules.counts
    starts = np.cumsum(layout.widths) - layout.widths
    smooth = smooth_counts(grammar, counts, layout, 0.05)
    np.testing.assert_allclose(np.add.reduceat(smooth, starts), np.add.reduceat(counts, starts))
    np.testing.assert_allclose(smooth_counts(grammar, counts, layout, 0.0), counts, atol=1e-12)
    first_rows = np.cumsum(layout.sizes) - layout.sizes
    symbol = int(np.argmax(layout.widths[first_rows] * (layout.sizes > 1)))
    row = int(first_rows[symbol])
    width, n = int(layout.widths[row]), int(layout.sizes[symbol])

    def spread(values: np.ndarray) -> float:
        table = values[starts[row] : starts[row] + n * width].reshape(n, width)
        return float(np.abs(np.diff(table / table.sum(axis=1, keepdims=True), axis=0)).sum())

    assert spread(smooth) < spread(counts)


@pytest.mark.parametrize("inference", ["em", "cvi"])
def test_splitting_and_merging_resumes_to_the_bit(inference: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"training": "split_merge", "iterations": 5}
    whole = fitted(inference, 4, **settings)
    assert [name for name, _ in whole.stages_] == ["split", "merged", "split", "merged"]
    assert whole.annotations_["ROOT"] == 1
    assert 1 < max(whole.annotations_.values()) <= 4
    fitted(inference, 4, **settings, trees=TREES)
    grammar = LatentPCFG(4, inference, progress=False, random_state=0, **settings)
    grammar.fit(TREES, checkpoint=tmp_path / "c")
    for left_out in (4, 3):
        (tmp_path / f"c.{left_out}").unlink()
    again = grammar.fit(TREES, checkpoint=tmp_path / "c", resume=True)
    for key, array in again.posterior_.arrays().items():
        np.testing.assert_array_equal(array, whole.posterior_.arrays()[key])
    with pytest.raises(InputError, match=r"c\.1 exists already"):
        grammar.fit(TREES, checkpoint=tmp_path / "c")
    with pytest.raises(InputError, match="belongs to another fit"):
        LatentPCFG(4, inference, progress=False, random_state=1, **settings).fit(
            TREES, checkpoint=tmp_path / "c", resume=True
        )
    (tmp_path / "c.2").unlink()
    with pytest.raises(InputError, match=r"there is .*c\.3, but not .*c\.2"):
        grammar.fit(TREES, checkpoint=tmp_path / "c", resume=True)


# ---- sentences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["em", "vi"])
def test_sums_over_all_trees(inference: str) -> None:
    grammar = fitted(inference, pruning=0.0, concentration=0.5, trees=TREES[:6])
    weights, parser = naive_weights(grammar), grammar._parser()
    for sentence in SENTENCES:
        sums = naive_latent.sums_over_trees(grammar.grammar_, weights, sentence)
        assert grammar.score([sentence]) == pytest.approx(math.log(sums.total), abs=1e-9)
        logs, [spans] = parser.spans([sentence])
        assert logs[0] == pytest.approx(math.log(sums.total), abs=1e-9)
        found = {(span.label, span.first, span.end): span.probability for span in spans}
        for (label, first, end), probability in sums.spans.items():
            if label != "ROOT" and not label.startswith("@"):
                assert found[label, first, end] == pytest.approx(probability, abs=1e-9)
        assert set(found) <= {key for key in sums.spans if sums.spans[key] > 0.0} | {
            key for key, value in found.items() if value < 1e-9
        }
        for method, score in (("max-rule", naive_latent.max_rule_score), ("viterbi", None)):
            [tree] = _binarised_trees(grammar, sentence, method)
            if score is not None:
                best = max(score(other, sums) for other in sums.uses)
                assert score(tree, sums) == pytest.approx(best, abs=1e-6)
            else:
                products = [product for _, product in naive_latent.versions_of(tree, weights)]
                assert max(products) == pytest.approx(sums.best[1])


def _binarised_trees(grammar: LatentPCFG, sentence: list[str], method: str) -> list[Tree]:
    """Trees as the parser sees them: without chains, and with intermediate symbols."""
    parser = grammar._parser()
    parser.chains = {}
    restored = parser.trees([sentence], method)
    return prepare_trees([tree for tree in restored if tree is not None]).trees


def test_pruning_keeps_what_matters() -> None:
    exact, pruned = fitted("vi", pruning=0.0), fitted("vi", pruning=1e-3)
    assert pruned.score(SENTENCES) <= exact.score(SENTENCES) + 1e-9
    assert pruned.score(SENTENCES) == pytest.approx(exact.score(SENTENCES), abs=0.1)
    assert pruned.parse(SENTENCES) == exact.parse(SENTENCES)


def test_trees_of_the_treebank_are_found_again() -> None:
    grammar = fitted("em", 4, iterations=40)
    gold = [tree for tree in map(clean_tree, TREES) if tree is not None]
    assert bracket_scores(grammar.parse(gold), gold).f1 > 0.9
    assert grammar.parse(TREES) == grammar.parse([" ".join(tree.leaves()) for tree in gold])


def test_the_file_that_was_learned_from_is_parsed_and_scored(tmp_path: Path) -> None:
    (tmp_path / "bank.mrg").write_text(TEXT * 2, encoding="utf8")
    grammar = fitted(trees=tmp_path / "bank.mrg")
    assert grammar.parse(tmp_path / "bank.mrg") == grammar.parse(TREES)
    assert grammar.score(str(tmp_path / "bank.mrg")) == grammar.score(TREES)


def test_chains_of_unary_nodes_come_back() -> None:
    [tree] = fitted("em", 1).parse(["barks"])
    assert str(tree) == "(ROOT (S (VP (VBZ barks))))"


def test_long_sentences_do_not_underflow() -> None:
    grammar = fitted("vi", 1)
    words = ["it", "sees", "a", "dog", *["with", "a", "dog"] * 60]
    single = grammar.score([words[:7]])
    [long] = grammar.score_samples([words])
    assert -2000.0 < long < single
    [tree] = grammar.parse([words])
    assert tree is not None
    assert tree.leaves() == words


def test_what_the_grammar_cannot_derive_is_named() -> None:
    grammar = fitted()
    sentences = ["it sees", "sees the the"]
    with pytest.warns(UserWarning, match=r"cannot derive sentence 1 \('sees the the'\)"):
        assert [tree is None for tree in grammar.parse(sentences)] == [False, True]
    with pytest.warns(UserWarning, match="log probability is -inf"):
        assert np.isneginf(grammar.score_samples(sentences)).tolist() == [False, True]
    with pytest.warns(UserWarning, match="have no spans"):
        assert [bool(spans) for spans in grammar.posterior(sentences)] == [True, False]
    with pytest.warns(UserWarning, match="log probability is -inf"):
        assert grammar.perplexity(sentences) == math.inf


def test_an_empty_sentence_is_certain_and_has_no_tree() -> None:
    grammar = fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grammar.score_samples(["it sees", "", []]).tolist() == [grammar.score(["it sees"]), 0.0, 0.0]
        assert grammar.parse(["", "it sees"])[0] is None
        assert grammar.posterior([[]]) == [[]]


def test_an_unknown_word_has_a_small_share_if_the_treebank_has_no_rare_one() -> None:
    grammar = fitted(pruning=0.0)
    words = [word for tree in prepare_trees(TREES).trees for word in tree.leaves()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every word goes after "it"
        known = np.exp(grammar.score_samples([["it", word] for word in sorted(set(words))])).sum()
    assert grammar.score(["it purrs"]) == pytest.approx(math.log(known / (len(words) + 1)))


def test_sampled_trees_follow_the_rules() -> None:
    grammar = fitted("vi", concentration=1.0)
    trees = grammar.sample(3000, max_length=12, random_state=1)
    prepared = [node for tree in prepare_trees(trees).trees for node in tree.subtrees() if node.label != "ROOT"]
    assert all(len(child.children) > 1 or isinstance(child.children[0], str) for node in prepared
               if len(node.children) == 1 for child in node.children if isinstance(child, Tree))  # fmt: skip
    assert max(len(tree.leaves()) for tree in trees) <= 12
    for tree in trees[:50]:
        assert not any(node.label.startswith("@") for node in tree.subtrees())
    short = [tree.leaves() for tree in trees if len(tree.leaves()) <= 2]
    drawn = sum(words == ["it", "sees"] for words in short) / len(short)
    rules = naive_weights(grammar)
    words = sorted(word for word in rules.words)
    probabilities = {
        sentence: _probability(grammar, rules, list(sentence))
        for n in (1, 2)
        for sentence in itertools.product(words, repeat=n)
    }
    assert drawn == pytest.approx(probabilities["it", "sees"] / sum(probabilities.values()), abs=0.04)
    assert [str(tree) for tree in trees] == [str(tree) for tree in grammar.sample(3000, 12, random_state=1)]


def _probability(grammar: LatentPCFG, weights: naive_latent.Weights, sentence: list[str]) -> float:
    """Probability of words by their own rules alone."""
    return sum(
        product
        for tree in naive_latent.all_trees(grammar.grammar_, sentence)
        for _, product in naive_latent.versions_of(tree, weights, sentence)
    )


def test_perplexity_is_the_inverse_mean_probability_of_a_word() -> None:
    grammar = fitted()
    n = sum(map(len, SENTENCES))
    assert grammar.perplexity(SENTENCES) == pytest.approx(math.exp(-grammar.score(SENTENCES) / n))
    with pytest.raises(InputError, match="no words"):
        grammar.perplexity([])


# ---- files and bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"inference": "cvi"}, {"training": "split_merge", "n_annotations": 4}])
def test_a_saved_grammar_is_the_same(settings: dict[str, Any], tmp_path: Path) -> None:
    grammar = fitted(**settings)
    grammar.save(tmp_path / "g")
    again = LatentPCFG.load(tmp_path / "g")
    assert again.parse(SENTENCES) == grammar.parse(SENTENCES)
    assert again.score(SENTENCES) == grammar.score(SENTENCES)
    assert again.annotations_ == grammar.annotations_
    assert again.trace_.objective == grammar.trace_.objective
    assert [name for name, _ in again.stages_] == [name for name, _ in grammar.stages_]
    assert again.sample(3, random_state=0) == grammar.sample(3, random_state=0)
    np.testing.assert_array_equal(again.rules_["count"], grammar.rules_["count"])


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    fitted().save(tmp_path / "g")
    arrays, header = read_arrays(tmp_path / "g", "grammar with latent annotations")
    rules = [list(rule) for rule in header["rules"]]
    name = "posterior_.rules.concentration"
    for change, message in (
        ({"symbols": header["symbols"][:-1]}, "does not exist|symbol without rules|a number"),
        ({"symbols": [*header["symbols"][:-1], header["symbols"][0]]}, "twice"),
        ({"sizes": header["sizes"][:-1]}, "one number of annotations"),
        ({"sizes": [1] * len(header["sizes"])}, "does not fit"),
        ({"sizes": "many"}, "whole numbers"),
        ({"rules": [[rules[0][0], 10**6, rules[0][2]], *rules[1:]]}, "rules of the file are not all from"),
        ({"rules": [[rules[0][0], -1, rules[0][2]], *rules[1:]]}, "does not exist"),
        ({"rules": rules[::-1], "arity": header["arity"][::-1]}, "not sorted"),
        ({"rules": rules[:-1]}, "a number of children"),
        ({"rules": 3}, "lists of three"),
        ({"counts": [0] * len(rules)}, "from 1"),
        ({"weights": "other"}, "mode or mean"),
        ({"chains": [["S"]]}, "lists of three"),
        ({"stages": [[1, {}]]}, "stages"),
        ({"status": "well"}, "status"),
    ):
        write_arrays(tmp_path / "bad", arrays, header | change)
        with pytest.raises(FileFormatError, match=message):
            LatentPCFG.load(tmp_path / "bad")
    write_arrays(tmp_path / "zero", arrays | {name: np.zeros_like(arrays[name])}, header)
    with pytest.raises(FileFormatError):
        LatentPCFG.load(tmp_path / "zero")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inference": "beam"}, "LatentPCFG: inference='beam' fits no grammars"),
        ({"training": "slow"}, "training"),
        ({"n_annotations": 0}, "n_annotations"),
        ({"n_annotations": 65}, "third power"),
        ({"n_annotations": 3, "training": "split_merge"}, "power of two"),
        ({"n_init": 2, "training": "split_merge"}, "one start"),
        ({"noise": 0.0}, "alike"),
        ({"merged": 1.0}, "merged"),
        ({"smoothing": -0.1}, "smoothing"),
        ({"pruning": "low"}, "pruning"),
        ({"concentration": 0.0}, "concentration"),
        ({"iterations": 0}, "iterations"),
        ({"inference": CVI(cluster="state")}, "cluster='sequence'"),
        ({"inference": CVI(order="shards")}, "order='shards'"),
        ({"inference": CVI(storage="folder")}, "storage="),
        ({"inference": Gibbs(parameters="collapsed")}, "parameters='sampled'"),
        ({"inference": VI(cluster="state")}, "AnnotatedTrees"),
        ({"trees": []}, "no tree with words"),
        ({"trees": [parse_bracketed("(S (-NONE- *))")]}, "no tree with words"),
        ({"trees": TREES[0]}, "list of Tree"),
        ({"trees": ["(S (VB go))"]}, "tree 0 is a str"),
        ({"trees": [parse_bracketed("(S the (NN dog))")]}, "a word beside other children"),
    ],
)
def test_settings_and_trees_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fitted(**settings)


def test_uses_that_make_no_sense_are_refused() -> None:
    with pytest.raises(NotFittedError):
        LatentPCFG().parse(["a"])
    grammar = fitted()
    with pytest.raises(InputError, match="max-rule"):
        grammar.parse(["it"], method="best")
    with pytest.raises(InputError, match="GiB on every thread"):
        grammar.parse([["it"], ["it"] * (MOST_WORDS + 1)])
    with pytest.raises(InputError, match="whole number"):
        grammar.sample(0)
    with pytest.raises(InputError, match="larger max_length"):
        fitted(trees=TREES[:1]).sample(1, max_length=2)
    assert grammar.parse([]) == []
    assert grammar.score([]) == 0.0


def test_restarts_keep_the_best_run() -> None:
    grammar = fitted(n_init=3)
    assert len(grammar.runs_) == 3
    assert grammar.trace_.objective[-1] == max(run.objective for run in grammar.runs_)


# ---- the Penn sample -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not TREEBANK.exists(), reason="needs ../shared/data/treebank")
def test_one_annotation_on_the_penn_sample() -> None:
    trees = read_trees(TREEBANK / "wsj-sample.trees.txt.gz")
    numbers = [int(line.split("\t")[1]) for line in (TREEBANK / "wsj-sample.files.tsv").read_text().splitlines()]
    ends = np.cumsum(numbers)
    grammar = LatentPCFG(1, iterations=1, progress=False).fit(trees[: ends[159]])
    assert np.bincount(grammar.grammar_.arity).tolist()[2] == 1554
    assert int(grammar.grammar_.counts[grammar.grammar_.arity == 2].sum()) == 78_537
    test = [
        tree for tree in map(clean_tree, trees[ends[159] : ends[161]]) if tree is not None and len(tree.leaves()) <= 25
    ]
    scores = bracket_scores(grammar.parse(test), test)
    assert scores.n_missing == 0
    assert 0.6 < scores.f1 < 0.8
