"""Files behind arrays."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain.data import Sequences, as_sequences
from subchain.data.mapped import MIN_PREFETCH, MappedFile
from subchain.errors import InputError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(100_000.0).reshape(-1, 2))
    return tmp_path / "x.npy"


def test_views_lead_to_their_file(path: Path) -> None:
    values = np.load(path, mmap_mode="r")
    for view in (values, values[:, :1], values[10:]):
        found = MappedFile.of(view)
        assert found is not None
        assert Path(found.path) == path
        found.check()
    assert MappedFile.of(np.array(values)) is None


@pytest.mark.parametrize("size", [200, 1_000_000])
def test_a_file_that_changes_its_size_is_noticed_before_it_is_read(path: Path, size: int) -> None:
    data, before = as_sequences(path), path.stat().st_size
    os.truncate(path, size)
    with pytest.raises(InputError, match=rf"x\.npy changed from {before} to {size} bytes"):
        data.values[-1]


def test_a_file_that_is_written_to_is_noticed_unless_it_was_mapped_for_that(path: Path) -> None:
    data, ours = as_sequences(path), Sequences(np.load(path, mmap_mode="r+"))
    time.sleep(0.01)  # file systems tell times no finer
    with open(path, "r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(bytes(8))
    with pytest.raises(InputError, match=r"x\.npy was modified"):
        data.values[-1]
    assert ours.values[-1, 1] == 0.0


def test_a_file_that_was_cut_before_it_is_used_is_refused(path: Path) -> None:
    values = np.load(path, mmap_mode="r")
    os.truncate(path, 200)
    with pytest.raises(InputError, match="cut to 200 bytes"):
        as_sequences(values)


def test_a_file_that_was_deleted_or_replaced_can_still_be_read(path: Path) -> None:
    data = as_sequences(path)
    path.unlink()
    assert data.values[-1, 1] == 99_999.0
    np.save(path, np.zeros(3))
    assert data.values[-1, 1] == 99_999.0


def test_copies_of_mapped_data_are_in_memory(path: Path) -> None:
    data = as_sequences(path)
    copied = pickle.loads(pickle.dumps(data))
    os.truncate(path, 200)
    assert copied.values[-1, 1] == 99_999.0


def test_what_is_expected_is_still_the_same(path: Path) -> None:
    values = np.load(path, mmap_mode="r")
    found = MappedFile.of(values)
    assert found is not None
    rows = MIN_PREFETCH // 16 + 1
    found.expect(np.array([0, 3, 50_000 - rows]), np.full(3, rows))
    np.testing.assert_array_equal(values[:5, 0], [0.0, 2.0, 4.0, 6.0, 8.0])


@pytest.mark.parametrize("mode", ["r", "c"])
def test_what_is_forgotten_is_read_again(path: Path, mode: Any) -> None:
    values = np.load(path, mmap_mode=mode)
    if mode == "c":
        values[:10] = -1.0  # changes in memory alone must not be lost
    found = MappedFile.of(values[:, 1])
    assert found is not None
    expected = np.array(values)
    found.forget()
    np.testing.assert_array_equal(values, expected)
