"""Sequences: one flat array and offsets, nothing padded and nothing copied."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain.data import Sequences, Vocabulary
from subchain.data.mapped import is_memory_mapped
from subchain.errors import InputError

ragged = st.lists(st.lists(st.integers(-1, 9), max_size=7), min_size=1, max_size=9)


def build(pieces: list[list[int]]) -> Sequences:
    flat = np.array([value for piece in pieces for value in piece], dtype=np.int64)
    return Sequences(flat, np.cumsum([0, *map(len, pieces)]))


@given(ragged)
def test_pieces_come_out_as_they_went_in(pieces: list[list[int]]) -> None:
    data = build(pieces)
    assert [piece.tolist() for piece in data] == pieces
    assert [data[i].tolist() for i in range(-len(pieces), 0)] == pieces
    assert data.lengths.tolist() == [len(piece) for piece in pieces]
    assert data.lengths.sum() == data.n_observations
    assert len(data) == data.n_sequences == len(pieces)


@given(ragged, st.data())
def test_choosing_sequences_is_choosing_from_the_list(pieces: list[list[int]], draw: st.DataObject) -> None:
    data = build(pieces)
    chosen = draw.draw(st.lists(st.integers(-len(pieces), len(pieces) - 1), max_size=6))
    assert [piece.tolist() for piece in data[np.array(chosen, dtype=int)]] == [pieces[i] for i in chosen]
    start, stop, step = (draw.draw(st.integers(-9, 9)) for _ in range(3))
    which = slice(start, stop, step or None)
    assert [piece.tolist() for piece in data[which]] == pieces[which]
    mask = np.array(draw.draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces))))
    assert [piece.tolist() for piece in data[mask]] == [p for p, keep in zip(pieces, mask, strict=True) if keep]


@given(ragged)
def test_every_position_is_located_in_its_sequence(pieces: list[list[int]]) -> None:
    data = build(pieces)
    expected = [(i, j) for i, piece in enumerate(pieces) for j in range(len(piece))]
    assert [data.locate(position) for position in range(data.n_observations)] == expected


@given(ragged)
def test_a_table_is_split_like_the_values(pieces: list[list[int]]) -> None:
    data = build(pieces)
    table = np.arange(3.0 * data.n_observations).reshape(-1, 3)
    cut = data.split(table)
    assert [len(piece) for piece in cut] == data.lengths.tolist()
    assert np.array_equal(np.concatenate(cut), table)
    assert all(piece.base is table.base or piece.base is table for piece in cut)


def test_a_table_of_another_length_is_not_split() -> None:
    with pytest.raises(InputError, match="the table has 3 rows, but the data have 2 positions"):
        Sequences(np.zeros(2)).split(np.zeros(3))


def test_one_sequence_is_a_view() -> None:
    values = np.arange(13.0)
    data = Sequences(values, [0, 5, 13])
    assert data.values is values
    assert np.shares_memory(data[1], values)
    assert np.shares_memory(data[0:2].values, values)
    assert np.shares_memory(data[np.array([0, 1])].values, values)


def test_a_memory_mapped_file_stays_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(997, dtype=np.int16))
    values = np.load(tmp_path / "x.npy", mmap_mode="r")
    data = Sequences(values, [0, 500, 997])
    assert data.values is values
    assert isinstance(data.values, np.memmap)
    assert is_memory_mapped(data[1])
    assert is_memory_mapped(np.asarray(data[:1].values))
    assert not is_memory_mapped(data[[1, 0]].values)


def test_offsets_cannot_be_changed_afterwards() -> None:
    given = np.array([0, 2])
    data = Sequences(np.zeros(2), given)
    given[1] = 1
    assert data.offsets.tolist() == [0, 2]
    with pytest.raises(ValueError, match="read-only"):
        data.offsets[1] = 1


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([1, 4], "run from 0 to the number of observations, 4, but run from 1 to 4"),
        ([0, 3], "but run from 0 to 3"),
        ([0, 3, 2, 4], "sequence 1 would run from 3 to 2"),
        ([0.0, 4.0], "a flat array of integers"),
        ([[0, 4]], "a flat array"),
        ([], "offsets must be a flat array of integers"),
    ],
)
def test_offsets_that_do_not_fit_are_refused(offsets: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sequences(np.zeros(4), offsets)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 2, 2)), r"shape \(N,\) or \(N, D\), but have the shape \(2, 2, 2\)"),
        (np.zeros((3, 0)), "no columns"),
        (np.zeros(3, complex), "complex128 cannot be used"),
        (np.array(["a"]), "cannot be used"),
        (np.zeros(3, ">f8"), ">f8 cannot be used|float64 cannot be used"),
        (np.ma.masked_array([1, 2], [False, True]), "as_sequences turns masked entries"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(values: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sequences(values)


def test_booleans_are_seen_as_zero_and_one_without_a_copy() -> None:
    values = np.array([True, False, True])
    data = Sequences(values)
    assert data.values.tolist() == [1, 0, 1]
    assert np.shares_memory(data.values, values)


def test_columns_are_found_by_name_and_number() -> None:
    data = Sequences(np.arange(12).reshape(3, 4), columns=["a", "b", "c", "d"])
    assert data.column_indices(["d", 0]).tolist() == [3, 0]
    assert data.column_indices(-1).tolist() == [3]
    assert data.column_indices(None).tolist() == [0, 1, 2, 3]
    assert data.select(["d", "a", "b"]).tolist() == [[3, 0, 1], [7, 4, 5], [11, 8, 9]]


@pytest.mark.parametrize("columns", [None, ["b", "c"], ["a", "c"], "d"])
def test_evenly_spaced_columns_are_a_view(columns: list[str] | None) -> None:
    values = np.arange(12).reshape(3, 4)
    assert np.shares_memory(Sequences(values, columns=["a", "b", "c", "d"]).select(columns), values)


def test_a_flat_array_has_one_column() -> None:
    data = Sequences(np.arange(3), columns=["pulse"])
    assert data.n_features == 1
    assert data.select("pulse").tolist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("spead", "unknown column 'spead'.*Did you mean 'speed'"),
        (2, "column 2 does not exist; there are 2 columns"),
        (["speed", 0], "column 0 is chosen twice"),
        ([], "no column is chosen"),
        ([1.5], "by name or number, not by 1.5"),
    ],
)
def test_a_column_that_is_not_there_is_named(columns: object, message: str) -> None:
    data = Sequences(np.zeros((3, 2)), columns=["speed", "angle"])
    with pytest.raises(InputError, match=message):
        data.column_indices(columns)  # type: ignore[arg-type]


def test_columns_without_names_cannot_be_asked_for_by_name() -> None:
    with pytest.raises(InputError, match="the 2 columns have no names"):
        Sequences(np.zeros((3, 2))).column_indices("speed")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"columns": ["a"]}, "each of 2 columns"),
        ({"columns": ["a", "a"]}, "must differ"),
        ({"columns": ["a", 1]}, "a string"),
        ({"names": ["p", "q"]}, "each of 1 sequences, but there are 2 names"),
        ({"vocabulary": Vocabulary(["a"])}, "each of 2 columns, but 1 are given"),
    ],
)
def test_names_that_do_not_fit_are_refused(extra: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sequences(np.zeros((3, 2)), **extra)  # type: ignore[arg-type]


@pytest.mark.parametrize("which", [3, -4, [0, 3], np.array([[0]]), np.array([0.5]), np.array([True])])
def test_a_sequence_that_is_not_there_is_an_index_error(which: object) -> None:
    with pytest.raises(IndexError):
        Sequences(np.zeros(6), [0, 2, 4, 6])[which]  # type: ignore[call-overload]


def test_names_and_vocabularies_travel_with_the_sequences() -> None:
    vocabulary = Vocabulary(["x", "y"])
    data = Sequences(np.array([0, 1, 1]), [0, 1, 2, 3], names=["p", "q", "r"], vocabulary=vocabulary)
    chosen = data[[2, 0]]
    assert chosen.names == ("r", "p")
    assert chosen.vocabulary == vocabulary
    assert data.describe(2) == "sequence 2 ('r'), position 0"


def test_the_fingerprint_knows_the_data(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(10007, 3))
    data = Sequences(values, [0, 4999, 10007])
    np.save(tmp_path / "x.npy", values)
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    changed = values.copy()
    changed[-1, -1] += 1
    assert data.fingerprint() == Sequences(on_disk, data.offsets).fingerprint()
    assert data.fingerprint() == Sequences(np.asfortranarray(values), data.offsets).fingerprint()
    others = [
        Sequences(values),
        Sequences(values, [0, 5000, 10007]),
        Sequences(values[:-1]),
        Sequences(changed, data.offsets),
        Sequences(values.astype(np.float32), data.offsets),
    ]
    assert len({data.fingerprint(), *(other.fingerprint() for other in others)}) == 6


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 1), (3, 9001), (4097,)])
def test_a_fingerprint_exists_for_every_shape(shape: tuple[int, ...]) -> None:
    assert len(Sequences(np.zeros(shape)).fingerprint()) == 16


def test_recoding_keeps_the_symbols() -> None:
    data = Sequences(np.array([0, 1, -1, 1], dtype=np.int8), vocabulary=Vocabulary(["no", "yes"]))
    recoded = data.recode(Vocabulary(["maybe", "yes", "no"]))
    assert recoded.values.tolist() == [2, 1, -1, 1]
    assert recoded.vocabulary is not None
    assert recoded.vocabulary.decode(recoded.values) == ["no", "yes", None, "yes"]


def test_recoding_one_column_leaves_the_others() -> None:
    values = np.array([[0.5, 0], [1.5, 1], [np.nan, np.nan]])
    data = Sequences(values, vocabulary=[None, Vocabulary(["a", "b"])])
    recoded = data.recode([None, Vocabulary(["b", "a"])])
    assert np.array_equal(recoded.values, [[0.5, 1], [1.5, 0], [np.nan, np.nan]], equal_nan=True)
    assert values[0, 1] == 0


def test_recoding_to_the_same_vocabulary_copies_nothing() -> None:
    data = Sequences(np.array([0, 1]), vocabulary=Vocabulary(["no", "yes"]))
    assert data.recode(Vocabulary(["no", "yes"])).values is data.values
    assert Sequences(data.values).recode(Vocabulary(["no", "yes"])).vocabulary == data.vocabulary


def test_codes_outside_their_vocabulary_cannot_be_recoded() -> None:
    with pytest.raises(InputError, match="code 2 is outside its vocabulary of 2 symbols"):
        Sequences(np.array([0, 2]), vocabulary=Vocabulary(["a", "b"])).recode(Vocabulary(["b", "a"]))


def test_sequences_survive_pickling() -> None:
    data = Sequences(np.arange(5), [0, 2, 5], columns=["a"], names=["p", "q"], vocabulary=Vocabulary(list("abcde")))
    again = pickle.loads(pickle.dumps(data))
    assert again.fingerprint() == data.fingerprint()
    assert (again.columns, again.names, again.vocabulary) == (data.columns, data.names, data.vocabulary)


def test_the_representation_says_how_much_there_is() -> None:
    assert repr(Sequences(np.zeros((5, 2)), [0, 5])) == "Sequences(1 sequences, 5 positions, 2 columns, float64)"
