"""Word classes: the exchange algorithm against brute force, what it finds, files, bad input."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from naive_word_classes import class_information, exchanged, merged

from subchain import Vocabulary, as_sequences
from subchain.data import read_word_classes, word_classes
from subchain.errors import FileFormatError, InputError


def random_text(seed: int) -> list[Any]:
    """Sequences of codes, some of them empty, with symbols that repeat, that are missing and that never occur."""
    rng = np.random.default_rng(seed)
    text = [rng.integers(9, size=rng.integers(0, 12)) // rng.integers(1, 3) for _ in range(12)]
    for sequence in text[:3]:
        sequence[rng.random(len(sequence)) < 0.2] = -1
    return [*text, np.array([11, 3, 3, 3])]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("max_iter", [1, 2, 50])
def test_exchanges_are_those_by_brute_force(seed: int, max_iter: int) -> None:
    text = random_text(seed)
    n_classes = 2 + seed % 4
    flat = np.concatenate(text)
    frequencies = np.bincount(flat[flat >= 0], minlength=12)
    order = np.argsort(-frequencies, kind="stable")
    start = np.empty(12, dtype=int)
    start[order] = np.arange(12) % n_classes
    found = word_classes(text, n_classes, max_iter=max_iter)
    assert found.tolist() == exchanged(text, order, start, n_classes, max_iter)
    assert class_information(text, found) >= class_information(text, start) - 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_merges_are_those_by_brute_force(seed: int) -> None:
    text = random_text(seed)
    flat = np.concatenate(text)
    order = np.argsort(-np.bincount(flat[flat >= 0], minlength=12), kind="stable")
    for n_classes in (1, 2 + seed % 4, 11, 12, 15):
        assert word_classes(text, n_classes, "brown").tolist() == merged(text, order, n_classes)


@pytest.mark.parametrize(("method", "least"), [("exchange", 0.97), ("brown", 0.8)])
def test_classes_of_a_generated_text_are_found(method: str, least: float) -> None:
    rng = np.random.default_rng(3)
    truth, transition = np.repeat(np.arange(6), 20), rng.dirichlet(np.full(6, 0.15), size=6)
    text, state = [], 0
    for _ in range(40_000):
        state = rng.choice(6, p=transition[state])
        text.append(state * 20 + int(20 * rng.random() ** 2))
    found = word_classes([np.array(text)], 6, method)
    table = np.zeros((6, 6))
    np.add.at(table, (truth[text], found[text]), 1.0)
    assert table.max(axis=0).sum() / len(text) > least
    assert (word_classes([np.array(text)], 6, method) == found).all()


def test_all_words_in_one_class_or_each_in_its_own() -> None:
    text = random_text(0)
    assert (word_classes(text, 1) == 0).all()
    assert class_information(text, word_classes(text, 12)) == pytest.approx(class_information(text, np.arange(12)))
    assert word_classes([[4]], 3).tolist() == [1, 2, 0, 1, 0]


def test_codes_without_an_occurrence_have_a_class() -> None:
    vocabulary = Vocabulary(["a", "b", "never"])
    assert word_classes(as_sequences([["a", "b", "a"]], vocabulary=vocabulary), 2).shape == (3,)


def test_classes_are_read_from_files_of_both_kinds(tmp_path: Any) -> None:
    vocabulary = Vocabulary(["cat", "the", "runs", "dog"])
    (tmp_path / "mkcls").write_text("the\t12\ncat\t3\nabsent\t5\ndog\t3\n\nruns\t12\n")
    assert read_word_classes(tmp_path / "mkcls", vocabulary).tolist() == [1, 0, 0, 1]
    paths = io.StringIO("0010\tthe\t17\n11\tcat\t2\n11\tdog\t1\n")
    assert read_word_classes(paths, vocabulary).tolist() == [1, 0, 2, 1]


def test_bad_input_is_refused() -> None:
    for message, given in (
        ("method", {"method": "guess"}),
        ("n_classes", {"n_classes": 0}),
        ("max_iter", {"max_iter": 1.5}),
        ("sequences of symbols", {"x": [[0.5, 1.5]]}),
        ("sequences of symbols", {"x": np.zeros((4, 2), dtype=int)}),
    ):
        with pytest.raises(InputError, match=message):
            word_classes(**{"x": [[0, 1]], "n_classes": 2} | given)  # type: ignore[arg-type]
    vocabulary = Vocabulary(["a"])
    for message, text in (("line 2", "a\t1\na b 2\n"), ("a second class", "a\t1\na\t2\n"), ("line 1", "\t1\n")):
        with pytest.raises(FileFormatError, match=message):
            read_word_classes(io.StringIO(text), vocabulary)
    with pytest.raises(InputError, match="no word classes"):
        read_word_classes(io.StringIO("\n"), vocabulary)
