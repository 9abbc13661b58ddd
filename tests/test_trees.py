"""Dependency trees of sentences: all kernels against the enumeration of all projective trees."""

from __future__ import annotations

import itertools
from typing import Any

import naive_trees
import numpy as np
import pytest

from subchain.errors import InputError
from subchain.propagation.trees.charts import Rules
from subchain.propagation.trees.passes import BEST, DRAW, EXPECT, SCORE, Tags, safest_trees
from subchain.structures.trees.model import TreePoint
from subchain.structures.trees.starts import STARTS, start_statistics
from subchain.structures.trees.structure import DependencyTrees
from subchain.tables import RowWeights

N_TAGS = 3


def sentences_of(*sentences: list[int], n_tags: int = N_TAGS, n_jobs: int = 1) -> DependencyTrees:
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
    codes = np.array([tag for sentence in sentences for tag in sentence], dtype=np.int32)
    return DependencyTrees(Tags(codes, starts), n_tags, n_jobs)


def random_rules(rng: np.random.Generator, n_tags: int = N_TAGS, concentration: float = 1.0) -> Rules:
    def rows(n: int, size: int) -> Any:
        return rng.dirichlet(np.full(size, concentration), n)

    return Rules(rows(1, n_tags), rows(4 * n_tags, 2), rows(2 * n_tags, n_tags))


def naive(rules: Rules) -> naive_trees.Rules:
    n_tags = rules.root.shape[1]
    return naive_trees.Rules(
        rules.root[0], rules.stop.reshape(n_tags, 2, 2, 2), rules.attach.reshape(n_tags, 2, n_tags)
    )


def only(structure: DependencyTrees, task: int, rules: Rules, **settings: Any) -> Any:
    return structure.run(task, rules, np.arange(structure.n_clusters), **settings)


CASES = [(seed, length) for seed, length in itertools.product(range(3), range(1, 6))]


def test_there_are_as_many_projective_trees_as_known() -> None:
    # OEIS A006013: non-crossing trees with a root, each projective
    assert [len(naive_trees.trees(n)) for n in range(1, 6)] == [1, 2, 7, 30, 143]


@pytest.mark.parametrize(("seed", "length"), CASES)
def test_expectations_are_those_of_all_trees(seed: int, length: int) -> None:
    rng = np.random.default_rng([seed, length])
    rules, tags = random_rules(rng, concentration=0.5), rng.integers(N_TAGS, size=length).tolist()
    truth = naive_trees.enumerate_trees(tags, naive(rules))
    structure = sentences_of(tags)
    found = only(structure, EXPECT, rules)
    assert found.logs[0] == pytest.approx(np.log(truth.likelihood), rel=1e-12)
    assert only(structure, SCORE, rules).logs[0] == found.logs[0]
    np.testing.assert_allclose(found.shares.arcs.reshape(length, length), truth.arcs, atol=1e-13)
    counts, totals = structure.nothing()
    structure.add(found, np.arange(1), counts, totals)
    for mine, theirs in zip(naive(counts), truth.counts, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-13)
    np.testing.assert_allclose(totals, counts.attach.sum(axis=1), atol=1e-13)


@pytest.mark.parametrize(("seed", "length"), CASES)
def test_the_likelihood_is_that_of_the_grammar_in_chomsky_normal_form(seed: int, length: int) -> None:
    rng = np.random.default_rng([seed, length, 1])
    rules, tags = random_rules(rng), rng.integers(N_TAGS, size=length).tolist()
    expected = naive_trees.inside_of_grammar(tags, naive(rules))
    assert only(sentences_of(tags), SCORE, rules).logs[0] == pytest.approx(np.log(expected), rel=1e-12)


@pytest.mark.parametrize(("seed", "length"), CASES)
def test_the_best_tree_is_the_most_probable_one(seed: int, length: int) -> None:
    rng = np.random.default_rng([seed, length, 2])
    rules, tags = random_rules(rng), rng.integers(N_TAGS, size=length).tolist()
    truth = naive_trees.enumerate_trees(tags, naive(rules))
    found = only(sentences_of(tags), BEST, rules)
    assert found.logs[0] == pytest.approx(np.log(truth.best_probability), rel=1e-12)
    assert naive_trees.probability(tags, tuple(found.heads), naive(rules)) == pytest.approx(truth.best_probability)


@pytest.mark.parametrize(("seed", "length"), CASES)
def test_the_safest_tree_has_the_largest_sum_of_posteriors(seed: int, length: int) -> None:
    rng = np.random.default_rng([seed, length, 3])
    rules, tags = random_rules(rng), rng.integers(N_TAGS, size=length).tolist()
    arcs = naive_trees.enumerate_trees(tags, naive(rules)).arcs

    def gain(heads: Any) -> float:
        return float(sum(arcs[word if head == -1 else head, word] for word, head in enumerate(heads)))

    structure = sentences_of(tags)
    found = only(structure, EXPECT, rules)
    heads = np.empty(length, dtype=np.int64)
    safest_trees(structure.tags, np.arange(1), found.places, found.rows, found.shares, heads, length)
    assert naive_trees.is_projective_tree(tuple(heads.tolist()))
    assert gain(heads) == pytest.approx(max(map(gain, naive_trees.trees(length))))


@pytest.mark.parametrize("far", [False, True])
def test_draws_are_as_frequent_as_the_posterior_says(far: bool) -> None:
    """With `far`, weights are so small that draws come from charts in log space."""
    rng = np.random.default_rng(4)
    rules, tags, n = random_rules(rng), [0, 2, 1, 1], 20_000
    truth = naive_trees.enumerate_trees(tags, naive(rules))
    if far:
        rules = rules._replace(root=rules.root * 1e-150)
    structure = sentences_of(*[tags] * n)
    found = only(structure, DRAW, rules, uniforms=rng.random(8 * n))
    drawn = [tuple(heads) for heads in found.heads.reshape(n, 4).tolist()]
    frequencies = {heads: drawn.count(heads) / n for heads in truth.posterior}
    assert sum(frequencies.values()) == pytest.approx(1.0)
    for heads, p in truth.posterior.items():
        assert frequencies[heads] == pytest.approx(p, abs=5.0 * np.sqrt(p * (1.0 - p) / n) + 1e-12)
    surprise = -np.mean([np.log(truth.posterior[heads]) for heads in drawn])
    assert surprise == pytest.approx(truth.entropy, abs=0.05)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_weights_beyond_the_range_of_doubles_are_computed_in_log_space(length: int) -> None:
    rng = np.random.default_rng(length)
    rules, tags = random_rules(rng), rng.integers(N_TAGS, size=length).tolist()
    plain = only(sentences_of(tags), EXPECT, rules)
    far = only(sentences_of(tags), EXPECT, rules._replace(root=rules.root * 1e-200))
    assert far.logs[0] == pytest.approx(plain.logs[0] + np.log(1e-200), rel=1e-12)
    np.testing.assert_allclose(far.shares.arcs, plain.shares.arcs, atol=1e-12)
    np.testing.assert_allclose(far.shares.childless, plain.shares.childless, atol=1e-12)


def test_a_sentence_without_any_tree_has_log_likelihood_minus_infinity() -> None:
    rules = random_rules(np.random.default_rng(0))
    rules = rules._replace(attach=rules.attach * (np.arange(N_TAGS) != 2), root=rules.root * (np.arange(N_TAGS) != 2))
    structure = sentences_of([0, 2], [0, 1])
    for task in (EXPECT, SCORE, BEST, DRAW):
        settings = {"uniforms": np.full(8, 0.5)} if task == DRAW else {}
        logs = only(structure, task, rules, **settings).logs
        assert logs[0] == -np.inf
        assert np.isfinite(logs[1])


@pytest.mark.parametrize("concentration", [1.0, 0.02])
def test_long_sentences_neither_underflow_nor_lose_mass(concentration: float) -> None:
    """Under extreme weights too; the scaled pass and the one in log space agree."""
    rng, length = np.random.default_rng(1), 250
    rules = random_rules(rng, n_tags=20, concentration=concentration)
    rules = Rules(*(np.maximum(table, 1e-60) for table in rules))
    structure = sentences_of(rng.integers(20, size=length).tolist(), n_tags=20)
    found = only(structure, EXPECT, rules)
    assert np.isfinite(found.logs[0])
    arcs = found.shares.arcs.reshape(length, length)
    np.testing.assert_allclose(arcs.sum(axis=0), 1.0, atol=1e-9)  # every word has a head, or is the root
    far = only(structure, EXPECT, rules._replace(root=rules.root * 1e-200))
    assert far.logs[0] == pytest.approx(found.logs[0] + np.log(1e-200), rel=1e-10)
    np.testing.assert_allclose(far.shares.arcs, found.shares.arcs, atol=1e-8)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(5)
    rules, sentences = random_rules(rng), [rng.integers(N_TAGS, size=n).tolist() for n in rng.integers(0, 12, 300)]
    one, two = (only(sentences_of(*sentences, n_jobs=n), EXPECT, rules) for n in (1, 2))
    np.testing.assert_array_equal(one.logs, two.logs)
    np.testing.assert_array_equal(one.shares.arcs, two.shares.arcs)


def test_a_sentence_that_is_too_long_is_refused_with_what_it_would_take() -> None:
    with pytest.raises(InputError, match=r"20,000 tags; every table of attachments would take 6.0 GiB"):
        sentences_of([0, 1], n_tags=20_000)
    with pytest.raises(InputError, match=r"sentence 1 has 5000 words; its charts would take 3.0 GiB"):
        sentences_of([0, 1], [0] * 5000)


@pytest.mark.parametrize("kind", STARTS)
def test_words_pick_their_heads_as_the_start_says(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    sentences = [rng.integers(N_TAGS, size=n).tolist() for n in (1, 3, 0, 5, 2, 7)]
    structure = sentences_of(*sentences)
    preferences = np.random.default_rng(3).standard_exponential((2, N_TAGS, N_TAGS)) if kind == "random" else None
    expected = [naive_trees.picked(tags, N_TAGS, kind == "uniform", preferences) for tags in sentences]
    monkeypatch.setattr("subchain.structures.trees.structure.BLOCK_CELLS", 20)
    assert len(list(structure.blocks(np.arange(6)))) > 2
    found = start_statistics(structure, kind, np.random.default_rng(3))
    mine = naive(Rules(found.root.counts, found.stop.counts, found.attach.counts))
    for table, parts in zip(mine, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(table, sum(parts), atol=1e-13)


def test_a_pass_over_some_sentences_takes_memory_for_these_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    structure, rules = sentences_of(*(rng.integers(N_TAGS, size=n).tolist() for n in (4, 6, 1, 5))), random_rules(rng)
    whole, some = only(structure, BEST, rules), np.array([3, 1])
    found = structure.run(BEST, rules, some)
    starts = structure.tags.starts
    np.testing.assert_array_equal(found.heads, np.concatenate([whole.heads[starts[i] : starts[i + 1]] for i in some]))
    assert (len(found.shares.arcs), len(found.shares.childless)) == (61, 11)
    score = structure.run(SCORE, rules, some)
    assert len(score.heads) == len(score.shares.arcs) == len(score.shares.childless) == 0
    assert len(structure.run(EXPECT, rules, some).heads) == 0
    point = TreePoint(*map(RowWeights, rules))
    drawn, counts = structure.draw(point, np.arange(4), np.random.default_rng(1))
    monkeypatch.setattr("subchain.structures.trees.structure.BLOCK_CELLS", 20)
    again, same = structure.draw(point, np.arange(4), np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, again)
    np.testing.assert_array_equal(counts.attach.counts, same.attach.counts)
