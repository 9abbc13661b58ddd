"""Tagged corpora of one word and one tag a line."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain import HMM
from subchain.data import Evidence, Sequences, Vocabulary, read_tagged
from subchain.errors import FileFormatError, InputError, SubchainError

CORPORA = Path(os.environ.get("SUBCHAIN_DATA", Path(__file__).parents[3] / "shared" / "data"))
CORPUS = "Rates\tNNS\nfell\tVBD\n#\t#\n3\t\n\nRates\tNNS\n.\t.\n"


def decoded(data: Sequences | None) -> list[list[str | None]]:
    assert data is not None
    assert data.vocabulary is not None
    return [data.vocabulary.decode(piece) for piece in data]


def test_words_and_tags_are_read_and_a_hash_sign_is_a_word() -> None:
    text = read_tagged(io.StringIO(CORPUS))
    assert decoded(text.words) == [["Rates", "fell", "#", "3"], ["Rates", "."]]
    assert decoded(text.tags) == [["NNS", "VBD", "#", None], ["NNS", "."]]
    assert text.words.vocabulary is not None
    assert text.words.vocabulary.symbols == ("Rates", "fell", "#", "3", ".", "<unk>")
    assert text.tags is not None
    assert text.tags.vocabulary == Vocabulary(["NNS", "VBD", "#", "."])


def test_blank_lines_at_either_end_and_in_a_row_make_no_sentence() -> None:
    assert decoded(read_tagged(io.StringIO("\n \n" + CORPUS + "\n\n\n")).words) == decoded(
        read_tagged(io.StringIO(CORPUS)).words
    )


def test_compressed_files_are_unpacked_and_words_folded(tmp_path: Path) -> None:
    path = tmp_path / "corpus.tsv.gz"
    path.write_bytes(gzip.compress(CORPUS.encode()))
    assert decoded(read_tagged(path, lower=True).words)[1] == ["rates", "."]


def test_a_test_part_is_coded_with_the_vocabularies_of_the_training_part() -> None:
    train = read_tagged(io.StringIO(CORPUS), min_count=2)
    assert train.words.vocabulary == Vocabulary(["Rates", "<unk>"], "<unk>")
    assert train.tags is not None
    words, tags = read_tagged(
        io.StringIO("Prices\tNNS\nfell\tVBD\n"),
        vocabulary=train.words.vocabulary,
        tag_vocabulary=train.tags.vocabulary,
    )
    assert decoded(words) == [["<unk>", "<unk>"]]
    assert tags is not None
    assert tags.values.tolist() == [0, 1]
    with pytest.raises(InputError, match="symbol 'VB' is not among"):
        read_tagged(io.StringIO("fall\tVB\n"), tag_vocabulary=train.tags.vocabulary)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tX\nb\n", "line 2 is 'b'; every line needs a word, a tab and a tag"),
        ("a\tX\t2\n", "line 1 is 'a.*every line needs a word"),
        ("\n\tX\n", "line 2 is .*every line needs a word"),
        ("\t\n", "line 1 is .*every line needs a word"),
    ],
)
def test_malformed_lines_are_named(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_tagged(io.StringIO(text))


def test_a_corpus_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="holds no words"):
        read_tagged(io.StringIO("\n\n"))


tokens = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp", "Zs"]), min_size=1, max_size=4)
sentences = st.lists(st.lists(st.tuples(tokens, tokens | st.just("")), min_size=1, max_size=5), min_size=1)


@given(sentences)
def test_what_is_written_is_read(written: list[list[tuple[str, str]]]) -> None:
    text = "\n\n".join("\n".join("\t".join(token) for token in sentence) for sentence in written)
    words, tags = read_tagged(io.BytesIO(b"\xef\xbb\xbf" + text.encode()))
    assert decoded(words) == [[word for word, _ in sentence] for sentence in written]
    assert decoded(tags) == [[tag or None for _, tag in sentence] for sentence in written]


@given(st.binary(max_size=80))
def test_any_bytes_are_a_corpus_or_an_error_of_ours(content: bytes) -> None:
    try:
        words, tags = read_tagged(io.BytesIO(content))
    except SubchainError:
        return
    assert tags is not None
    assert np.array_equal(words.offsets, tags.offsets)


def test_tags_are_known_states() -> None:
    words, tags = read_tagged(io.StringIO(CORPUS))
    evidence = Evidence.build(words, n_states=4, states=tags)
    assert evidence is not None
    weights = evidence.log_weights(np.arange(6), words.values).T
    assert [np.flatnonzero(row == 0.0).tolist() for row in weights] == [[0], [1], [2], [0, 1, 2, 3], [0], [3]]


@pytest.mark.parametrize("inference", ["em", "vi"])
def test_a_model_learns_from_partial_labels(inference: str) -> None:
    words, tags = read_tagged(io.StringIO("a\tX\nb\tY\na\t\nb\t\n\nb\tY\na\tX\n\na\t\nb\t\n"), unknown=None)
    assert tags is not None
    model = HMM(2, "categorical", inference=inference, random_state=0).fit(words, states=tags)
    found = np.concatenate(model.predict(words))
    assert np.array_equal(found[tags.values >= 0], tags.values[tags.values >= 0])
    assert np.array_equal(found, words.values)  # the labels say which state is which


def test_a_tag_beyond_the_states_is_named() -> None:
    words, tags = read_tagged(io.StringIO(CORPUS))
    with pytest.raises(InputError, match="the state given at sequence 1, position 1 is 3; states run from 0 to 2"):
        HMM(3, "categorical").fit(words, states=tags)


@pytest.mark.skipif(not (CORPORA / "treebank").exists(), reason="the treebank sample is not here; set SUBCHAIN_DATA")
def test_the_treebank_sample_has_its_published_size() -> None:
    words, tags = read_tagged(CORPORA / "treebank" / "wsj-sample.tagged.tsv.gz", unknown=None)
    assert (words.n_sequences, words.n_observations, words.lengths.max()) == (3_914, 94_084, 249)
    assert words.vocabulary is not None
    assert len(words.vocabulary) == 11_968
    assert tags is not None
    assert tags.vocabulary is not None
    assert len(tags.vocabulary) == 45
    assert (tags.values >= 0).all()
    assert "#" in words.vocabulary
    assert "#" in tags.vocabulary
