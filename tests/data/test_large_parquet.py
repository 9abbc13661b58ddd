"""Parquet files that are too large to be held in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from subchain import HMM, SVI
from subchain.data import as_sequences, large_parquet
from subchain.data.sequences import is_memory_mapped
from subchain.engines.cpu import update_kernels, updates


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_parquet, "LARGE", 100)


def write(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=37)
    return path


def test_numbers_are_unpacked_group_by_group_and_mapped(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=1000).astype(np.float32), rng.integers(5, size=1000)
    data = as_sequences(write(tmp_path / "x.parquet", a=a, b=b))
    assert is_memory_mapped(data.values)
    assert data.columns == ("a", "b")
    np.testing.assert_array_equal(data.values, np.column_stack((a.astype(np.float64), b)))
    codes = as_sequences(tmp_path / "x.parquet", columns="b")
    assert is_memory_mapped(codes.values)
    np.testing.assert_array_equal(codes.values.ravel(), b)


def test_nulls_of_floating_numbers_are_missing(tmp_path: Path) -> None:
    data = as_sequences(write(tmp_path / "x.parquet", a=[1.0, None] * 50))
    assert is_memory_mapped(data.values)
    assert np.isnan(data.values).sum() == 50


@pytest.mark.parametrize("column", [["a", "b"] * 50, [1, None] * 50])
def test_what_is_not_plain_numbers_is_read_as_ever(tmp_path: Path, column: Any) -> None:
    assert not is_memory_mapped(as_sequences(write(tmp_path / "x.parquet", a=column)).values)


def test_a_model_learns_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "LARGE", 0)
    x = np.random.default_rng(1).integers(4, size=3000)
    path = write(tmp_path / "x.parquet", a=x)
    inference = SVI(length=10, batch=10, max_updates=20)
    models, compiled = [], []
    for data in (path, x):
        models.append(HMM(2, "categorical", inference=inference, random_state=0).fit(data))
        compiled.append(len(update_kernels.run_updates.signatures))
    assert np.array_equal(models[0].transition_, models[1].transition_)
    assert compiled[0] == compiled[1] > 0, "mapped data need a kernel of their own"
