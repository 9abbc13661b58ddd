"""Output files of commands: checks before the computation, and a fallback if the write fails."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from subchain.cli.exit_codes import UnwritableError


def check_target(path: Path, *inputs: Path | None) -> None:
    """Raise an `UnwritableError` if a path cannot be written or is one of the other files of the command."""
    folder = path.parent
    if any(given is not None and _same(path, given) for given in inputs):
        raise UnwritableError(
            f"{str(path)!r} is also an input, or another output, and would be overwritten; choose another name."
        )
    if not folder.is_dir():
        raise UnwritableError(
            f"cannot write {str(path)!r}: the folder {str(folder)!r} does not exist; create it first."
        )
    if path.is_dir():
        raise UnwritableError(f"cannot write {str(path)!r}: it is a folder; give the name of a file.")
    if not os.access(folder, os.W_OK):
        raise UnwritableError(f"cannot write {str(path)!r}: there is no permission to write to {str(folder)!r}.")


def _same(path: Path, other: Path) -> bool:
    """Return whether two paths are one file, or will be when they have been written."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def write_elsewhere(name: str, write: Callable[[Path], None]) -> Path | None:
    """Write a file to a new temporary folder and return its path; None, without a folder, if that fails too."""
    folder = Path(tempfile.mkdtemp(prefix="subchain-"))
    try:
        write(folder / name)
    except OSError:
        folder.rmdir()
        return None
    return folder / name
