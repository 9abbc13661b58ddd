"""Files behind arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def test_a_file_that_changes_its_size_is_noticed(path: Path) -> None:
    found = MappedFile.of(np.load(path, mmap_mode="r"))
    assert found is not None
    with open(path, "ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="changed from"):
        found.check()
    path.unlink()
    with pytest.raises(InputError, match="disappeared"):
        found.check()


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
