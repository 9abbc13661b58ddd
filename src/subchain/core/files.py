"""Atomic writes, and named arrays in safetensors files with a checksum.

A write goes to a temporary file in the target's folder, which replaces the target when it is complete, so a crash
leaves either the old file or the new one. The next write of the same file removes what a killed process left of the
temporary one. Nothing is pickled, so reading a file cannot run code.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.locks import PREFIX, create_locked, leftovers
from subchain.errors import FileFormatError, FileWriteError, InputError, SubchainError

#: Keys of the metadata entries: the JSON header, and the checksum of header and arrays.
HEADER, CHECKSUM = "subchain", "checksum"
#: Largest depth of a header: what is nested in each other.
MAX_DEPTH = 64
#: Smallest unit in which file systems give space to files.
BLOCK = 512


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a header of JSON values atomically to a safetensors file."""
    from safetensors.numpy import save

    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(header)
    replace_file(path, save(contiguous, metadata={HEADER: text, CHECKSUM: _checksum(contiguous, text)}))


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Return `path` as a `Path`; raise an `InputError` if its folder does not exist or it is itself a folder."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist.")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give the name of a file.")
    return target


@contextmanager
def _errors_naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Replace errors of the system by a `FileWriteError` that names `path`, and not a temporary file."""
    try:
        yield
    except SubchainError:
        raise
    except OSError as error:
        named = os.path.basename(os.fspath(error.filename)) if isinstance(error.filename, str) else ""
        if named not in ("", os.path.basename(path)) and PREFIX not in named:
            raise  # another file, which was read for this one
        raise FileWriteError(
            f"cannot write {path}: {error.strerror or error}. Choose a folder with room in which files can be made.",
            path,
            error,
        ) from None


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of an empty temporary file; rename it to `path` at the end of the block, or delete it on errors.

    What killed processes have left of earlier writes to `path` is removed.
    """
    target = checked_target(path)
    for leftover in leftovers(target.parent, f".{PREFIX}*.{glob.escape(target.name)}"):
        leftover.unlink(missing_ok=True)
    with _errors_naming(target):
        temporary, held = create_locked(lambda: _temporary_name(target))
    try:
        with _errors_naming(target):
            yield temporary
            if os.name == "nt":
                held.close()  # open files cannot be renamed
            os.replace(temporary, target)
    finally:
        held.close()
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _temporary_name(target: Path) -> Path:
    return target.with_name(f".{PREFIX}{secrets.token_hex(6)}.{target.name}")  # same suffix: writers depend on it


@contextmanager
def writing(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Yield an open temporary file; sync it to disk and rename it to `path` at the end of the block."""
    encoding, newline = (None, None) if "b" in mode else ("utf8", "\n")
    with replacing(path) as temporary, open(temporary, mode, encoding=encoding, newline=newline) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def reserve(path: str | os.PathLike[str]) -> None:
    """Reserve disk space for all of a file that will be mapped; raise a `FileWriteError` if there is not enough.

    A process that writes to a map without space behind it is killed (SIGBUS). File systems that compress or copy on
    write may still run out of space later.
    """
    with _errors_naming(path), open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            if size:
                os.posix_fallocate(file.fileno(), 0, size)
        except (AttributeError, OSError) as error:
            if getattr(error, "errno", None) not in (None, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            for block in range(0, size, BLOCK):  # what is read as zero gets a place when it is written
                file.seek(block)
                byte = file.read(1)
                file.seek(block)
                file.write(byte)


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path` atomically: a failure leaves the old file unchanged."""
    with writing(path, "wb") as file:
        file.write(content)


def _checksum(arrays: Mapping[str, NDArray[Any]], header: str) -> str:
    state = hashlib.blake2b(header.encode(), digest_size=16)
    for name in sorted(arrays):
        state.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}".encode())
        state.update(np.ascontiguousarray(arrays[name]).data)
    return state.hexdigest()


def read_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the header of a file by `write_arrays`; its header must have `kind` under "kind"."""
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
        raise FileFormatError(f"{source} is a safetensors file, but was not written by subchain.") from None
    except RecursionError:
        raise FileFormatError(f"{source} is damaged: its header is nested too deeply.") from None
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise FileFormatError(f"{source} is damaged, truncated, or not a subchain file ({error}).") from None
    if metadata.get(CHECKSUM) != _checksum(arrays, metadata[HEADER]):
        raise FileFormatError(f"{source} is damaged: its contents do not match its checksum.")
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise FileFormatError(f"{source} holds a {found or 'file of another kind'}, not a {kind}.")
    if _is_deeper(header, MAX_DEPTH):
        raise FileFormatError(f"{source} is damaged: its header is nested more than {MAX_DEPTH} levels deep.")
    return arrays, header


def stored_kind(path: str | os.PathLike[str]) -> str | None:
    """Return the "kind" in the header of a file by `write_arrays`, None if it has none; nothing is checked yet."""
    from safetensors import SafetensorError, safe_open

    source = Path(path)
    if not source.is_file():
        raise InputError(f"there is no file {source}.")
    try:
        with safe_open(str(source), framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get(HEADER, "null"))
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{source} is damaged, truncated, or not a subchain file ({error}).") from None
    kind = header.get("kind") if isinstance(header, dict) else None
    return kind if isinstance(kind, str) else None


def check_version(path: str | os.PathLike[str], header: Mapping[str, Any], version: int) -> None:
    """Raise a `FileFormatError` if a header has no version, or a later one than `version`."""
    if type(header.get("version")) is not int or header["version"] > version:
        by = f"subchain {header['subchain']}" if "subchain" in header else "subchain"
        raise FileFormatError(f"{path} was written by {by} in a newer format; update the package to read it.")


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether JSON values are nested more than `levels` levels deep."""
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in inner if isinstance(item, (dict, list)))


@contextmanager
def naming(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Name the file in every `FileFormatError` of what was stored in it; without a path do nothing."""
    try:
        yield
    except FileFormatError as error:
        if path is None or str(error).startswith(str(path)):
            raise
        raise FileFormatError(f"{path} cannot be used: {str(error).rstrip('.')}.") from None


@contextmanager
def reading(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Turn every error of what was stored in a file into a `FileFormatError` that names the file."""
    try:
        with naming(path):
            yield
    except FileFormatError:
        raise
    except SubchainError as error:
        raise FileFormatError(f"{path} cannot be used: {str(error).rstrip('.')}.") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise FileFormatError(f"{path} is damaged: its header does not fit its arrays ({error!r}).") from None
