"""Tables with very many columns, and compressed files that unpack to very much."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from subchain.data import read_csv, read_text, unpacking
from subchain.data.reading import read
from subchain.data.tables import from_table
from subchain.data.wide_csv import MOST_ROWS, WIDE
from subchain.errors import FileFormatError, InputError

NAMES = [f"c{i}" for i in range(WIDE)]


def write_table(path: Path, rows: list[list[str]], names: list[str] = NAMES) -> Path:
    path.write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n")
    return path


def row(field: str, first: str | None = None, n: int = WIDE) -> list[str]:
    return [field if first is None else first, *[field] * (n - 1)]


@pytest.mark.parametrize(
    ("rows", "first", "dtype"),
    [
        ([row("1"), row("2")], [1, 2], np.int64),
        ([row("1", "1.5"), row("2")], [1.5, 2.0], np.float64),
        ([row("1", ""), row("2")], [np.nan, 2.0], np.float64),
        ([row("1", '"3"'), row("2")], [3, 2], np.int64),
        ([row("1", "NA"), row("2")], [np.nan, 2.0], np.float64),
        ([row("1", "9007199254740993"), row("2")], [9007199254740993, 2], np.int64),
    ],
)
def test_wide_tables_of_numbers_are_read_as_narrow_ones(
    rows: list[list[str]], first: list[float], dtype: type, tmp_path: Path
) -> None:
    wide = read_csv(write_table(tmp_path / "wide.csv", rows))
    narrow = read_csv(write_table(tmp_path / "narrow.csv", [row[:3] for row in rows], NAMES[:3]))
    assert wide.columns == tuple(NAMES)
    assert wide.values.dtype == narrow.values.dtype == dtype
    np.testing.assert_array_equal(wide.values[:, 0], np.array(first, dtype))
    np.testing.assert_array_equal(wide.values[:, :3], narrow.values)


@pytest.mark.parametrize(
    "rows",
    [
        [row("ab"), row("cd"), row("ab")],
        [row("ab", "NA"), row("cd", "x"), row("ab", "x")],
        [row('"a,b"', "é"), row("nan"), row("", "f")],
        [row("ab", "null"), row("cd", "7")],
        [row("a", "true"), row("b", "false")],
        [row("a", "1.5"), row("b", "2")],
        [row("a", "Jan 4, 1999".replace(",", "")), row("b", "x")],
    ],
)
def test_wide_tables_of_words_are_read_as_narrow_ones(rows: list[list[str]], tmp_path: Path) -> None:
    wide = read_csv(write_table(tmp_path / "wide.csv", rows), header=True)
    narrow = read_csv(write_table(tmp_path / "narrow.csv", [row[:3] for row in rows], NAMES[:3]), header=True)
    assert wide.columns == tuple(NAMES)
    assert wide.values.dtype == narrow.values.dtype
    np.testing.assert_array_equal(wide.values[:, :3], narrow.values)
    assert wide.vocabularies[:3] == narrow.vocabularies


def test_wide_tables_of_words_may_have_blank_lines_and_defects(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\n".join([",".join(NAMES), ",".join(row("a")), "", ",".join(row("b"))]) + "\n")
    np.testing.assert_array_equal(read_csv(path).lengths, [1, 1])
    with pytest.raises(FileFormatError, match=r"x\.csv.* cannot be read as CSV"):
        read_csv(write_table(path, [row("a"), row("b")[1:]]))
    few, many = (read_csv(write_table(path, [row("b")] + [row("a")] * n)) for n in (3, MOST_ROWS))
    np.testing.assert_array_equal(few.values, many.values[: len(few.values)])
    assert (len(many.values), many.vocabularies[0]) == (MOST_ROWS + 1, few.vocabularies[0])


def test_columns_of_wide_tables_can_be_chosen(tmp_path: Path) -> None:
    path = write_table(tmp_path / "x.csv", [row("1", "a"), row("2", "b"), row("3", "a")])
    data = read_csv(path, columns=["c7", 3], sequence="c0")
    assert data.columns == ("c7", "c3")
    assert data.names == ("a", "b")
    np.testing.assert_array_equal(data.values, [[1, 1], [3, 3], [2, 2]])
    np.testing.assert_array_equal(read_csv(path, columns=NAMES[:0:-1]).values[:, 0], [1, 2, 3])
    assert read_csv(path).vocabularies[0] is not None  # all columns


def test_defects_of_wide_tables_are_named(tmp_path: Path) -> None:
    twice = [*NAMES[:-1], "c0"]
    with pytest.raises(InputError, match="several columns of the table are called 'c0'"):
        read_csv(write_table(tmp_path / "x.csv", [row("1")], twice))
    with pytest.raises(FileFormatError, match=r"x\.csv.* cannot be read as CSV"):
        read_csv(write_table(tmp_path / "x.csv", [row("1"), ["1"] * (WIDE - 1)]))


def test_two_hundred_thousand_columns_take_linear_time(tmp_path: Path) -> None:
    """Steps that compare each column with all others would take minutes."""
    n = 200_000
    names = [f"c{i}" for i in range(n)]
    assert read_csv(write_table(tmp_path / "x.csv", [["1"] * n], names)).n_features == n
    words = read_csv(write_table(tmp_path / "x.csv", [["yes"] * n, ["no"] * n], names))
    assert words.n_features == len(words.vocabularies) == n
    few = names[: n // 10]
    table = pa.Table.from_arrays([pa.array([1.5])] * len(few), names=few)
    assert from_table(table, few[::-1]).n_features == len(few)


PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("reader", [read_csv, read_text])
@pytest.mark.parametrize("suffix", PACKERS)
def test_files_that_unpack_to_too_much_are_refused(
    suffix: str, reader: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "x.csv" if reader is read_csv else "x.txt"
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(PACKERS[suffix](b"x\n" + b"1\n" * 1_000_000))
    assert reader(path).n_observations >= 1_000_000
    monkeypatch.setenv("SUBCHAIN_UNPACK_LIMIT", "0.001")
    with pytest.raises(InputError, match=rf"x\.\w+\{suffix}' unpacks to more than 0.001 GB.*SUBCHAIN_UNPACK_LIMIT"):
        reader(path)
    monkeypatch.setenv("SUBCHAIN_UNPACK_LIMIT", "much")
    with pytest.raises(InputError, match="must be a number of gigabytes, not 'much'"):
        reader(path)


@pytest.mark.parametrize(("memory", "is_refused"), [(24e6, True), (4e9, False)])
def test_without_a_setting_the_limit_follows_from_the_memory(
    memory: float, is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "_memory", lambda: memory)
    many, few = tmp_path / "many.csv.gz", tmp_path / "few.csv.gz"
    many.write_bytes(gzip.compress(b"x\n" + b"1\n" * 1_000_000))  # a thousand times smaller than its contents
    numbers = np.random.default_rng(0).random(100_000)
    few.write_bytes(gzip.compress("\n".join(["x", *map(repr, numbers.tolist())]).encode()))
    assert read_csv(few).n_observations == 100_000
    if is_refused:
        with pytest.raises(InputError, match=r"many\.csv\.gz' unpacks to more than 0\.00075 GB"):
            read_csv(many)
    else:
        assert read_csv(many).n_observations == 1_000_000


def test_lines_are_not_read_before_a_bomb_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(b"1\n" * 20_000_000, 1))
    monkeypatch.setenv("SUBCHAIN_UNPACK_LIMIT", "0.03")
    monkeypatch.setattr("subchain.data.coding.CodedLines.append", lambda *_: pytest.fail("a line was read"))
    with pytest.raises(InputError, match="unpacks to more than 0.03 GB"):
        read_text(path)


def test_a_process_ends_after_a_file_that_unpacks_to_too_much(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"0,0\n" * 5_000_000, 1))
    program = f"""
import subchain.data
from subchain.data import delimited
delimited._CSV_BLOCK = 1 << 20  # several blocks, as in a large file
subchain.data.read({str(path)!r})
"""
    environment = os.environ | {"SUBCHAIN_UNPACK_LIMIT": "0.015"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "unpacks to more than 0.015 GB" in done.stderr


def test_arrays_that_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros(1_000_000))
    assert read(path).n_observations == 1_000_000
    monkeypatch.setenv("SUBCHAIN_UNPACK_LIMIT", "0.001")
    with pytest.raises(InputError, match=r"x\.npz' unpacks to more than 0.001 GB"):
        read(path)
