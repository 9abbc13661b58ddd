"""Files that appear when they are complete; and named arrays in such files: safetensors, read with suspicion.

A write goes to a temporary file beside the target, which it replaces only when complete, so a crash leaves either the
old file or the new one. No pickle: a file of arrays can hold numbers and text, nothing that runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import FileFormatError, InputError

#: Keys of the metadata entries that hold everything but the arrays, and a checksum of these.
HEADER, CHECKSUM = "subchain", "checksum"


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a header of plain JSON values, atomically."""
    from safetensors.numpy import save

    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(header)
    replace_file(path, save(contiguous, metadata={HEADER: text, CHECKSUM: _checksum(contiguous, text)}))


def checked_target(path: str | os.PathLike[str]) -> Path:
    """A path where a file can be written, as far as one can tell before it is."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist.")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give the name of a file.")
    return target


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of the system speak of the file that was asked for."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path that takes the place of `path` if all goes well, and is gone if not."""
    target = checked_target(path)
    temporary = target.with_name(f".{secrets.token_hex(6)}.{target.name}")  # the end of the name says what is in it
    try:
        with naming(target):
            yield temporary
            os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def writing(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """An open file that takes its place when it is complete and on the disk."""
    encoding, newline = (None, None) if "b" in mode else ("utf8", "\n")
    with replacing(path) as temporary, open(temporary, mode, encoding=encoding, newline=newline) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file, atomically: it is there whole, or as it was before."""
    with writing(path, "xb") as file:
        file.write(content)


def _checksum(arrays: Mapping[str, NDArray[Any]], header: str) -> str:
    state = hashlib.blake2b(header.encode(), digest_size=16)
    for name in sorted(arrays):
        state.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        state.update(np.ascontiguousarray(arrays[name]).data)
    return state.hexdigest()


def read_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what `write_arrays` wrote; `kind` is what the header must call itself."""
    from safetensors import SafetensorError, safe_open

    source = Path(path)
    if not source.is_file():
        raise InputError(f"there is no file {source}.")
    try:
        with safe_open(str(source), framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        header = json.loads(metadata[HEADER])
    except KeyError:
        raise FileFormatError(f"{source} is a safetensors file, but not one that subchain has written.") from None
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise FileFormatError(f"{source} is damaged, truncated, or not a subchain file ({error}).") from None
    if metadata.get(CHECKSUM) != _checksum(arrays, metadata[HEADER]):
        raise FileFormatError(f"{source} is damaged: its contents are not those that were written.")
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise FileFormatError(f"{source} holds a {found or 'file of another kind'}, not a {kind}.")
    return arrays, header
