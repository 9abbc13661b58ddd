"""The page on a word aligner: what it holds, gold links and scores, bad input, and a browser without errors."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM, report
from subchain.alignment import GoldLinks, Links, ParallelText, WordAligner, alignment_report
from subchain.errors import NotFittedError, SubchainError

SOURCE = ["the house", "the <b>book</b>", "", "a book", "a house", "the the"] * 6
TARGET = ["das Haus", "das Buch", "", "ein Buch", "ein Haus", "das"] * 6


@pytest.fixture(scope="module")
def aligner() -> WordAligner:
    return WordAligner(progress=False, random_state=0).fit(SOURCE, TARGET)


def page(aligner: WordAligner, folder: Path, x: Any = None, **settings: Any) -> tuple[str, dict[str, Any]]:
    report(aligner, x, folder / "report.html", **settings)
    text = (folder / "report.html").read_text(encoding="utf8")
    found = re.search(r'<script type="application/json" id="contents">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return text, json.loads(found[1])


def test_matrices_hold_the_posteriors_and_links_of_their_pairs(aligner: WordAligner, tmp_path: Path) -> None:
    _, contents = page(aligner, tmp_path, pairs=[0, 5])
    for shown, pair in zip(contents["pairs"], (0, 5), strict=True):
        assert shown["number"] == pair + 1
        assert (shown["source"], shown["target"]) == (SOURCE[pair].split(), TARGET[pair].split())
        assert shown["links"] == aligner.align()[pair].tolist()
        for direction in ("forward", "backward"):
            stored = np.frombuffer(base64.b64decode(shown[direction]), dtype=np.uint8) / contents["steps"]
            table = stored.reshape(len(shown["target"]), len(shown["source"])).T
            np.testing.assert_allclose(
                table, aligner.posterior(direction=direction)[pair], atol=0.5 / contents["steps"]
            )


def test_pairs_without_words_are_not_chosen_by_themselves(aligner: WordAligner, tmp_path: Path) -> None:
    _, contents = page(aligner, tmp_path)
    assert len(contents["pairs"]) == 30
    assert all(shown["source"] and shown["target"] for shown in contents["pairs"])


def test_the_lexicon_is_that_of_the_aligner(aligner: WordAligner, tmp_path: Path) -> None:
    _, contents = page(aligner, tmp_path)
    assert [entry[:2] for entry in contents["lexicon"]] == [[e["source"], e["target"]] for e in aligner.lexicon_]


def test_words_without_a_link_are_counted(tmp_path: Path) -> None:
    aligner = WordAligner(symmetrize="intersection", progress=False, random_state=0).fit(SOURCE, TARGET)
    text, _ = page(aligner, tmp_path)
    free = 0
    for links, source in zip(aligner.align(), SOURCE, strict=True):
        free += sum(word == "the" and i not in links[:, 0] for i, word in enumerate(source.split()))
    assert free  # das of the last pairs has one counterpart
    assert f'<th scope="row" dir="auto">the</th><td>{free}</td><td>24</td>' in text


def test_gold_links_are_shown_and_give_scores(aligner: WordAligner, tmp_path: Path) -> None:
    sure = Links.from_pairs([[(0, 0), (1, 1)], [(0, 0)]])
    gold = GoldLinks(sure, Links.from_pairs([[(0, 0), (1, 1)], [(0, 0), (1, 1)]]))
    text, contents = page(aligner, tmp_path, gold=gold)
    assert [shown["sure"] for shown in contents["pairs"]] == [[[0, 0], [1, 1]], [[0, 0]]]
    assert contents["pairs"][1]["possible"] == [[0, 0], [1, 1]]
    found = alignment_report(aligner.links().between(0, 2), *gold)
    assert f"<td>{100 * found.scores.aer:.2f}</td>" in text


def test_words_cannot_become_markup(aligner: WordAligner, tmp_path: Path) -> None:
    text, contents = page(aligner, tmp_path)
    assert "<b>book" not in text
    assert any("<b>book</b>" in shown["source"] for shown in contents["pairs"])


def test_another_text_is_reported_without_refitting(aligner: WordAligner, tmp_path: Path) -> None:
    new = ["a book", "the house"], ["ein Buch", "das Haus"]
    for x in (new, ParallelText.from_sentences(*new)):
        _, contents = page(aligner, tmp_path, x)
        assert [shown["links"] for shown in contents["pairs"]] == [[[0, 0], [1, 1]]] * 2


def test_words_of_another_text_are_those_that_occur_in_it(aligner: WordAligner, tmp_path: Path) -> None:
    text, _ = page(aligner, tmp_path, (["the zz"], ["das"]))
    assert "2 different words<" in text
    assert "1 different word<" in text
    assert "This page has 1 sentence pair." in text


def test_sentences_and_their_list_keep_the_direction_of_their_script(aligner: WordAligner, tmp_path: Path) -> None:
    text, _ = page(aligner, tmp_path)
    assert 'line.dir = "auto"' in text
    assert 'option.dir = "auto"' in text


def test_bad_input_is_refused_and_nothing_is_written(aligner: WordAligner, tmp_path: Path) -> None:
    inside, outside = Links.from_pairs([[(0, 0)]]), Links.from_pairs([[(7, 0)]])
    refused: list[tuple[str, Any, dict[str, Any]]] = [
        ("36 pairs", aligner, {"gold": GoldLinks(*[Links.from_pairs([[]] * 37)] * 2)}),
        ("links source position 7", aligner, {"gold": GoldLinks(outside, outside)}),
        ("sentence pairs are 0 to 35", aligner, {"pairs": [36]}),
        ("pairs has 0", aligner, {"pairs": []}),
        ("pairs must be", aligner, {"pairs": 3}),
        ("gold must be", aligner, {"gold": [(0, 0)]}),
        ("not for aligners", aligner, {"step": 2}),
        ("for word aligners", HMM(2), {"gold": GoldLinks(inside, inside)}),
    ]
    for message, model, settings in refused:
        with pytest.raises(SubchainError, match=message):
            report(model, None, tmp_path / "page.html", **settings)
    with pytest.raises(NotFittedError):
        report(WordAligner(), None, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
