"""Vocabularies: symbols to codes and back."""

from __future__ import annotations

import json
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain.data import Vocabulary
from subchain.errors import InputError

texts = st.lists(st.text("abcde", min_size=1, max_size=2), max_size=40)


@given(texts)
def test_encoding_and_decoding_give_the_text_back(tokens: list[str]) -> None:
    vocabulary = Vocabulary.build(tokens)
    assert vocabulary.decode(vocabulary.encode(tokens)) == tokens


@given(texts)
def test_codes_are_ranks_by_frequency_then_first_appearance(tokens: list[str]) -> None:
    counts = Counter(tokens)
    expected = sorted(counts, key=lambda symbol: (-counts[symbol], tokens.index(symbol)))
    assert Vocabulary.build(tokens, unknown=None).to_list() == expected
    assert Vocabulary.build(tokens).to_list() == [*expected, "<unk>"]


@given(texts, st.integers(1, 4), st.integers(1, 6))
def test_rare_symbols_and_those_beyond_the_size_are_unknown(tokens: list[str], min_count: int, max_size: int) -> None:
    vocabulary = Vocabulary.build(tokens, min_count=min_count, max_size=max_size)
    counts = Counter(tokens)
    assert len(vocabulary) <= max_size
    assert all(counts[symbol] >= min_count for symbol in vocabulary if symbol != "<unk>")
    decoded = vocabulary.decode(vocabulary.encode(tokens))
    assert decoded == [token if token in vocabulary else "<unk>" for token in tokens]


@given(texts)
def test_a_vocabulary_survives_json_and_pickle(tokens: list[str]) -> None:
    for vocabulary in (Vocabulary.build(tokens), Vocabulary.build(tokens, unknown=None)):
        assert Vocabulary.from_list(json.loads(json.dumps(vocabulary.to_list()))) == vocabulary
        again = pickle.loads(pickle.dumps(vocabulary))
        assert again == vocabulary
        assert hash(again) == hash(vocabulary)


def test_an_unknown_symbol_in_the_text_is_the_unknown_symbol() -> None:
    vocabulary = Vocabulary.build(["<unk>", "<unk>", "a"])
    assert vocabulary.to_list() == ["a", "<unk>"]
    assert vocabulary.unknown == "<unk>"


def test_missing_symbols_pass_through() -> None:
    vocabulary = Vocabulary.build(["a", None, "b"], unknown=None)
    assert vocabulary.symbols == ("a", "b")
    assert vocabulary.encode(["b", None]).tolist() == [1, -1]
    assert vocabulary.decode(np.array([-1, 0])) == [None, "a"]
    assert None not in vocabulary


def test_codes_are_of_type_int32() -> None:
    assert Vocabulary(["a"]).encode(["a"]).dtype == np.int32
    assert Vocabulary(["a"]).encode([]).dtype == np.int32
    assert Vocabulary(["a"]).decode([]) == []


def test_membership_length_and_order() -> None:
    vocabulary = Vocabulary(["b", "a"])
    assert "a" in vocabulary
    assert "c" not in vocabulary
    assert 0 not in vocabulary
    assert len(vocabulary) == 2
    assert list(vocabulary) == ["b", "a"]
    assert vocabulary != Vocabulary(["a", "b"])
    assert vocabulary != ["b", "a"]
    assert repr(vocabulary) == "Vocabulary(2 symbols: 'b', 'a')"
    assert repr(Vocabulary("abcdef")).endswith("'d', ...)")


def test_a_symbol_that_is_not_there_is_named_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="symbol 'hause' is not among the 2 symbols.*nearest known symbol is 'house'"):
        Vocabulary(["house", "tree"]).encode(["tree", "hause"])


@pytest.mark.parametrize("unknown", [None, "<unk>"])
def test_numbers_are_no_symbols(unknown: str | None) -> None:
    with pytest.raises(InputError, match="holds strings, but 3 is of type int"):
        Vocabulary(["a", "<unk>"], unknown).encode(["a", 3])  # type: ignore[list-item]


@pytest.mark.parametrize("tokens", [3, [["a"]], [{}]])
def test_what_is_no_text_is_refused(tokens: object) -> None:
    with pytest.raises(InputError, match="iterable of strings"):
        Vocabulary(["a"]).encode(tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0, 2], "code 2 at position 1 is outside the vocabulary, whose codes run from 0 to 1"),
        ([-2], "code -2 at position 0"),
        ([0.5], "integer codes"),
        (np.zeros((2, 2), int), "one dimension"),
    ],
)
def test_codes_that_mean_nothing_are_refused(codes: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Vocabulary(["a", "b"]).decode(codes)


@pytest.mark.parametrize(
    ("symbols", "unknown", "message"),
    [
        (["a", "b", "a"], None, "symbol 'a' occurs more than once"),
        (["a", 1], None, "1 is of type int"),
        (["a"], "<unk>", "'<unk>', is not among the symbols"),
    ],
)
def test_symbols_that_are_no_alphabet_are_refused(symbols: list[str], unknown: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Vocabulary(symbols, unknown)


@pytest.mark.parametrize("limits", [{"min_count": 0}, {"max_size": 0}])
def test_limits_below_one_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(InputError, match="must be at least 1, but is 0"):
        Vocabulary.build(["a"], **limits)  # type: ignore[arg-type]
