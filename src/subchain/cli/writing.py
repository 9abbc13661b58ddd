"""Where the files of commands may be written: checked before any work is done, and somewhere else in an emergency."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

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


def somewhere_else(name: str, write: Callable[[Path], None]) -> Path | None:
    """Write a file to a new folder among the temporary ones; None, and no folder, if that fails too."""
    folder = Path(tempfile.mkdtemp(prefix="subchain-"))
    try:
        write(folder / name)
    except OSError:
        folder.rmdir()
        return None
    return folder / name
