"""as_sequences: whatever a user calls data comes in through one door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from subchain.data import Sequences, Vocabulary, as_sequences, read_alike
from subchain.errors import FileFormatError, InputError

kinds = st.sampled_from([np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64])


def as_lists(data: Sequences) -> list[Any]:
    return [piece.tolist() for piece in data]


@given(
    kinds.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=1, max_dims=2), elements={"min_value": 0}))
)
def test_an_array_is_one_sequence_and_is_not_copied(x: np.ndarray) -> None:
    data = as_sequences(np.nan_to_num(x, posinf=0))
    assert data.n_sequences == 1
    assert data.values.dtype == x.dtype
    clean = np.nan_to_num(x, posinf=0)
    assert as_sequences(clean).values is clean


@pytest.mark.parametrize("change", [np.asfortranarray, lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x.T])
def test_the_layout_in_memory_does_not_matter(change: Any) -> None:
    x = change(np.arange(35.0).reshape(7, 5))
    data = as_sequences(x)
    assert data.values.flags.c_contiguous
    assert (data.values == x).all()


def test_sequences_come_back_as_they_are() -> None:
    data = Sequences(np.arange(3))
    assert as_sequences(data) is data


@given(st.lists(st.lists(st.integers(-1, 5), max_size=5), min_size=1, max_size=7).filter(any))
def test_all_forms_of_the_same_sequences_agree(pieces: list[list[int]]) -> None:
    flat = np.array([value for piece in pieces for value in piece])
    lengths = [len(piece) for piece in pieces]
    forms = [
        as_sequences(pieces),
        as_sequences([np.array(piece, dtype=np.int64) for piece in pieces]),
        as_sequences((flat, lengths)),
        as_sequences((flat, np.array(lengths, dtype=np.uint8))),
        as_sequences(flat, lengths=lengths),
        as_sequences(flat.tolist(), lengths=lengths),
    ]
    for data in forms:
        assert as_lists(data) == pieces
        assert data.values.dtype.kind == "i"


def test_a_dictionary_is_sequences_with_names() -> None:
    data = as_sequences({"GM12878": np.zeros((3, 2)), "K562": [[1.0, 2.0]]}, columns=["a", "b"])
    assert data.names == ("GM12878", "K562")
    assert data.columns == ("a", "b")
    assert as_lists(data) == [[[0.0, 0.0]] * 3, [[1.0, 2.0]]]
    words = as_sequences({1: ["sun", "rain"], 2: ["sun"]})
    assert words.names == (1, 2)
    assert words.vocabulary is not None
    assert words.vocabulary.to_list()[0] == "sun"
    x = np.arange(3)
    assert as_sequences({"only": x}).values is x


def test_lists_and_flat_arrays_can_be_given_names() -> None:
    assert as_sequences([[1], [2, 3]], names=["a", "b"]).names == ("a", "b")
    assert as_sequences((np.arange(3), [1, 2]), names=("a", "b")).names == ("a", "b")
    assert as_sequences(np.arange(3), names="chr1").names == ("chr1",)


@pytest.mark.parametrize(
    ("x", "extra", "message"),
    [
        ([[1], [2]], {"names": ["a"]}, "one name is needed for each of 2 sequences, but there are 1"),
        ([[1], [2]], {"names": "ab"}, "one name is needed for each of 2 sequences, but there are 1"),
        ({"a": [1]}, {"names": ["a"]}, "lengths and names cannot be given with it"),
        ({"a": [1, 2]}, {"lengths": [1, 1]}, "lengths and names cannot be given with it"),
        (Sequences(np.arange(2), names=["a"]), {"names": ["b"]}, "have names already"),
        ({("a", 1): [1]}, {}, "cannot be the name of a sequence"),
        ({"a": "x.npy"}, {}, r"x\['a'\] is 'x.npy', but the values of a dictionary must be sequences"),
        ({"a": [1], "b": [[1, 2]]}, {}, "sequence 1 has 2 columns"),
        ({}, {}, "the data hold no observations"),
    ],
)
def test_names_that_do_not_fit_are_refused(x: object, extra: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_sequences(x, **extra)


def test_empty_sequences_have_no_say_in_shape_and_type() -> None:
    data = as_sequences([[], np.zeros((2, 3), dtype=np.float32), np.empty(0, dtype=np.int64), np.empty((0, 7))])
    assert data.lengths.tolist() == [0, 2, 0, 0]
    assert data.values.dtype == np.float32
    assert as_sequences([[], [1, 2]]).values.dtype.kind == "i"


def test_a_single_filled_piece_is_not_copied() -> None:
    x = np.arange(5)
    assert as_sequences([x]).values is x
    assert as_sequences([[], x]).values is x


def test_a_list_of_numbers_is_one_sequence_and_a_list_of_lists_is_several() -> None:
    assert as_lists(as_sequences([1, 2, 3])) == [[1, 2, 3]]
    assert as_lists(as_sequences([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert as_sequences([[[1, 2], [3, 4]]]).values.shape == (2, 2)
    assert as_lists(as_sequences((0.5, np.float32(1.5)))) == [[0.5, 1.5]]


def test_integers_and_fractions_in_one_list_become_fractions() -> None:
    assert as_lists(as_sequences([[1, 2], [0.5]])) == [[1.0, 2.0], [0.5]]


def test_integers_stay_integers_whatever_their_widths() -> None:
    data = as_sequences([np.array([2**40], dtype=np.uint64), np.array([-1])])
    assert data.values.dtype == np.int64
    assert data.values.tolist() == [2**40, -1]
    with pytest.raises(InputError, match="sequence 0 holds the integer 9223372036854775808"):
        as_sequences([np.array([2**63], dtype=np.uint64), np.array([-1])])


def test_a_tuple_of_two_is_data_and_lengths_if_its_second_item_is_whole_numbers() -> None:
    zeros_and_ones = np.array([0, 1, 1, 0])
    assert as_sequences((zeros_and_ones, np.array([3, 1]))).lengths.tolist() == [3, 1]
    assert as_sequences([zeros_and_ones, np.array([3, 1])]).lengths.tolist() == [4, 2]
    assert as_sequences((np.zeros(3), np.ones(3))).lengths.tolist() == [3, 3]
    assert as_sequences((["a", "b", "c"], [1, 2])).lengths.tolist() == [1, 2]


@pytest.mark.parametrize("x", [np.zeros(5), np.zeros(5, int), np.zeros((5, 2)), np.zeros((5, 2), int)])
def test_lengths_that_do_not_add_up_are_refused_with_both_numbers(x: np.ndarray) -> None:
    with pytest.raises(InputError, match="the lengths add up to 4, but there are 5 observations"):
        as_sequences((x, [2, 2]))
    with pytest.raises(InputError, match="the lengths add up to 4, but there are 5 observations"):
        as_sequences(x, lengths=[2, 2])


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([-1, 6], "the length of sequence 0 is -1"),
        ([2.5, 2.5], "a flat array of integers, not float64"),
        ([[5]], "a flat array"),
        (5, "a flat array"),
    ],
)
def test_lengths_of_the_wrong_kind_are_refused(lengths: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_sequences(np.zeros(5), lengths=lengths)  # type: ignore[arg-type]


def test_lengths_cannot_divide_what_is_divided() -> None:
    with pytest.raises(InputError, match="already divided into 2 sequences"):
        as_sequences([[1], [2]], lengths=[1, 1])


@pytest.mark.parametrize(
    ("x", "expected", "dtype"),
    [
        (np.ma.masked_array([1, 2], [False, True], dtype=np.int32), [1, np.nan], np.float64),
        (np.ma.masked_array([250, 2], [False, True], dtype=np.uint8), [250, np.nan], np.float64),
        (np.ma.masked_array([7, 2], [False, True], dtype=np.uint64), [7, np.nan], np.float64),
        (np.ma.masked_array([True, True], [False, True]), [1, np.nan], np.float64),
        (np.ma.masked_array([1.5, 2], [False, True], dtype=np.float32), [1.5, np.nan], np.float32),
        (np.ma.masked_array([1, 2], [False, False], dtype=np.uint8), [1, 2], np.uint8),
        ([1, None], [1, np.nan], np.float64),
        ([None, 0.5], [np.nan, 0.5], np.float64),
    ],
)
def test_masked_entries_become_missing(x: Any, expected: list[float], dtype: type) -> None:
    values = as_sequences(x).values
    assert values.dtype == dtype
    assert np.array_equal(values, expected, equal_nan=values.dtype.kind == "f")
    assert not isinstance(values, np.ma.MaskedArray)


def test_masked_entries_inside_a_list_become_missing() -> None:
    data = as_sequences([np.ma.masked_array([1, 2], [False, True]), np.array([3])])
    assert np.array_equal(data.values, [1, np.nan, 3], equal_nan=True)


def test_booleans_become_zero_and_one() -> None:
    assert as_lists(as_sequences([[True, False], np.array([True])])) == [[1, 0], [1]]


def test_strings_become_codes_with_a_vocabulary() -> None:
    for x in ([["sun", "rain"], ["sun", None]], [np.array(["sun", "rain"]), ["sun", None]]):
        data = as_sequences(x)
        assert as_lists(data) == [[0, 1], [0, -1]]
        assert data.vocabulary == Vocabulary(["sun", "rain"])
    assert as_sequences(["b", "a", "b"]).n_sequences == 1
    assert as_lists(as_sequences([["a"], [], np.empty(0)])) == [[0], [], []]


def test_strings_are_coded_with_the_vocabulary_of_the_training_data() -> None:
    vocabulary = Vocabulary(["rain", "sun", "<unk>"], "<unk>")
    assert as_lists(as_sequences([["sun", "snow"]], vocabulary=vocabulary)) == [[1, 2]]
    with pytest.raises(InputError, match="symbol 'snow'"):
        as_sequences(["snow"], vocabulary=Vocabulary(["sun"]))
    recoded = as_sequences(as_sequences(["sun", "sun", "rain"]), vocabulary=vocabulary)
    assert as_lists(recoded) == [[1, 1, 0]]
    assert as_sequences(np.array([1, 0]), vocabulary=vocabulary).vocabulary == vocabulary


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, 3, 4)), r"three dimensions, \(2, 3, 4\).*give list\(x\)"),
        (np.zeros((1, 1, 1, 1)), r"x has the shape \(1, 1, 1, 1\)"),
        (np.array(3.0), r"x has the shape \(\)"),
        (np.array([1, "a", None], dtype=object), r"type object.*give list\(x\)"),
        (np.zeros(3, complex), "complex128; observations may be integers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), r"datetime64\[D\]"),
        (np.array([b"a"]), r"type \|S1"),
        (np.array([["a"]]), "Give strings as a list, a flat array"),
        (np.zeros(3, [("a", int)]), "observations may be integers"),
        (
            [np.zeros(3), np.zeros((3, 2))],
            r"sequence 1 has 2 columns \(shape \(3, 2\)\), but sequence 0 has one number",
        ),
        ([[], np.zeros((3, 2)), np.zeros((3, 4))], "sequence 2 has 4 columns .*, but sequence 1 has 2 columns"),
        ([[[1, 2], [3]]], "sequence 0 cannot be turned into an array"),
        ([[1, [2]]], "sequence 0 is not a list of single numbers"),
        ([[1], ["a"]], r"sequence 0 holds numbers \(int64\), but other sequences hold strings"),
        (["a", 1], "x, position 1 holds 1, but other positions hold strings"),
        ([[1, 2], None], "sequence 1 is of type NoneType"),
        ([np.zeros(2), {}], "sequence 1 is of type dict"),
        ({"a": 1}, r"x\['a'\] is 1, but the values of a dictionary must be sequences"),
        ({"a": {}}, "sequence 0 is of type dict; give an array"),
        (None, "x is of type NoneType"),
        ((i for i in range(3)), "x is of type generator"),
        ([1j], "complex128"),
        ([2**70], "type object"),
        ([b"a"], r"\|S1"),
        (np.zeros((3, 0)), "no columns"),
    ],
)
def test_what_cannot_be_observed_is_refused_by_name(x: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_sequences(x)


@pytest.mark.parametrize("x", [[], (), np.empty(0), np.empty((0, 3)), [[], []], [np.empty((0, 2))]])
def test_data_without_observations_are_refused(x: object) -> None:
    with pytest.raises(InputError, match="the data hold no observations"):
        as_sequences(x)


def test_infinite_values_are_named_by_sequence_and_position() -> None:
    with pytest.raises(InputError, match="^sequence 1, position 2 holds inf"):
        as_sequences([[0.0, 1.0], [0.0, 1.0, np.inf]])
    with pytest.raises(InputError, match="^sequence 0, position 1, column 1 holds -inf"):
        as_sequences(np.array([[0, 1], [2, -np.inf]]))


def test_columns_of_arrays_are_named() -> None:
    assert as_sequences(np.zeros((3, 2)), columns=["a", "b"]).columns == ("a", "b")
    assert as_sequences([np.zeros(3)], columns="a").columns == ("a",)
    with pytest.raises(InputError, match="each of 2 columns"):
        as_sequences(np.zeros((3, 2)), columns=["a"])
    with pytest.raises(InputError, match="cannot be given with Sequences"):
        as_sequences(Sequences(np.zeros(3)), columns=["a"])


def test_arrays_have_no_column_of_sequence_names() -> None:
    with pytest.raises(InputError, match="sequence='id' names a column of a table, but x is of type ndarray"):
        as_sequences(np.zeros(3), sequence="id")


def test_uncommon_numbers_are_converted() -> None:
    assert as_sequences(np.arange(3, dtype=">i4")).values.dtype == np.int32
    assert as_sequences(np.arange(3, dtype=np.longdouble)).values.dtype == np.float64


def test_anything_that_can_be_an_array_is_one() -> None:
    class Wrapped:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.arange(3)

    class Broken:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise RuntimeError("not on this device")

    assert as_lists(as_sequences(Wrapped())) == [[0, 1, 2]]
    assert as_lists(as_sequences([Wrapped(), [4]])) == [[0, 1, 2], [4]]
    with pytest.raises(InputError, match="not on this device"):
        as_sequences(Broken())


@pytest.mark.parametrize("convert", [str, Path])
def test_a_npy_file_is_memory_mapped_and_not_looked_at(tmp_path: Path, convert: Any) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([1.0, np.inf, 2.0]))
    data = as_sequences(convert(path))
    assert isinstance(data.values, np.memmap)
    assert np.isinf(data.values[1])
    assert as_sequences((convert(path), [1, 2])).lengths.tolist() == [1, 2]
    assert isinstance(as_sequences(convert(path), lengths=[3, 0]).values, np.memmap)
    assert isinstance(as_sequences([np.load(path, mmap_mode="r")]).values, np.memmap)


def test_a_npy_file_of_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "foreign.npy", np.zeros(3, dtype=">f8"))
    np.save(tmp_path / "empty.npy", np.zeros(0))
    whole = tmp_path / "whole.npy"
    np.save(whole, np.arange(1000))
    (tmp_path / "cut.npy").write_bytes(whole.read_bytes()[:500])
    (tmp_path / "other.npy").write_bytes(b"")
    for name in ("objects", "cut", "other"):
        with pytest.raises(FileFormatError, match="cannot be read as a NumPy array"):
            as_sequences(tmp_path / f"{name}.npy")
    with pytest.raises(InputError, match="this machine's byte order"):
        as_sequences(tmp_path / "foreign.npy")
    with pytest.raises((InputError, FileFormatError)):
        as_sequences(tmp_path / "empty.npy")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.txt", "read it with subchain.data.read_text"),
        ("x.txt.gz", "read it with subchain.data.read_text"),
        ("x.conllu", "read it with subchain.data.read_conllu"),
        ("x.xyz", "files that end in .npy, .parquet, .csv or .tsv"),
        ("x", "files that end in"),
    ],
)
def test_other_files_are_refused_with_a_hint(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_text("a")
    with pytest.raises(InputError, match=message):
        as_sequences(tmp_path / name)


def test_a_path_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere.npy' does not exist"):
        as_sequences(tmp_path / "nowhere.npy")
    with pytest.raises(InputError, match="is a folder"):
        as_sequences(tmp_path)
    for path in ("\0", "x" * 5000):
        with pytest.raises(InputError, match="not a usable path|does not exist"):
            as_sequences(path)


def test_the_old_name_of_as_sequences_like_warns() -> None:
    with pytest.warns(DeprecationWarning, match="read_alike was renamed; use as_sequences_like"):
        assert read_alike([1, 2], []).values.tolist() == [1, 2]
