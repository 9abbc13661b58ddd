"""Files that appear when they are complete: written under another name beside their place, and moved there."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from subchain.cli.exits import UnwritableError


def check_target(path: Path) -> None:
    """Refuse, before any work is done, a path that cannot be written."""
    folder = path.parent
    if not folder.is_dir():
        raise UnwritableError(f"cannot write {str(path)!r}: the folder {str(folder)!r} does not exist; make it first.")
    if path.is_dir():
        raise UnwritableError(f"cannot write {str(path)!r}: it is a folder; give the name of a file.")
    if not os.access(folder, os.W_OK):
        raise UnwritableError(f"cannot write {str(path)!r}: the folder {str(folder)!r} may not be written to.")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system speak of the file that was asked for."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def somewhere_else(name: str, write: Callable[[Path], None]) -> Path | None:
    """Write a file to a new folder among the temporary ones; None, and no folder, if that fails too."""
    folder = Path(tempfile.mkdtemp(prefix="subchain-"))
    try:
        write(folder / name)
    except OSError:
        folder.rmdir()
        return None
    return folder / name


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of `path` if all goes well, and is gone if not."""
    check_target(path)
    temporary = path.with_name(f".{secrets.token_hex(4)}.{path.name}")  # the end of the name says what is in it
    try:
        with naming(path):
            yield temporary
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def writing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """An open file that takes its place when it is complete and on the disk."""
    encoding = None if "b" in mode else "utf8"
    with replacing(path) as temporary, open(temporary, mode, encoding=encoding) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
