"""Where the files of commands may be written: checked before any work is done, and somewhere else in an emergency."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from subchain.cli.exits import UnwritableError


def check_target(path: Path, *inputs: Path | None) -> None:
    """Refuse, before any work is done, a path that cannot be written, or that would take the place of an input."""
    folder = path.parent
    if any(given is not None and given.exists() and path.exists() and path.samefile(given) for given in inputs):
        raise UnwritableError(f"{str(path)!r} is also what is read, and would be lost; choose another name with -o.")
    if not folder.is_dir():
        raise UnwritableError(f"cannot write {str(path)!r}: the folder {str(folder)!r} does not exist; make it first.")
    if path.is_dir():
        raise UnwritableError(f"cannot write {str(path)!r}: it is a folder; give the name of a file.")
    if not os.access(folder, os.W_OK):
        raise UnwritableError(f"cannot write {str(path)!r}: the folder {str(folder)!r} may not be written to.")


def somewhere_else(name: str, write: Callable[[Path], None]) -> Path | None:
    """Write a file to a new folder among the temporary ones; None, and no folder, if that fails too."""
    folder = Path(tempfile.mkdtemp(prefix="subchain-"))
    try:
        write(folder / name)
    except OSError:
        folder.rmdir()
        return None
    return folder / name
