"""Text tables as people have them: without names, with other separators, blank lines, dates, NA and −1."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from subchain import read
from subchain.data import as_sequences, read_csv
from subchain.data.sniffing import is_date, sniff
from subchain.errors import InputError


def write(folder: Path, text: str, name: str = "x.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_minus_one_is_a_number_and_missing_is_empty_or_na(tmp_path: Path) -> None:
    data = read_csv(write(tmp_path, "a,b\n-1,x\n,NA\nNA,y\nnan,\n3,-1\n"))
    np.testing.assert_array_equal(data.select("a")[:, 0], [-1.0, np.nan, np.nan, np.nan, 3.0])
    assert data.vocabularies[1] is not None
    assert data.vocabularies[1].to_list() == ["x", "y", "-1"]
    assert repr(data).endswith("5 missing entries, float64)")


def test_a_data_frame_reads_as_its_file(tmp_path: Path) -> None:
    import pandas

    path = write(tmp_path, "year,turn\n" + "".join(f"{1900 + i},{i % 3 - 1}\n" for i in range(30)))
    with pytest.warns(UserWarning, match="column 'year' increases by 1"):
        by_file = read_csv(path)
    with pytest.warns(UserWarning, match="column 'year' increases by 1"):
        by_frame = as_sequences(pandas.read_csv(path))
    assert by_file.columns == by_frame.columns == ("turn",)
    np.testing.assert_array_equal(by_file.values, by_frame.values)
    assert by_file.values.min() == -1.0


def test_a_first_line_of_observations_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, "1.5,2\n2.5,3\n")
    with pytest.warns(UserWarning, match=r"first line of 'x.csv' \(1.5, 2\) was read as observations"):
        data = read_csv(path)
    assert data.columns == ("column_0", "column_1")
    assert data.n_observations == 2
    assert read_csv(path, header=False).n_observations == 2
    assert read_csv(path, header=True).columns == ("1.5", "2")


@pytest.mark.parametrize(
    ("lines", "has_header"),
    [
        (["a,b", "1,x"], True),
        (["date,close", "1999-01-04,3", "1999-01-05,4"], True),
        (["1999-01-04,3", "1999-01-05,4"], False),
        ([",speed", "0,1.5"], True),
        (["the\tDT", "dog\tNN", "the\tDT"], False),
        (["word\ttag", "the\tDT", "dog\tNN", "the\tDT"], True),
        (["sun", "rain", "sun"], False),
        (["weather", "rain", "sun"], True),
        (["NA,1", "2,NA"], False),
    ],
)
def test_names_of_columns_are_unlike_what_is_below(lines: list[str], has_header: bool) -> None:
    assert sniff(lines).has_header is has_header


@pytest.mark.parametrize(
    ("text", "separator"), [("a;b\n1;2\n", ";"), ("a\tb\n1\t2\n", "\t"), ("a|b\n1|2\n", "|"), ('"a;x",b\n1,2\n', ",")]
)
def test_separators_are_recognised(tmp_path: Path, text: str, separator: str) -> None:
    assert sniff(text.splitlines()).separator == separator
    assert read_csv(write(tmp_path, text)).n_features == 2


def test_numbers_may_have_commas(tmp_path: Path) -> None:
    assert read_csv(write(tmp_path, "a;b\n1,5;2\n2,5;3\n")).values.tolist() == [[1.5, 2.0], [2.5, 3.0]]


def test_separators_are_one_character(tmp_path: Path) -> None:
    path = write(tmp_path, "a b\n1 2\n")
    assert read_csv(path, separator="space").n_features == 2
    with pytest.raises(InputError, match="must be one character"):
        read_csv(path, separator="ab")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_end_sequences(tmp_path: Path, end: str) -> None:
    lines = ["", "word\ttag", "the\tDT", "dog\tNN", "", "", "runs\tVB", "", "the\tDT", "", ""]
    data = read_csv(write(tmp_path, end.join(lines), "x.tsv"))
    assert data.lengths.tolist() == [2, 1, 1]
    assert data.columns == ("word", "tag")
    assert read_csv(tmp_path / "x.tsv", sequence="tag", columns="word").names == ("DT", "NN", "VB")


def test_in_one_column_a_blank_line_is_a_missing_number_or_the_end_of_a_sentence(tmp_path: Path) -> None:
    numbers = read_csv(write(tmp_path, "x\n1\n\n3\n\n"))
    np.testing.assert_array_equal(numbers.values, [1.0, np.nan, 3.0])
    words = read_csv(write(tmp_path, "word\nthe\ndog\n\nthe\n"))
    assert words.lengths.tolist() == [2, 1]


def test_dates_and_numbers_of_rows_are_left_out_unless_chosen(tmp_path: Path) -> None:
    rows = [f"{i},2001-02-{1 + i % 28:02d},{1 + i % 28}/2/2001,{i * i % 11}" for i in range(40)]
    path = write(tmp_path, "\n".join(["row,day,german,x", *rows]))
    with pytest.warns(UserWarning, match="is left out") as told:
        assert read_csv(path).columns == ("x",)
    assert [str(note.message).split("'")[1] for note in told] == ["row", "day", "german"]
    assert read_csv(path, columns=["row", "x"]).columns == ("row", "x")


def test_numbers_of_rows_may_begin_anew_in_every_sequence(tmp_path: Path) -> None:
    rows = [f"{'ab'[i // 15]},{i % 15},{i * i % 11}" for i in range(30)]
    path = write(tmp_path, "\n".join(["who,minute,x", *rows]))
    with pytest.warns(UserWarning, match="'minute' increases by 1"):
        assert read_csv(path, sequence="who").columns == ("x",)


def test_a_table_of_nothing_but_a_sequence_of_numbers_is_observed(tmp_path: Path) -> None:
    assert read_csv(write(tmp_path, "x\n" + "\n".join(map(str, range(30))))).columns == ("x",)


def test_dates_are_recognised() -> None:
    assert all(map(is_date, ["1999-01-04", "1999-01-04 12:30", "4/1/1999", "4.1.1999", "12:30:01"]))
    assert not any(map(is_date, ["1999", "monday", "", "12", "a-b-cdef1234"]))


def test_any_file_name_with_a_format(tmp_path: Path) -> None:
    (tmp_path / "train.e.xz").write_bytes(lzma.compress(b"the dog\nthe cat\n"))
    with pytest.raises(InputError, match="given with format="):
        read(tmp_path / "train.e.xz")
    assert read(tmp_path / "train.e.xz", format="text").lengths.tolist() == [2, 2]
    assert read(write(tmp_path, "a,b\n1,2\n3,5\n", "table.dat"), format="csv").columns == ("a", "b")
    with pytest.raises(InputError, match="unknown format 'cvs'.*Did you mean 'csv'"):
        read(tmp_path / "table.dat", format="cvs")


def test_compressed_arrays_and_parquet_files(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    np.save(tmp_path / "x.npy", np.arange(4.0))
    np.savez(tmp_path / "y.npz", a=np.arange(5.0))
    pyarrow.parquet.write_table(pyarrow.table({"v": [1.0, 2.5]}), tmp_path / "z.parquet")
    for name, n in (("x.npy", 4), ("y.npz", 5), ("z.parquet", 2)):
        (tmp_path / f"{name}.xz").write_bytes(lzma.compress((tmp_path / name).read_bytes()))
        assert read(tmp_path / f"{name}.xz").n_observations == n


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("x.csv", {"unit": "words"}, "unit= is for text .*'x.csv' is read as text tables"),
        ("x.csv", {"sequences": "lines"}, "sequences='lines' is for text"),
        ("x.csv", {"array": "a"}, "array= is for .npz files"),
        ("x.csv", {"lengths": "n"}, "lengths= is for .npz files"),
        ("x.txt", {"columns": "a"}, "columns= is for"),
        ("x.txt", {"header": False}, "header= is for text tables"),
        ("x.txt", {"sequences": "rows"}, "sequences='rows' is for"),
        ("x.npy", {"separator": ","}, "separator= is for text tables"),
        ("x.npy", {"sequence": "a"}, "sequence= is for"),
        ("x.npy", {"lower": True}, "lower= is for text"),
    ],
)
def test_options_that_do_not_fit_the_file_are_refused(
    tmp_path: Path, name: str, option: dict[str, object], message: str
) -> None:
    write(tmp_path, "a,b\n1,2\n", "x.csv")
    write(tmp_path, "the dog\n", "x.txt")
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, **option)  # type: ignore[arg-type]


def test_arrays_of_one_file_as_columns_and_their_lengths(tmp_path: Path) -> None:
    path = tmp_path / "ecg.npz"
    np.savez(path, ch0=np.arange(5), ch1=np.arange(5) * 2, other=np.ones(3), offsets=np.array([0, 2, 5]))
    both = read(path, columns=["ch0", "ch1"], lengths="offsets")
    assert both.columns == ("ch0", "ch1")
    assert both.lengths.tolist() == [2, 3]
    assert both[1].tolist() == [[2, 4], [3, 6], [4, 8]]
    with pytest.raises(InputError, match="same shape"):
        read(path, columns=["ch0", "other"])
    with pytest.raises(InputError, match="'other' of ecg.npz does not divide 'ch0'"):
        read(path, array="ch0", lengths="other")
    np.savez(path, train=np.zeros((5, 2)), test=np.zeros((3, 2)), train_lengths=np.array([1, 4]))
    assert read(path, array="train").lengths.tolist() == [1, 4]


def test_rows_of_codewords_are_sequences(tmp_path: Path) -> None:
    np.save(tmp_path / "codes.npy", np.arange(12, dtype=np.uint8).reshape(4, 3))
    data = read(tmp_path / "codes.npy", sequences="rows")
    assert data.lengths.tolist() == [3] * 4
    assert data[1].tolist() == [3, 4, 5]
