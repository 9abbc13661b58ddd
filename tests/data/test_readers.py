"""Readers never fail in a way of their own: bytes are either data or an error of this package."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subchain.data import Sequences, as_sequences, read_conllu, read_csv, read_parquet, read_text
from subchain.errors import SubchainError

fuzzing = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def data_or_our_error(read: Any, source: object) -> None:
    try:
        found = read(source)
    except SubchainError:
        return
    data = found if isinstance(found, Sequences) else found.words
    assert isinstance(data, Sequences)
    assert data.n_observations > 0


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def parquet(columns: dict[str, list[Any]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


GOOD: dict[str, tuple[Any, bytes]] = {
    ".npy": (as_sequences, npy(np.arange(60.0).reshape(20, 3))),
    ".parquet": (read_parquet, parquet({"x": [1, 2, None], "w": ["a", "b", "c"]})),
    ".csv": (read_csv, "x,w\n1,a\n2,b\n,ä\n".encode()),
    ".txt": (read_text, "ein Häuschen\nim Wald\n".encode()),
    ".conllu": (read_conllu, b"1\tDogs\tdog\tNOUN\t_\t_\t0\t_\t_\t_\n\n"),
    ".txt.gz": (read_text, gzip.compress(b"a b\nc" * 20)),
    ".txt.xz": (read_text, lzma.compress(b"a b\nc" * 20)),
    ".txt.bz2": (read_text, bz2.compress(b"a b\nc" * 20)),
    ".csv.gz": (as_sequences, gzip.compress(b"x\n1\n2\n")),
}


@pytest.mark.parametrize("suffix", GOOD)
def test_whole_files_are_read(tmp_path: Path, suffix: str) -> None:
    read, content = GOOD[suffix]
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    found = read(path)
    assert len(found) > 0


@pytest.mark.filterwarnings("ignore:the first line")
@pytest.mark.parametrize("suffix", GOOD)
@fuzzing
@given(content=st.binary(max_size=200))
def test_random_bytes_are_data_or_an_error_of_ours(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    data_or_our_error(GOOD[suffix][0], path)


@pytest.mark.filterwarnings("ignore:the first line")
@pytest.mark.parametrize("suffix", GOOD)
@fuzzing
@given(draw=st.data())
def test_damaged_files_are_data_or_an_error_of_ours(tmp_path: Path, suffix: str, draw: st.DataObject) -> None:
    read, content = GOOD[suffix]
    damaged = bytearray(content)
    places = st.integers(0, len(content) - 1)
    for place, byte in draw.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        damaged[place] = byte
    path = tmp_path / f"x{suffix}"
    path.write_bytes(bytes(damaged[: draw.draw(st.integers(0, len(content)))]) if draw.draw(st.booleans()) else damaged)
    data_or_our_error(read, path)


@fuzzing
@given(st.text(max_size=80))
def test_random_text_is_data_or_an_error_of_ours(text: str) -> None:
    data_or_our_error(read_text, io.StringIO(text))
    data_or_our_error(read_conllu, io.StringIO(text))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.complex_numbers(),
)


@fuzzing
@given(st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner), max_leaves=12))
def test_any_nest_of_lists_is_data_or_an_error_of_ours(x: object) -> None:
    data_or_our_error(as_sequences, x)
