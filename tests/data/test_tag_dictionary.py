"""Tag dictionaries: which tags words may have."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain import HMM, TagDictionary
from subchain.data import Ambiguity, Evidence, Sequences, Vocabulary, as_sequences, read_conllu, read_tagged
from subchain.data.digest import digest
from subchain.errors import FileFormatError, InputError, SubchainError

CORPORA = Path(os.environ.get("SUBCHAIN_DATA", Path(__file__).parents[3] / "shared" / "data"))
WORDS = [["the", "run"], ["the", "dogs", "run"], ["dogs", "run"]]
TAGS = [["DT", "NN"], ["DT", "NNS", "VB"], [None, "VB"]]
PLAIN = TagDictionary({"the": "DT", "run": ["VB", "NN"]}, tags=["NN", "VB", "DT"])

names = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\r\n"), min_size=1, max_size=3)
tag_names = st.sampled_from(["NN", "VB", "DT", "#"])
entries = st.dictionaries(names, st.dictionaries(tag_names, st.integers(1, 5), min_size=1), max_size=5)
dictionaries = entries.map(lambda pairs: TagDictionary(pairs, tags=["NN", "VB", "DT", "#"]))


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_words_have_their_tags_in_the_order_of_the_states_and_other_words_have_all() -> None:
    assert PLAIN["run"] == ("NN", "VB")
    assert PLAIN["the"] == ("DT",)
    assert PLAIN["walk"] == ("NN", "VB", "DT")
    assert list(PLAIN) == ["the", "run"]
    assert len(PLAIN) == 2
    assert ("the" in PLAIN, "walk" in PLAIN) == (True, False)


def test_a_vocabulary_gets_a_table() -> None:
    legal = PLAIN.legal(Vocabulary(["run", "walk", "the"]))
    assert legal.tolist() == [[True, True, False], [True, True, True], [False, False, True]]


def test_the_symbol_of_unknown_words_may_have_any_tag() -> None:
    dictionary = TagDictionary({"<unk>": "NN", "run": "VB"})
    assert dictionary.legal(Vocabulary(["run", "<unk>"], "<unk>")).tolist() == [[False, True], [True, True]]
    words = Sequences(np.array([0, 1, 1]), vocabulary=Vocabulary(["run", "<unk>"], "<unk>"))
    assert list(TagDictionary.build(words, ["VB", "NN", "NN"])) == ["run"]


# ---- where it comes from ---------------------------------------------------------------------------------------------


def test_it_holds_the_tags_seen_in_a_corpus_and_how_often() -> None:
    dictionary = TagDictionary.build(WORDS, TAGS)
    assert dictionary.tags == as_sequences(TAGS).vocabulary.symbols  # type: ignore[union-attr]
    assert {word: dictionary.counts(word) for word in dictionary} == {
        "the": {"DT": 2},
        "run": {"NN": 1, "VB": 2},
        "dogs": {"NNS": 1},
    }
    assert dictionary.counts("walk") == {}
    assert dictionary == TagDictionary.build(as_sequences(WORDS), as_sequences(TAGS))


def test_a_word_without_a_known_tag_may_have_any() -> None:
    assert "a" not in TagDictionary.build(["a", "b"], [None, "X"])


def test_rare_words_may_have_any_tag() -> None:
    assert set(TagDictionary.build(WORDS, TAGS, min_count=3)) == {"run"}
    assert set(TagDictionary.build(WORDS, TAGS, min_count=2)) == {"the", "run", "dogs"}  # the untagged token counts


def test_rare_is_what_the_training_text_says() -> None:
    training = as_sequences(["dogs", "walk", "dogs", "run"])
    assert set(TagDictionary.build(WORDS, TAGS, counts_from=training)) == {"dogs", "run"}
    assert set(TagDictionary.build(WORDS, TAGS, min_count=2, counts_from=training)) == {"dogs"}
    assert TagDictionary.build(WORDS, TAGS).without_rare(training, 2)["dogs"] == ("NNS",)


@given(dictionaries, st.lists(names, min_size=1), st.integers(1, 3))
def test_leaving_out_rare_words_only_ever_allows_more(
    dictionary: TagDictionary, text: list[str], min_count: int
) -> None:
    freer = dictionary.without_rare(text, min_count)
    vocabulary = Vocabulary(dict.fromkeys(text))
    assert (freer.legal(vocabulary) >= dictionary.legal(vocabulary)).all()
    assert all(text.count(word) >= min_count for word in freer)


@given(dictionaries, dictionaries, st.integers(1, 4))
def test_merging_adds_the_pairs_seen_often_enough(ours: TagDictionary, other: TagDictionary, min_count: int) -> None:
    merged = ours.merge(other, min_count)
    assert merged.tags == ours.tags
    for word in {*ours, *other}:
        added = {tag for tag, count in other.counts(word).items() if count >= min_count}
        assert set(merged.counts(word)) == set(ours.counts(word)) | added
        for tag in added:
            assert merged.counts(word)[tag] == ours.counts(word).get(tag, 0) + other.counts(word)[tag]


@given(dictionaries, dictionaries)
def test_merging_goes_either_way(one: TagDictionary, other: TagDictionary) -> None:
    assert one.merge(other) == other.merge(one)


def test_tags_can_be_chosen_and_put_in_order() -> None:
    assert PLAIN.with_tags(["DT", "VB"]).tags == ("DT", "VB")
    assert PLAIN.with_tags(["DT", "VB"])["run"] == ("VB",)
    assert "run" not in PLAIN.with_tags(["DT"])
    assert PLAIN.with_tags(PLAIN.tags) == PLAIN


# ---- how much it leaves open -----------------------------------------------------------------------------------------


def test_ambiguity_of_a_corpus() -> None:
    found = PLAIN.ambiguity([["the", "run"], ["walk", None]])
    assert found == pytest.approx(Ambiguity(3, (1 + 2 + 3) / 3, 2 / 3, (1 + 1 / 2 + 1 / 3) / 3, 1.0))


def test_gold_tags_that_are_not_legal_cannot_be_chosen() -> None:
    found = PLAIN.ambiguity(["the", "the", "run", "run"], ["DT", "NN", "VB", None])
    assert found == pytest.approx(Ambiguity(3, 4 / 3, 1 / 3, 1 / 2, 2 / 3))


@given(dictionaries, st.lists(names, min_size=1))
def test_ambiguity_agrees_with_the_words_one_by_one(dictionary: TagDictionary, text: list[str]) -> None:
    n_legal = np.array([len(dictionary[word]) for word in text])
    found = dictionary.ambiguity(text)
    assert found == pytest.approx(Ambiguity(len(text), n_legal.mean(), (n_legal > 1).mean(), (1 / n_legal).mean(), 1.0))


# ---- files -----------------------------------------------------------------------------------------------------------


@given(dictionaries)
def test_a_file_brings_back_the_same_dictionary(tmp_path_factory: pytest.TempPathFactory, saved: TagDictionary) -> None:
    path = tmp_path_factory.mktemp("dictionary") / "words.tsv"
    saved.save(path)
    assert TagDictionary.load(path) == saved
    assert os.listdir(path.parent) == ["words.tsv"]


def test_the_file_can_be_read_by_people(tmp_path: Path) -> None:
    PLAIN.save(tmp_path / "words.tsv")
    assert (tmp_path / "words.tsv").read_text() == "tags\tNN\tVB\tDT\nthe\tDT\t1\nrun\tNN\t1\nrun\tVB\t1\n"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PLAIN.save(tmp_path / "x")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        TagDictionary({"a": "X"}).save(tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]
    assert TagDictionary.load(tmp_path / "x") == PLAIN


@pytest.mark.parametrize("entry", [{"a\tb": "X"}, {"a": "X\n"}, {"": "X"}, {"a": ""}])
def test_what_a_table_cannot_hold_is_not_written(tmp_path: Path, entry: dict[str, str]) -> None:
    with pytest.raises(InputError, match="cannot be written to a table"):
        TagDictionary(entry).save(tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "words.tsv"):
        with pytest.raises(InputError, match="cannot write"):
            PLAIN.save(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a tag dictionary"),
        ("the\tDT\t1\n", "is not a tag dictionary"),
        ("tags\tA\tA\n", "is not a tag dictionary"),
        ("tags\tA\nthe\tA\n", "line 2 has 2 fields"),
        ("tags\tA\n\n", "line 2 has 1 fields"),
        ("tags\tA\nthe\tB\t1\n", "line 2 gives 'the' the tag 'B', which the first line does not have"),
        ("tags\tA\nthe\tA\t0\n", "line 2 gives 'the' the count '0'"),
        ("tags\tA\nthe\tA\tx\n", "the count 'x'"),
        ("tags\tA\nthe\tA\t1\nthe\tA\t1\n", "line 3 repeats the tag 'A' of 'the'"),
    ],
)
def test_files_of_another_kind_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        TagDictionary.load(tmp_path / "x")


@given(st.binary(max_size=60), st.sampled_from([b"", b"tags\tA\n"]))
def test_any_bytes_are_a_dictionary_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, head: bytes
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x"
    path.write_bytes(head + content)
    try:
        found = TagDictionary.load(path)
    except SubchainError:
        return
    assert all(set(found[word]) <= set(found.tags) for word in found)


# ---- what it is for --------------------------------------------------------------------------------------------------


def legal_states(data: Sequences, dictionary: TagDictionary, **known: Any) -> list[list[int]]:
    evidence = Evidence.build(data, len(dictionary.tags), allowed=dictionary, **known)
    assert evidence is not None
    weights = evidence.log_weights(np.arange(data.n_observations), data.values).T
    return [np.flatnonzero(row > -np.inf).tolist() for row in weights]


def test_it_is_accepted_as_legal_states() -> None:
    data = as_sequences([["the", "run"], ["walk", None]])
    assert legal_states(data, PLAIN) == [[2], [0, 1], [0, 1, 2], [0, 1, 2]]
    assert legal_states(data, PLAIN, states=[-1, 1, 0, -1]) == [[2], [1], [0], [0, 1, 2]]


@pytest.mark.parametrize("inference", ["em", "vi"])
def test_a_model_stays_with_the_legal_tags_in_training_and_afterwards(inference: str) -> None:
    dictionary = TagDictionary.build(WORDS, TAGS)
    model = HMM(len(dictionary.tags), "categorical", inference=inference, random_state=0)
    model.fit(WORDS, allowed=dictionary)
    model.state_names_ = dictionary.tags
    for sentence, states in zip(WORDS, model.predict(WORDS, allowed=dictionary), strict=True):
        for word, state in zip(sentence, states, strict=True):
            assert model.state_names_[state] in dictionary[word]


def test_what_is_legal_decides_whether_a_run_can_be_resumed() -> None:
    reordered = PLAIN.with_tags(["DT", "NN", "VB"])
    counted = PLAIN.merge(PLAIN)
    assert digest(PLAIN) == digest(copy.deepcopy(PLAIN)) == digest(pickle.loads(pickle.dumps(PLAIN))) == digest(counted)
    assert digest(PLAIN) != digest(reordered)
    assert digest(PLAIN) != digest(PLAIN.without_rare(["the"], 1))


# ---- what does not fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "tags", "message"),
    [
        ({"the": []}, None, "the word 'the' has no legal tag"),
        ({"the": "DTT"}, ["DT"], "unknown tag of 'the': 'DTT'; known are 'DT'. Did you mean 'DT'"),
        ({"the": 0}, None, "the tags of the word 'the' are 0; give the name of a tag"),
        ({"the": [0]}, None, "holds strings, but 0 is of type int"),
        ({"the": {"DT": 0}}, None, "the word 'the' has the tag 'DT' with count 0"),
        ({"the": {"DT": 1.5}}, None, "count 1.5"),
        ({0: "DT"}, None, "holds words, but 0 is of type int"),
        ({}, ["DT", "DT"], "symbol 'DT' occurs more than once"),
        ({}, "DT", "tags is the string 'DT'"),
    ],
)
def test_entries_that_make_no_sense_are_named(given: Any, tags: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TagDictionary(given, tags)


@pytest.mark.parametrize(
    ("words", "tags", "message"),
    [
        ([["a", "b"]], [["X"]], "sequence 0 has 2 words, but 1 tags"),
        ([["a"], ["b"]], [["X"]], "there are 2 sentences of words, but 1 of tags"),
        ([[0, 1]], [["X", "Y"]], "words must be strings, or Sequences of codes with a vocabulary"),
        ([["a", "b"]], [[0, 1]], "tags must be strings"),
        (["a"], Sequences(np.array([3]), vocabulary=Vocabulary("XY")), "tags, sequence 0, position 0 holds the code 3"),
    ],
)
def test_corpora_that_do_not_fit_are_named(words: Any, tags: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TagDictionary.build(words, tags)


def test_thresholds_and_unknown_tags_are_refused() -> None:
    with pytest.raises(InputError, match="min_count must be a whole number of at least 1, not 0"):
        TagDictionary.build(WORDS, TAGS, min_count=0)
    with pytest.raises(InputError, match="unknown tag 'JJ'; known are 'DT', 'NN', 'VB'"):
        PLAIN.merge(TagDictionary({"old": "JJ"}))
    with pytest.raises(InputError, match="unknown tag 'JJ'"):
        PLAIN.ambiguity(["the"], ["JJ"])
    with pytest.raises(InputError, match="there is nothing to count"):
        PLAIN.ambiguity(["the", None], [None, "DT"])


@pytest.mark.parametrize(
    ("data", "n_states", "message"),
    [
        (as_sequences(["the"]), 4, "the tag dictionary has 3 tags, but the model has 4 states"),
        (Sequences(np.array([0])), 3, "the data have no vocabulary"),
        (Sequences(np.array([0.5])), 3, "need one column of integer codes"),
    ],
)
def test_a_dictionary_that_does_not_fit_the_model_or_the_data_is_refused(
    data: Sequences, n_states: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Evidence.build(data, n_states, allowed=PLAIN)


def test_a_label_against_the_dictionary_is_named() -> None:
    with pytest.raises(InputError, match="no state is left at sequence 1, position 0"):
        Evidence.build(as_sequences([["run"], ["the"]]), 3, allowed=PLAIN, states=[0, 1])


# ---- the corpora -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def treebank() -> tuple[Sequences, Sequences]:
    path = CORPORA / "treebank" / "wsj-sample.tagged.tsv.gz"
    if not path.exists():
        pytest.skip(f"there is no {path}; set SUBCHAIN_DATA to the folder that holds treebank/")
    words, tags = read_tagged(path, unknown=None)
    assert tags is not None
    return words, tags


@pytest.mark.parametrize(
    ("min_count", "tags_per_token", "ambiguous", "random_accuracy"),
    [
        (1, 1.68, 36.5, 77.5),
        (2, 7.26, 48.1, 65.7),
        (3, 10.21, 53.2, 59.9),
        (5, 14.39, 60.0, 52.0),
        (10, 19.62, 68.0, 42.4),
    ],
)
def test_ambiguity_of_a_thousand_sentences_of_the_treebank_sample(
    treebank: tuple[Sequences, Sequences],
    min_count: int,
    tags_per_token: float,
    ambiguous: float,
    random_accuracy: float,
) -> None:
    words, tags = treebank
    dictionary = TagDictionary.build(words, tags, min_count, counts_from=words[:1000])
    found = dictionary.ambiguity(words[:1000], tags[:1000])
    assert found.n_tokens == 23_551
    assert found.tags_per_token == pytest.approx(tags_per_token, abs=0.005)
    assert 100.0 * found.ambiguous == pytest.approx(ambiguous, abs=0.05)
    assert 100.0 * found.random_accuracy == pytest.approx(random_accuracy, abs=0.05)
    assert found.coverage == 1.0


def test_the_web_treebank_makes_the_dictionary_as_ambiguous_as_that_of_a_larger_corpus(
    treebank: tuple[Sequences, Sequences],
) -> None:
    if not (CORPORA / "ud-ewt").exists():
        pytest.skip(f"there is no {CORPORA / 'ud-ewt'}; set SUBCHAIN_DATA to the folder that holds ud-ewt/")
    words, tags = treebank
    ours = TagDictionary.build(words, tags)
    web = TagDictionary({}, ours.tags)
    for part in ("train", "dev", "test"):
        text = read_conllu(CORPORA / "ud-ewt" / f"en_ewt-ud-{part}.conllu.gz", tags="xpos", unknown=None)
        web = web.merge(TagDictionary.build(*text).with_tags(ours.tags))
    found = ours.merge(web, min_count=2).ambiguity(words[:1000], tags[:1000])
    assert found.tags_per_token == pytest.approx(2.12, abs=0.005)
    assert 100.0 * found.ambiguous == pytest.approx(51.8, abs=0.05)
    assert 100.0 * found.random_accuracy == pytest.approx(67.5, abs=0.05)
