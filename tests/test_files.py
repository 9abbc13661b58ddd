import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from subchain.core.files import read_arrays, replace_file, replacing, write_arrays
from subchain.core.locks import create_locked
from subchain.errors import FileFormatError, InputError, SubchainError


def test_arrays_and_header_come_back_exactly(tmp_path, rng):
    arrays = {"a": rng.random((3, 4)), "b": np.arange(5, dtype=np.int32), "scalar": np.asarray(0.1)}
    write_arrays(tmp_path / "x", arrays, {"kind": "thing", "note": "ü", "value": 0.1})
    back, header = read_arrays(tmp_path / "x", "thing")
    assert header == {"kind": "thing", "note": "ü", "value": 0.1}
    assert all(np.array_equal(arrays[name], back[name]) and arrays[name].dtype == back[name].dtype for name in arrays)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, rng, monkeypatch):
    target = tmp_path / "x"
    write_arrays(target, {"a": np.ones(3)}, {"kind": "thing"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_arrays(target, {"a": np.zeros(3)}, {"kind": "thing"})
    assert np.array_equal(read_arrays(target, "thing")[0]["a"], np.ones(3))
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(("name", "message"), [("no/such/x", "folder .* does not exist"), ("", "is a folder")])
def test_a_target_that_cannot_be_written_is_named(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        write_arrays(tmp_path / name, {"a": np.ones(3)}, {"kind": "thing"})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_arrays(tmp_path / "x", "thing")


def test_files_of_another_kind_are_refused(tmp_path):
    write_arrays(tmp_path / "x", {"a": np.ones(3)}, {"kind": "checkpoint"})
    with pytest.raises(FileFormatError, match="holds a checkpoint, not a model"):
        read_arrays(tmp_path / "x", "model")
    save_file({"a": np.ones(3)}, tmp_path / "foreign")
    with pytest.raises(FileFormatError, match="was not written by subchain"):
        read_arrays(tmp_path / "foreign", "model")
    save_file({"a": np.ones(3)}, tmp_path / "odd", metadata={"subchain": json.dumps([1, 2])})
    with pytest.raises(FileFormatError):
        read_arrays(tmp_path / "odd", "model")


def test_every_truncation_is_noticed(tmp_path):
    write_arrays(tmp_path / "x", {"a": np.arange(10.0)}, {"kind": "thing"})
    content = (tmp_path / "x").read_bytes()
    for length in range(len(content)):
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            read_arrays(tmp_path / "cut", "thing")


@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused_with_a_message(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "x"
    path.write_bytes(content)
    with pytest.raises(SubchainError):
        read_arrays(path, "thing")


def test_every_flipped_byte_is_noticed(tmp_path, rng):
    path = tmp_path / "x"
    write_arrays(path, {"a": rng.random(7), "b": np.arange(5)}, {"kind": "thing"})
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
        with pytest.raises(SubchainError):
            read_arrays(path, "thing")


def test_a_header_that_is_nested_too_deeply_is_refused(tmp_path):
    for levels in (100, 900):
        deep = []
        for _ in range(levels):
            deep = [deep]
        write_arrays(tmp_path / "x", {"a": np.ones(3)}, {"kind": "thing", "deep": deep})
        with pytest.raises(FileFormatError, match="nested"):
            read_arrays(tmp_path / "x", "thing")


def test_what_a_killed_process_left_of_a_write_is_removed(tmp_path):
    left = tmp_path / ".subchain-0123456789ab.x"
    left.write_bytes(b"half")
    others = [tmp_path / name for name in (".0123456789ab.x", ".subchain-0123456789ab.y", "subchain-0123456789ab.x")]
    for path in others:
        path.write_bytes(b"of somebody else")
    write_arrays(tmp_path / "x", {"a": np.ones(3)}, {"kind": "thing"})
    assert not left.exists()
    assert all(path.exists() for path in others)


def test_the_temporary_file_of_a_living_process_stays(tmp_path):
    with replacing(tmp_path / "x") as temporary:
        temporary.write_text("first")
        write_arrays(tmp_path / "x", {"a": np.ones(3)}, {"kind": "thing"})
        assert temporary.read_text() == "first"
    assert (tmp_path / "x").read_text() == "first"
    assert os.listdir(tmp_path) == ["x"]


def test_a_new_file_that_was_taken_for_a_leftover_is_created_again(tmp_path, monkeypatch):
    names = iter("ab")

    def lock(file):
        if file.name.endswith("a"):
            os.unlink(file.name)
        return True

    monkeypatch.setattr("subchain.core.locks.lock", lock)
    path, file = create_locked(lambda: tmp_path / next(names))
    file.close()
    assert path == tmp_path / "b"


def test_file_systems_without_locks_are_written_to(tmp_path, monkeypatch):
    import errno
    import fcntl

    def no_locks(file, kind):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / ".subchain-0.model").touch()
    for content in (b"one", b"two"):
        replace_file(tmp_path / "model", content)
    assert (tmp_path / "model").read_bytes() == b"two"
    assert {path.name for path in tmp_path.iterdir()} == {"model", ".subchain-0.model"}  # nobody knows whose it is
