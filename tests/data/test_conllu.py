"""Treebanks in the CoNLL-U format."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain.data import Sequences, Vocabulary, read_conllu
from subchain.errors import FileFormatError, InputError

CORPORA = Path(os.environ.get("SUBCHAIN_DATA", Path(__file__).parents[3] / "shared" / "data"))


def word(number: str, form: str, lemma: str = "_", upos: str = "_", xpos: str = "_") -> str:
    return "\t".join([number, form, lemma, upos, xpos, *"_____"])


TREEBANK = "\n".join(
    [
        "# newdoc",
        "# sent_id = s1",
        "# text = Don't run",
        word("1-2", "Don't"),
        word("1", "Do", "do", "AUX", "VB"),
        word("2", "n't", "not", "PART"),
        word("2.1", "ghost", "ghost", "NOUN", "NN"),
        word("3", "run", "run", "VERB", "VB"),
        "",
        "# sent_id = s2",
        word("1", "run", "run", "NOUN", "NN"),
    ]
)


def decoded(data: Sequences | None) -> list[list[str | None]]:
    assert data is not None
    assert data.vocabulary is not None
    return [data.vocabulary.decode(piece) for piece in data]


def test_words_and_tags_are_read_and_other_lines_are_skipped() -> None:
    text = read_conllu(io.StringIO(TREEBANK))
    assert decoded(text.words) == [["Do", "n't", "run"], ["run"]]
    assert decoded(text.tags) == [["AUX", "PART", "VERB"], ["NOUN"]]
    assert text.words.names == ("s1", "s2")
    assert text.tags is not None
    assert text.tags.names == ("s1", "s2")
    assert text.tags.vocabulary == Vocabulary(["AUX", "PART", "VERB", "NOUN"])


def test_other_fields_can_be_read_and_a_missing_tag_is_missing() -> None:
    words, tags = read_conllu(io.StringIO(TREEBANK), column="lemma", tags="xpos", lower=True)
    assert decoded(words) == [["do", "not", "run"], ["run"]]
    assert decoded(tags) == [["VB", None, "VB"], ["NN"]]
    assert read_conllu(io.StringIO(TREEBANK), tags=None).tags is None


def test_an_underscore_is_a_word() -> None:
    assert decoded(read_conllu(io.StringIO(word("1", "_", upos="SYM"))).words) == [["_"]]


def test_names_are_kept_only_if_all_sentences_have_one() -> None:
    both = TREEBANK.replace("# sent_id = s1\n", "")
    assert read_conllu(io.StringIO(both)).words.names is None


def test_a_test_part_is_coded_with_the_vocabularies_of_the_training_part() -> None:
    train = read_conllu(io.StringIO(TREEBANK), min_count=2)
    assert train.words.vocabulary == Vocabulary(["run", "<unk>"], "<unk>")
    assert train.tags is not None
    test = read_conllu(
        io.StringIO(word("1", "dogs", upos="NOUN")),
        vocabulary=train.words.vocabulary,
        tag_vocabulary=train.tags.vocabulary,
    )
    assert decoded(test.words) == [["<unk>"]]
    assert test.tags is not None
    assert test.tags.values.tolist() == [3]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["# x", "1\tdog"], "line 2 has 2 of the 10 fields"),
        ([word("1", "a"), word("x", "b")], "line 2 begins with 'x'; a word begins with its number"),
        ([word("1", "a"), word("1", "b")], "line 2 is word 1 where word 2 was expected; a blank line may be missing"),
        ([word("2", "a")], "line 1 is word 2 where word 1 was expected"),
        ([word("1", "a") + "\t_"], "line 1 has 11 of the 10 fields"),
    ],
)
def test_malformed_lines_are_named(lines: list[str], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_conllu(io.StringIO("\n".join(lines)))


@pytest.mark.parametrize("options", [{"column": "forms"}, {"tags": "upo"}, {"column": "id"}])
def test_misspelt_fields_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="unknown field of CoNLL-U"):
        read_conllu(io.StringIO(TREEBANK), **options)


@pytest.mark.parametrize("text", ["", "# only a comment\n\n", word("1-2", "don't")])
def test_a_treebank_without_words_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="holds no words"):
        read_conllu(io.StringIO(text))


tokens = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp", "Zs"]), min_size=1, max_size=4)


@given(st.lists(st.lists(st.tuples(tokens, tokens.filter(lambda t: t != "_")), min_size=1, max_size=5), min_size=1))
def test_what_is_written_is_read(sentences: list[list[tuple[str, str]]]) -> None:
    blocks = ["\n".join(word(str(i + 1), form, upos=tag) for i, (form, tag) in enumerate(s)) for s in sentences]
    text = read_conllu(io.BytesIO("\n\n".join(blocks).encode()))
    assert decoded(text.words) == [[form for form, _ in sentence] for sentence in sentences]
    assert decoded(text.tags) == [[tag for _, tag in sentence] for sentence in sentences]


@pytest.mark.skipif(not (CORPORA / "ud-ewt").exists(), reason="the corpora are not here")
def test_the_english_web_treebank_has_its_published_size() -> None:
    words, tags = read_conllu(CORPORA / "ud-ewt" / "en_ewt-ud-dev.conllu.gz", unknown=None)
    assert (words.n_sequences, words.n_observations) == (2_001, 25_147)
    assert words.vocabulary is not None
    assert len(words.vocabulary) == 5_494
    assert tags is not None
    assert tags.vocabulary is not None
    assert len(tags.vocabulary) == 17
    assert words.names is not None
