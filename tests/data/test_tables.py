"""Tables of pandas, polars and Arrow, and files of tables, all say the same."""

from __future__ import annotations

import decimal
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subchain.data import Sequences, Vocabulary, as_sequences, read_csv, read_parquet
from subchain.errors import FileFormatError, InputError

LIBRARIES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy polars": pl.LazyFrame,
    "arrow": pa.table,
    "arrow batch": lambda columns: pa.RecordBatch.from_pydict(columns),
    "arrow reader": lambda columns: pa.table(columns).to_reader(),
}
PATIENTS: dict[str, list[Any]] = {
    "patient": ["p", "p", "q", "q", "q"],
    "pulse": [60.5, None, 61.0, 62.0, 63.5],
    "mood": ["good", "bad", "bad", None, "bad"],
    "steps": [4, 5, 6, 7, 8],
}


@pytest.fixture(params=LIBRARIES)
def table(request: pytest.FixtureRequest) -> Any:
    return LIBRARIES[request.param](PATIENTS)


def same(data: Sequences, expected: list[Any]) -> None:
    assert len(data) == len(expected)
    for piece, wanted in zip(data, expected, strict=True):
        assert np.array_equal(piece, wanted, equal_nan=piece.dtype.kind == "f")


def test_one_column_is_a_flat_array(table: Any) -> None:
    data = as_sequences(table, columns="pulse", sequence="patient")
    assert data.values.shape == (5,)
    assert data.columns == ("pulse",)
    assert data.names == ("p", "q")
    same(data, [[60.5, np.nan], [61.0, 62.0, 63.5]])


def test_several_columns_stand_side_by_side(table: Any) -> None:
    data = as_sequences(table, columns=["steps", "pulse"])
    assert data.columns == ("steps", "pulse")
    same(data, [[[4, 60.5], [5, np.nan], [6, 61.0], [7, 62.0], [8, 63.5]]])


def test_strings_become_codes(table: Any) -> None:
    data = as_sequences(table, columns="mood")
    assert data.vocabulary == Vocabulary(["bad", "good"])
    assert data.values.dtype == np.int32
    assert data.values.tolist() == [1, 0, 0, -1, 0]


def test_strings_beside_fractions_are_codes_with_nan(table: Any) -> None:
    data = as_sequences(table, columns=["mood", "pulse"], sequence="patient")
    assert data.vocabularies == (Vocabulary(["bad", "good"]), None)
    same(data, [[[1, 60.5], [0, np.nan]], [[0, 61], [np.nan, 62], [0, 63.5]]])


def test_without_a_choice_all_columns_but_the_names_are_observed(table: Any) -> None:
    assert as_sequences(table, sequence="patient").columns == ("pulse", "mood", "steps")


def test_strings_are_coded_with_a_given_vocabulary(table: Any) -> None:
    vocabulary = Vocabulary(["good", "<unk>"], "<unk>")
    data = as_sequences(table, columns=["mood", "steps"], vocabulary=[vocabulary, None])
    assert data.vocabularies == (vocabulary, None)
    assert data.values.tolist() == [[0, 4], [1, 5], [1, 6], [-1, 7], [1, 8]]


def test_columns_can_be_numbered(table: Any) -> None:
    assert as_sequences(table, columns=[3, 1], sequence=0).columns == ("steps", "pulse")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"columns": "puls"}, "unknown column 'puls'.*Did you mean 'pulse'"),
        ({"sequence": "Patient"}, "unknown column 'Patient'.*Did you mean 'patient'"),
        ({"columns": 9}, "column 9 does not exist; there are 4 columns"),
        ({"columns": ["pulse", "pulse"]}, "chosen twice"),
        ({"columns": "pulse", "sequence": "pulse"}, "both as an observation and as sequence="),
        ({"columns": []}, "no column is chosen"),
    ],
)
def test_a_wrong_choice_of_columns_is_named(table: Any, choice: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_sequences(table, **choice)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=1, max_size=30))
def test_scattered_rows_are_grouped_in_order_of_first_appearance(rows: list[tuple[int, int]]) -> None:
    expected: dict[int, list[int]] = {}
    for name, value in rows:
        expected.setdefault(name, []).append(value)
    table = pa.table({"id": [name for name, _ in rows], "x": [value for _, value in rows]})
    data = as_sequences(table, columns="x", sequence="id")
    assert data.names == tuple(expected)
    assert [piece.tolist() for piece in data] == list(expected.values())


def test_rows_that_stand_together_are_not_copied() -> None:
    x = np.arange(7.0)
    data = as_sequences(pa.table({"id": [3] * 4 + [1] * 3, "x": pa.array(x)}), columns="x", sequence="id")
    assert np.shares_memory(data.values, x)


@pytest.mark.parametrize("kind", [pd.Series, pl.Series, pa.array, lambda x: pa.chunked_array([x[:2], x[2:]])])
def test_a_single_column_is_a_table(kind: Any) -> None:
    data = as_sequences(kind([3, 1, 4, 1, 5]))
    assert data.values.tolist() == [3, 1, 4, 1, 5]
    assert data.columns == ("values",)


def test_a_named_column_keeps_its_name() -> None:
    assert as_sequences(pd.Series([1, 2], name="pulse")).columns == ("pulse",)
    assert as_sequences(pl.Series("pulse", [1, 2])).columns == ("pulse",)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_list_of_tables_is_one_sequence_each(library: Any) -> None:
    data = as_sequences([library({"w": ["a", "b"]}), library({"w": ["b"]})], columns="w")
    assert data.vocabulary == Vocabulary(["b", "a"])
    same(data, [[1, 0], [0]])


def test_a_list_of_tables_that_do_not_fit_together_is_refused() -> None:
    with pytest.raises(InputError, match="do not fit together"):
        as_sequences([pa.table({"w": ["a"]}), pa.table({"w": [[1]]})])
    with pytest.raises(InputError, match="sequence 1 is of type list, but sequence 0 is a table"):
        as_sequences([pa.table({"w": ["a"]}), [1]])


def test_a_table_can_be_divided_by_lengths() -> None:
    assert as_sequences((pd.DataFrame(PATIENTS), [2, 3]), columns="steps").lengths.tolist() == [2, 3]
    assert as_sequences(pl.DataFrame(PATIENTS), columns="steps", lengths=[1, 4]).lengths.tolist() == [1, 4]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_of_lists_holds_one_sequence_per_row(library: Any) -> None:
    table = library({"id": ["s", "t", "u"], "words": [["a", "b"], [], ["b"]], "tags": [[0, 1], [], [1]]})
    same(as_sequences(table, columns="tags"), [[0, 1], [], [1]])
    words = as_sequences(table, columns="words", sequence="id")
    assert words.names == ("s", "t", "u")
    assert words.vocabulary == Vocabulary(["b", "a"])
    same(words, [[1, 0], [], [0]])
    same(as_sequences(table, columns=["words", "tags"]), [[[1, 0], [0, 1]], np.empty((0, 2)), [[0, 1]]])


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 2)])
def test_all_kinds_of_lists_are_read(kind: pa.DataType) -> None:
    same(as_sequences(pa.table({"x": pa.array([[1, None], [3, 4]], kind)})), [[1, np.nan], [3, 4]])


@pytest.mark.parametrize(
    ("columns", "choice", "message"),
    [
        ({"x": [[1], None]}, {}, "row 1 of column 'x' is null; give an empty list for an empty sequence"),
        ({"x": [[1, 2]], "y": [[1]]}, {}, "row 0 has 2 values in column 'x' but 1 in column 'y'"),
        ({"x": [[1, 2]], "y": [1]}, {}, "column 'y' holds single values"),
        ({"x": [[1], [2]], "id": ["a", "a"]}, {"sequence": "id"}, "several rows have the sequence name 'a'"),
        ({"x": [[[1]]]}, {}, "column 'x' is of type list"),
        ({"x": [1, 2], "id": ["a", None]}, {"sequence": "id"}, "row 1 has no sequence name"),
        ({"x": [1], "id": [{"a": 1}]}, {"sequence": "id"}, "cannot name the sequences"),
        ({"x": [{"a": 1}]}, {}, "column 'x' is of type struct"),
        ({"x": [b"a"]}, {}, "column 'x' is of type binary, which observations cannot have; choose other columns"),
        ({"x": pa.array([0], pa.timestamp("s"))}, {}, "type timestamp"),
        ({"x": [float("inf")]}, {}, "sequence 0, position 0 holds inf"),
        ({"id": ["a"]}, {"sequence": "id"}, "the table has no column of observations; its columns are: 'id'"),
        ({}, {}, "its columns are: none"),
        ({"x": pa.array([], pa.int64())}, {}, "the data hold no observations"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(columns: Any, choice: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_sequences(pa.table(columns), **choice)


def test_columns_of_the_same_name_are_refused() -> None:
    with pytest.raises(InputError, match="several columns of the table are called 'a'"):
        as_sequences(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_objects_that_are_no_table_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be read as a table"):
        as_sequences(pd.DataFrame({"x": [1, "a", None]}))
    with pytest.raises(InputError, match="cannot be read as a table"):
        as_sequences(pd.Timestamp("2020-01-01"))


@pytest.mark.parametrize(
    ("column", "expected", "dtype"),
    [
        (pa.array([1, None], pa.int8()), [1, np.nan], np.float64),
        (pa.array([250, None], pa.uint8()), [250, np.nan], np.float64),
        (pa.array([2**52 + 1, None], pa.uint64()), [2**52 + 1, np.nan], np.float64),
        (pa.array([2**52 + 1, None], pa.int64()), [2**52 + 1, np.nan], np.float64),
        (pa.array([250, 1], pa.uint8()), [250, 1], np.uint8),
        (pa.array([True, False]), [1, 0], np.uint8),
        (pa.array([True, None]), [1, np.nan], np.float64),
        (pa.array([1.5, None], pa.float32()), [1.5, np.nan], np.float32),
        (pa.array(np.array([1.5], np.float16)), [1.5], np.float16),
        (pa.array([decimal.Decimal("1.5"), None]), [1.5, np.nan], np.float64),
        (pa.array([None, None]), [np.nan, np.nan], np.float64),
        (pa.array([7, 9, None]).dictionary_encode(), [7, 9, np.nan], np.float64),
    ],
)
def test_nulls_are_missing_and_other_types_are_kept(column: pa.Array, expected: list[float], dtype: type) -> None:
    values = as_sequences(column).values
    assert values.dtype == dtype
    assert np.array_equal(values, expected, equal_nan=values.dtype.kind == "f")


def test_nulls_of_integers_beside_fractions_are_nan() -> None:
    data = as_sequences(pa.table({"n": [1, None, -1], "x": [0.5, 1.5, None]}))
    same(data, [[[1, 0.5], [np.nan, 1.5], [-1, np.nan]]])


def test_wide_integers_side_by_side_stay_integers() -> None:
    data = as_sequences(pa.table({"a": pa.array([1], pa.uint64()), "b": pa.array([-5], pa.int64())}))
    assert data.values.dtype == np.int64


def test_nullable_integers_of_pandas_are_missing() -> None:
    values = as_sequences(pd.Series([1, None], dtype="Int16")).values
    assert np.array_equal(values, [1, np.nan], equal_nan=True)


def test_categories_keep_their_order_and_those_not_seen() -> None:
    categories = ["low", "middle", "high"]
    for column in (
        pd.Series(pd.Categorical(["high", None, "low"], categories=categories)),
        pl.Series(["high", None, "low"], dtype=pl.Enum(categories)),
    ):
        data = as_sequences(column)
        assert data.vocabulary == Vocabulary(categories)
        assert data.values.tolist() == [2, -1, 0]


def test_names_of_sequences_may_be_categories_or_dates() -> None:
    ids = pd.Categorical(["b", "a", "b"], categories=["a", "b"])
    data = as_sequences(pd.DataFrame({"id": ids, "x": [1, 2, 3]}), columns="x", sequence="id")
    assert data.names == ("b", "a")
    days = pa.array([0, 1], pa.date32())
    assert as_sequences(pa.table({"id": days, "x": [1, 2]}), sequence="id").names == ("1970-01-01", "1970-01-02")


def test_chunks_of_a_table_are_joined() -> None:
    first, second = pa.table({"w": pa.array(["a", "b"]).dictionary_encode()}), pa.table({"w": ["b", "b"]})
    chunks = pa.concat_tables([first, second.cast(first.schema)])
    assert as_sequences(chunks).vocabulary == Vocabulary(["a", "b"])
    strings = pa.concat_tables([pa.table({"w": ["a"]}), second])
    assert as_sequences(strings).values.tolist() == [1, 0, 0]


@pytest.mark.parametrize("read", [read_parquet, as_sequences])
@pytest.mark.parametrize("suffix", [".parquet", ".pq"])
def test_a_parquet_file_reads_like_its_table(tmp_path: Path, read: Any, suffix: str) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    path = folder / f"x{suffix}"
    pq.write_table(pa.table(PATIENTS), path, row_group_size=2)
    for choice in (
        {"columns": "mood", "sequence": "patient"},
        {"columns": [3, 1], "sequence": 0},
        {"sequence": "mood"},
    ):
        if choice == {"sequence": "mood"}:
            with pytest.raises(InputError, match="row 3 has no sequence name"):
                read(path, **choice)
            continue
        data, expected = read(path, **choice), as_sequences(pa.table(PATIENTS), **choice)
        assert data.fingerprint() == expected.fingerprint()
        assert (data.columns, data.names, data.vocabularies) == (
            expected.columns,
            expected.names,
            expected.vocabularies,
        )
    assert read(path).columns == tuple(PATIENTS)
    with pytest.raises(InputError, match="Did you mean 'steps'"):
        read(path, columns="step")


def test_files_that_are_not_what_they_say_are_refused(tmp_path: Path) -> None:
    for name, read in (("x.parquet", read_parquet), ("x.csv", read_csv)):
        with pytest.raises(InputError, match="does not exist"):
            read(tmp_path / name)
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(FileFormatError, match="cannot be read as"):
            read(tmp_path / name)
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table(PATIENTS), whole)
    (tmp_path / "x.parquet").write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(FileFormatError, match="cannot be read as Parquet"):
        read_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(FileFormatError, match="Expected 2 columns, got 1"):
        read_csv(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("name", "separator"), [("x.csv", ","), ("x.tsv", "\t"), ("x.csv.gz", ","), ("x.TSV.bz2", "\t")]
)
def test_a_csv_file_reads_like_its_table(tmp_path: Path, name: str, separator: str) -> None:
    path = tmp_path / name
    pd.DataFrame(PATIENTS).to_csv(path, index=False, sep=separator, compression="infer")
    data = as_sequences(path, columns=["mood", "pulse"], sequence="patient")
    expected = as_sequences(pa.table(PATIENTS), columns=["mood", "pulse"], sequence="patient")
    assert data.fingerprint() == expected.fingerprint()
    assert data.vocabularies == expected.vocabularies
    assert read_csv(path, columns="steps").values.tolist() == PATIENTS["steps"]


def test_a_csv_column_may_turn_from_whole_numbers_to_fractions_late(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x\n" + "100000\n" * 200_003 + "0.5\n")
    data = read_csv(path)
    assert data.values.dtype == np.float64
    assert data.values[-1] == 0.5
    assert data.n_observations == 200_004


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_table_libraries_are_not_imported_until_needed(library: str) -> None:
    code = (
        f"import sys, numpy, subchain.data as d; d.as_sequences([[1, 2], [3]]); assert {library!r} not in sys.modules"
    )
    source = Path(__file__).parents[2] / "src"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(source)})


def test_without_pyarrow_tables_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subchain.data.arrow.find_spec", lambda name: None)
    assert importlib.util.find_spec("pyarrow") is not None
    with pytest.raises(ImportError, match="subchain\\[tables\\]"):
        as_sequences(pd.DataFrame(PATIENTS))
