"""Experiments as commands."""

from __future__ import annotations

import csv
import gzip
import lzma
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import alignment_settings, latent_annotations, other_aligners
from experiments.alice_chapters import AliceChapters
from experiments.alice_chunks import chapter, whole_book
from experiments.alice_truncations import AliceTruncations
from experiments.alignment_ideas import frequency_prior, learned_null
from experiments.alignment_settings import AlignmentSettings
from experiments.dictionary_tagging import DictionaryTagging
from experiments.dmv import METHODS as GRAMMARS
from experiments.dmv import DependencyGrammar
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.hierarchies import (
    SEARCH,
    Concentrations,
    batch_methods,
    chosen,
    shared_color,
)
from experiments.hyperparameters import PRIORS, Hyperparameters
from experiments.joint_predictive import JointPredictive, earlier_alike, powers_of_ten, running_error
from experiments.music import Music
from experiments.occurrence_in_text import OccurrenceInText
from experiments.occurrence_simulated import errors_by_length, length_until_sure
from experiments.parallel_text import LANGUAGES, made_up
from experiments.registry import EXPERIMENTS
from experiments.states_found import SETS, StatesFound, found
from experiments.stochastic_grammars import StochasticGrammars
from experiments.stochastic_grammars import tags as sentences_of_tags
from experiments.tagging import Task, block, cell, penn_sample, table, with_dictionary
from experiments.tagging_convergence import TaggingConvergence
from experiments.tagging_ingredients import TaggingIngredients
from experiments.unsupervised_tagging import MEASURES, UnsupervisedTagging
from experiments.very_large import VeryLarge
from experiments.word_alignment import METHODS, WordAlignment
from experiments.word_grammar import WordGrammar, boundary_f1
from subchain.alignment import ParallelText, WordAligner


class Tiny(Experiment):
    """Two rows."""

    name = "tiny"
    title = "Tiny"

    def rows(self) -> Iterable[Row]:
        yield {"a": 1, "b": 0.5}
        yield {"a": 2, "b": 1.5, "c": "x"}

    def claims(self, rows: list[Row]) -> list[Claim]:
        return [
            Claim("b is one on the average", mean_of(rows, "b") == 1.0, "1.0"),
            Claim("a is negative", False, "1, 2", doubted=True),
        ]

    def draw(self, rows: list[Row], axes: Any) -> None:
        axes.plot([row["a"] for row in rows], [row["b"] for row in rows])


def test_a_table_a_figure_and_a_verdict_are_written(tmp_path: Path) -> None:
    claims = Tiny(tell=lambda text: None).run(tmp_path / "new")
    assert [claim.failed for claim in claims] == [False, False]
    assert (tmp_path / "new" / "tiny.csv").read_text().splitlines() == ["a,b,c", "1,0.5,", "2,1.5,x"]
    assert (tmp_path / "new" / "tiny.png").stat().st_size > 1000
    verdict = (tmp_path / "new" / "tiny.txt").read_text()
    assert "holds: b is one" in verdict
    assert "does not come out: a is negative" in verdict


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_it_is(name: str) -> None:
    experiment = EXPERIMENTS[name](quick=True, tell=lambda text: None)
    assert experiment.title
    assert experiment.seeds >= 1


# ---- taggings --------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up corpus in the place of the Penn sample: six tags in turn, of which two share their words."""
    rng = np.random.default_rng(0)
    lines: list[str] = []
    for _ in range(60):
        first = int(rng.integers(6))
        for tag in (first + np.arange(rng.integers(2, 9))) % 6:
            lines.append(f"{'shared' if tag < 2 else f'word{tag}'}{rng.integers(2)}\ttag{tag}")
        lines.append("")
    (tmp_path / "treebank").mkdir()
    with gzip.open(tmp_path / "treebank" / "wsj-sample.tagged.tsv.gz", "wt", encoding="utf8") as file:
        file.write("\n".join(lines))
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("tiny_corpus")
def test_a_block_has_its_own_words_and_the_tags_of_the_whole() -> None:
    text = penn_sample()
    task = block(text, 2, 2)
    assert task.n_tags == 6
    assert task.n_words == len(set(text.words[1].tolist()))
    whole, part = text.words.vocabulary, task.words.vocabulary
    assert whole is not None
    assert part is not None
    assert part.decode(task.words[0]) == whole.decode(text.words[1])
    restricted = with_dictionary(task, text, min_count=1)
    assert restricted.dictionary is not None
    assert restricted.dictionary.ambiguity(task.words, task.tags).coverage == 1.0
    assert isinstance(restricted, Task)


@pytest.mark.parametrize("kind", [DictionaryTagging, UnsupervisedTagging, TaggingConvergence, TaggingIngredients])
def test_taggings_run_from_the_corpus_to_the_verdict(kind: type[Experiment], tiny_corpus: Path) -> None:
    told: list[str] = []
    claims = kind(quick=True, tell=told.append).run(tiny_corpus)
    assert all(isinstance(claim, Claim) for claim in claims)
    heads, *rows = (tiny_corpus / f"{kind.name}.csv").read_text().splitlines()
    assert {"algorithm", "seed", "seconds"} <= set(heads.split(","))
    assert len(rows) >= 5
    assert "| CVI 2" in (tiny_corpus / f"{kind.name}.txt").read_text()


@pytest.mark.usefixtures("tiny_corpus")
def test_a_dictionary_leaves_only_the_shared_words_to_be_told_apart() -> None:
    experiment = DictionaryTagging(quick=True, tell=lambda text: None)
    for row in experiment.rows():
        assert row["accuracy"] > 60.0
        assert row["thesis"] is not None
    assert experiment.seeds == 2


@pytest.mark.usefixtures("tiny_corpus")
def test_all_metrics_of_a_tagging_without_a_dictionary_are_told() -> None:
    rows = list(UnsupervisedTagging(quick=True, tell=lambda text: None).rows())
    assert all(set(MEASURES) <= set(row) for row in rows)
    assert all(row["1-1 greedy"] <= row["1-1 optimal"] <= row["M-1"] <= 100.0 for row in rows)


def test_tables_have_means_and_deviations() -> None:
    rows: list[Row] = [{"a": 1.0, "b": "x"}, {"a": 3.0, "b": "x"}, {"a": 5.0, "b": "y"}]
    assert cell(rows, "a", b="x") == "2.0 ± 1.4"
    assert cell(rows, "a", b="y") == "5.0"
    assert cell(rows, "a", b="z") == "–"
    assert table(("b", "a"), [("x", "2.0")]) == ["| b | a |", "|---|---|", "| x | 2.0 |"]


# ---- the joint predictive --------------------------------------------------------------------------------------------


def test_one_prediction_has_no_error_and_more_are_as_the_formula_says() -> None:
    known, beta = 100, 0.5
    errors = running_error(known, beta, 3, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(3, beta))
    counts = rng.multinomial(known, probabilities)
    observed = rng.choice(3, size=known, p=probabilities)
    expected = []
    for m, x in enumerate(observed):
        exact = (counts[x] + (observed[:m] == x).sum() + beta) / (known + m + 3 * beta)
        expected.append(abs(exact - (counts[x] + beta) / (known + 3 * beta)))
    assert errors[0] == 0.0
    np.testing.assert_allclose(errors, np.cumsum(expected) / np.arange(1, known + 1), atol=1e-15)


def test_earlier_ones_alike_are_counted() -> None:
    assert earlier_alike(np.array([2, 0, 2, 2, 1, 0]), 3).tolist() == [0, 0, 1, 2, 0, 1]
    assert powers_of_ten(1000) == [1, 10, 100, 1000]


def test_errors_grow_with_the_number_of_predictions(tmp_path: Path) -> None:
    claims = JointPredictive(quick=True, tell=lambda text: None).run(tmp_path)
    assert claims
    assert not any(claim.failed for claim in claims)


# ---- numbers of states -----------------------------------------------------------------------------------------------


@pytest.fixture
def tiny_music(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Codewords in the place of the music: each step goes up by one, now and then by two."""
    rng = np.random.default_rng(0)
    codes = (rng.integers(256, size=(80, 1)) + np.cumsum(1 + (rng.random((80, 12)) < 0.1), axis=1)) % 256
    (tmp_path / "audio").mkdir()
    words = codes.astype(np.uint8)
    np.savez(tmp_path / "audio" / "music_codewords.npz", train=words[:60], test=words[60:])
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def tiny_journal(tiny_corpus: Path) -> Path:
    """Sentences without tags beside those with them."""
    rng = np.random.default_rng(1)
    (tiny_corpus / "ptb").mkdir()
    with gzip.open(tiny_corpus / "ptb" / "ptb.train.txt.gz", "wt", encoding="utf8") as file:
        for _ in range(60):
            file.write(" ".join(f"word{word}" for word in rng.integers(9, size=6)) + "\n")
    return tiny_corpus


@pytest.mark.parametrize("kind", [StatesFound, AliceChapters, AliceTruncations])
def test_numbers_of_states_are_told_for_every_method(kind: type[Experiment], tmp_path: Path) -> None:
    claims = kind(quick=True, tell=lambda text: None).run(tmp_path)
    assert claims
    heads, *rows = (tmp_path / f"{kind.name}.csv").read_text().splitlines()
    assert {"method", "seed", "states", "processor"} <= set(heads.split(","))
    for name in ("collapsed", f"collapsed{SEARCH}", "direct"):
        assert any(f",{name}," in row for row in rows)
        assert f"| {name} " in (tmp_path / f"{kind.name}.txt").read_text()


def test_music_has_scores_over_time_and_costs_of_updates(tiny_music: Path) -> None:
    assert Music(quick=True, budget=0.05, tell=lambda text: None).run(tiny_music)
    with open(tiny_music / "music.csv", newline="", encoding="utf8") as file:
        rows: list[Row] = list(csv.DictReader(file))
    courses = chosen(rows, part="course")
    assert {row["method"] for row in courses} >= {"SVI", "SCVI", "collapsed", f"direct{SEARCH}"}
    assert all(float(row["score"]) < 0.0 < float(row["learning"]) for row in courses)
    assert all(row["states"] for row in chosen(courses, last="True"))
    assert all(float(row["processor"]) > 0.0 for row in chosen(rows, part="speed"))


def test_hyperparameters_are_compared_by_scores_and_by_tags(tiny_journal: Path) -> None:
    claims = Hyperparameters(quick=True, tell=lambda text: None).run(tiny_journal)
    assert any("helps" in claim.text for claim in claims)
    lines = (tiny_journal / "hyperparameters.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * len(PRIORS)


def test_merges_and_splits_find_the_four_states() -> None:
    methods = batch_methods(Concentrations(1.0, 1.0), 40)
    result = found(SETS[0], methods[f"collapsed{SEARCH}"], 0, "exponential")
    assert result["both"]
    assert result["states"] == 4.0
    assert -0.01 < result["short"] < 0.0


def test_the_book_is_split_as_in_the_paper() -> None:
    book = whole_book()
    assert (len(book.train), len(book.test)) == (537, 126)
    sizes = [[len(part) for part in chapter(number)] for number in range(1, 13)]
    assert sum(map(sum, sizes)) == 663
    assert all(abs(test / (train + test) - 0.19) < 0.02 for train, test in sizes)


def test_with_and_without_search_a_method_has_one_colour() -> None:
    colors = shared_color(["a", f"a{SEARCH}", "b"])
    assert colors["a"] == colors[f"a{SEARCH}"] != colors["b"]


# ---- whether moves happen --------------------------------------------------------------------------------------------


def test_simulated_errors_are_followed_until_no_move_is_in_doubt() -> None:
    rows = list(errors_by_length(2, (50,), 10**6, seed=0))
    assert {row["method"] for row in rows} == {"pairs", "mean_field", "sampling 50"}
    assert sorted({row["length"] for row in rows}) == [10, 100, 1000]
    assert max(row["error"] for row in rows if row["length"] == 1000) < 1e-9
    assert all(0.0 <= row["error"] < 0.5 for row in rows)


def test_all_moves_are_sure_after_some_chains() -> None:
    length = length_until_sure(6, np.random.default_rng(0))
    assert length % 100 == 0
    assert 100 < length < 1000


def test_errors_in_text_run_from_the_corpora_to_the_verdict(tiny_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.occurrence_in_text.CHUNKS", 20)
    monkeypatch.setattr("experiments.occurrence_in_text.CHUNK", 10)
    monkeypatch.setattr("experiments.occurrence_in_text.SENTENCES", 20)
    claims = OccurrenceInText(quick=True, tell=lambda text: None).run(tiny_corpus)
    assert any("WSJ, K = 50" in claim.text for claim in claims)
    assert (tiny_corpus / "occurrence_in_text.png").stat().st_size > 1000
    _, *rows = (tiny_corpus / "occurrence_in_text.csv").read_text().splitlines()
    assert len(rows) == 2 * 2 * 3 * 4


def test_errors_in_text_do_without_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    told: list[str] = []
    corpora = list(OccurrenceInText(quick=True, tell=told.append)._corpora())
    assert [corpus.name for corpus in corpora] == ["Alice"]
    assert "Wall Street Journal" in told[0]


# ---- very large models -----------------------------------------------------------------------------------------------


def test_very_large_models_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    rng = np.random.default_rng(1)
    (tmp_path / "ptb").mkdir()
    for part, n_sentences in (("train", 60), ("valid", 10), ("test", 10)):
        with gzip.open(tmp_path / "ptb" / f"ptb.{part}.txt.gz", "wt", encoding="utf8") as file:
            for _ in range(n_sentences):
                file.write(" ".join(["<unk>", *(f"word{word}" for word in rng.integers(50, size=6))]) + "\n")
    claims = VeryLarge(quick=True, tell=lambda text: None).run(tmp_path)
    assert len(claims) == 5
    with open(tmp_path / "very_large.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["model"], int(row["states"])) for row in rows] == [
        ("Kneser-Ney 5-gram", 0), ("softmax", 32), ("softmax", 128), ("softmax, no state dropout", 128),
        ("low rank", 128), ("LSTM", 0),
    ]  # fmt: skip
    assert len({int(row["parameters"]) > 1000 for row in rows}) == 1
    assert all(1.0 < float(row["valid"]) < 1000.0 for row in rows)


# ---- grammars --------------------------------------------------------------------------------------------------------


def test_the_grammar_runs_from_the_treebanks_to_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    (tmp_path / "treebank").mkdir()
    (tmp_path / "ud-ewt").mkdir()
    words = [("a", "DT", 2), ("dog", "NN", 3), ("sees", "VB", 0), ("a", "DT", 5), ("cat", "NN", 3), (".", ".", 3)]
    few = [("dogs", "NN", 2), ("see", "VB", 0)]
    plain = "\n\n".join("\n".join(f"{w}\t{t}\t{h}" for w, t, h in own) for own in [words, few] * 10)
    (tmp_path / "treebank" / "wsj-sample.dependencies.tsv.gz").write_bytes(gzip.compress(plain.encode()))
    rows = [[(n, *row) for n, row in enumerate(own, 1)] for own in ([words, few] * 10)]
    conllu = "\n\n".join(
        "\n".join(f"{n}\t{w}\t_\t{'PUNCT' if t == '.' else t}\t{t}x\t_\t{h}\t_\t_\t_" for n, w, t, h in own)
        for own in rows
    )
    for part in ("train", "test"):
        (tmp_path / "ud-ewt" / f"en_ewt-ud-{part}.conllu.gz").write_bytes(gzip.compress(conllu.encode()))
    claims = DependencyGrammar(seeds=1, tell=lambda text: None).run(tmp_path)
    assert any("UD English, 16 tags" in claim.text for claim in claims)
    with open(tmp_path / "dmv.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == 1 + 6 * (2 + len(GRAMMARS))
    better = [float(row["directed"]) for row in found if row["algorithm"] == "head is the next word"]
    # of five words the first, second and fourth; both of two, since the last word is the root
    assert better == pytest.approx([100.0 * 5 / 7] * 6)


def test_the_word_grammar_runs_from_the_verbs_to_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    monkeypatch.setattr("experiments.word_grammar.SWEEPS", (20,))
    monkeypatch.setattr("experiments.word_grammar.DRAWS", (4,))
    monkeypatch.setattr("experiments.word_grammar.SPLITS", 2)
    words = [f"{s}-{v}-{m}\tX" for s in ("a", "u") for v in ("bon", "fun", "hamb", "dl") for m in ("a", "ile", "e")]
    (tmp_path / "zulu-verbs").mkdir()
    rows = [f"{word.split(chr(9))[0].replace('-', '')}\t{word}" for word in words]
    (tmp_path / "zulu-verbs" / "zulu-verbs-core2283.tsv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    claims = WordGrammar(seeds=1, tell=lambda text: None).run(tmp_path)
    assert [claim.holds for claim in claims if "accepts every proposal" in claim.text] == [True]
    with open(tmp_path / "word_grammar.csv", newline="") as file:
        rows_ = list(csv.DictReader(file))
    found = {row["algorithm"]: row for row in reversed(rows_)}
    assert len(found) == 7
    assert [row["algorithm"] for row in rows_ if row["seed"] == "1"] == ["CVI"]
    assert float(found["CVI"]["f1"]) > 50.0
    assert boundary_f1([["ab", "c"], ["d", "e"]], [["a", "b", "c"], ["d", "e"]]) == pytest.approx(200.0 * 2 / 5)


def test_stochastic_grammars_run_from_the_corpora_to_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    monkeypatch.setattr("experiments.stochastic_grammars.SYMBOLS", 2)
    for folder in ("ud-ewt", "zulu-verbs"):
        (tmp_path / folder).mkdir()
    line = "1\ta\t_\tDET\tDT\t_\t2\t_\t_\t_\n2\tdog\t_\tNOUN\tNN\t_\t0\t_\t_\t_\n\n"
    for part in ("train", "test"):
        (tmp_path / "ud-ewt" / f"en_ewt-ud-{part}.conllu.gz").write_bytes(gzip.compress((line * 4).encode()))
    verbs = "\n".join(f"{s}{v}a\t{s}-{v}-a" for s in ("a", "u") for v in ("bon", "fun", "hamb", "dl", "thand"))
    (tmp_path / "zulu-verbs" / "zulu-verbs-core2283.tsv.gz").write_bytes(gzip.compress(verbs.encode()))
    sentences_of_tags.cache_clear()
    claims = StochasticGrammars(quick=True, tell=lambda text: None).run(tmp_path)
    sentences_of_tags.cache_clear()
    assert len(claims) == 4
    with open(tmp_path / "stochastic_grammars.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [(row["grammar"], row["passes"]) for row in found[::4]] == [("tags", "1"), ("tags", "5"), ("verbs", "5")]
    assert {row["algorithm"] for row in found} == {"VI", "CVI", "SVI", "SCVI"}
    assert all(1.0 <= float(row["perplexity"]) < 10.0 for row in found if row["grammar"] == "tags")


def test_latent_annotations_run_from_the_treebank_to_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    for name, number in (("TRAINING", 2), ("DEVELOPMENT", 3)):
        monkeypatch.setattr(latent_annotations, name, number)
    latent_annotations.treebank.cache_clear()
    (tmp_path / "treebank").mkdir()
    line = "(S (NP-SBJ-1 (DT a) (NN dog)) (VP (VBZ sees) (NP (-NONE- *) (DT a) (NN cat))) (. .))\n"
    (tmp_path / "treebank" / "wsj-sample.trees.txt.gz").write_bytes(gzip.compress((line * 5).encode()))
    (tmp_path / "treebank" / "wsj-sample.files.tsv").write_text("a\t1\nb\t2\nc\t1\nd\t1\n")
    claims = latent_annotations.LatentAnnotations(quick=True, tell=lambda text: None).run(tmp_path)
    latent_annotations.treebank.cache_clear()
    assert [claim.text.startswith("2 annotations: CVI") for claim in claims[-2:]] == [True, True]
    with open(tmp_path / "latent_annotations.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["algorithm"] for row in found] == ["EM", "EM", "VI", "CVI"]
    assert {float(row["test"]) for row in found} == {100.0}


# ---- word alignment --------------------------------------------------------------------------------------------------


def test_word_alignment_runs_from_the_text_to_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBCHAIN_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    (tmp_path / "hansards").mkdir()
    for name, n_pairs in (("dev37", 5), ("test447", 20), ("train", 80)):
        sentences = [rng.permutation(12)[: rng.integers(1, 7)] for _ in range(n_pairs)]
        for side in "ef":
            text = "".join(" ".join(f"{side}{word}" for word in sentence) + "\n" for sentence in sentences)
            path = tmp_path / "hansards" / f"{name}.{side}"
            path.write_text(text) if name != "train" else Path(f"{path}.xz").write_bytes(lzma.compress(text.encode()))
        gold = [" ".join(f"{i}-{i}" for i in range(len(sentence))) for sentence in sentences]
        (tmp_path / "hansards" / f"{name}.a").write_text("\n".join(gold) + "\n")
    WordAlignment(quick=True, tell=lambda text: None).run(tmp_path)
    with open(tmp_path / "word_alignment.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    ours = [row for row in rows if row["algorithm"] in METHODS]
    assert {row["algorithm"] for row in ours} == set(METHODS)
    assert len(ours) == 4 * len(METHODS)
    assert all(0.0 <= float(row["low"]) <= float(row["aer"]) <= float(row["high"]) <= 100.0 for row in rows)
    best = [float(row["aer"]) for row in ours if row["algorithm"] == "CVI 2, agreement"]
    assert max(best) < 10.0  # every word has one translation, at the same position


def test_links_of_made_up_languages_are_between_their_words() -> None:
    for language, how in LANGUAGES.items():
        corpus, again = made_up(language, 320, 1), made_up(language, 320, 1)
        assert list(corpus.text) == list(again.text)
        assert (corpus.n_dev, corpus.n_gold, len(corpus.text)) == (300, 300, 320)
        linked = forms = 0
        for links, (source, target) in zip(corpus.dev.sure, corpus.text, strict=False):
            assert (links[:, 0] < len(source)).all()
            assert (links[:, 1] < len(target)).all()
            assert all(target[j].startswith("t") for j in links[:, 1])
            forms += sum(target[j].endswith(".0") for j in links[:, 1])
            linked += len(links)
        assert forms / linked == pytest.approx(1.0 / how.n_forms, abs=0.05)


def test_settings_of_word_alignment_are_compared_with_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"default": {}, "iterations (1, 1)": {"iterations": 1}, "same": {"max_jump": 10}, "CVI 1": {}}
    monkeypatch.setattr(alignment_settings, "SETTINGS", settings)
    ideas = {"null": learned_null, "frequency": frequency_prior(1.0)}
    monkeypatch.setattr(alignment_settings, "IDEAS", ideas)
    monkeypatch.setattr(alignment_settings, "SIZES", {"few words": 400, "verb last": 400})
    experiment = AlignmentSettings(seeds=2, tell=lambda text: None)
    experiment.run(tmp_path)
    assert experiment.difference("few words", "same") == (0.0, 0.0, 0.0)
    change, low, high = experiment.difference("few words", "iterations (1, 1)")
    assert change > 0.0
    assert low <= change <= high
    with open(tmp_path / "alignment_settings.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    of = [float(row["aer"]) for row in rows if row["text"] == "few words"]
    assert np.mean(of[1::6]) - np.mean(of[::6]) == pytest.approx(change)


def test_a_learned_probability_of_null_is_the_share_of_null() -> None:
    text = made_up("few words", 300, 1).text
    fitted = learned_null(text)
    table, n_words = fitted.posterior_.translation, len(text.source_tokens) + len(text.target_tokens)
    share = (table.null_source.sum() + table.null_target.sum()) / n_words
    assert fitted.null_probability == pytest.approx(share, rel=0.2)


def test_a_prior_by_frequency_makes_frequent_words_probable() -> None:
    text = ParallelText.from_sentences(["a"] * 5, ["x y y y"] * 5)
    plain = WordAligner(random_state=0, progress=False).fit(text)
    found = [frequency_prior(weight)(text).posterior_.translation for weight in (1e-9, 100.0)]
    np.testing.assert_allclose(found[0].pairs, plain.posterior_.translation.pairs, atol=1e-4)
    np.testing.assert_allclose(found[1].mean().pairs[:, 0], [0.25, 0.75], atol=0.05)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in for the program is a script")
def test_other_aligners_are_run_where_they_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert other_aligners.installed() == []
    program = tmp_path / "fast_align"
    lines = [
        f"#!{sys.executable}",
        "import sys",
        "print(open(sys.argv[2]).read().count('|||'), file=sys.stderr)",
        "print('1-0' if '-r' in sys.argv else '0-0 1-0')",
        "print()",
    ]
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    assert other_aligners.installed() == ["fast_align"]
    found = other_aligners.align("fast_align", ParallelText.from_sentences(["a b", ""], ["x", "y"]))
    assert [pair.tolist() for pair in found.forward] == [[[0, 0], [1, 0]], []]
    assert [pair.tolist() for pair in found.backward] == [[[1, 0]], []]
    assert found.seconds > 0.0
