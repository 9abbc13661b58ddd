"""Files of a living process: locked as long as it runs, so that what a killed one left behind can be recognised.

The system releases the lock of a process that ends, however it ends. A file that no process has locked, and that has a
name which only this package gives, is a leftover. Systems without such locks keep their leftovers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: How names of files begin that are removed when no process holds them.
PREFIX = "subchain-"


def lock(file: IO[Any]) -> bool:
    """Lock a file until it is closed; return False if another process, or another open file, has locked it.

    On file systems without locks it is taken for locked by this process.
    """
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # there are no locks here
        return True
    return True


def _can_lock(file: IO[Any]) -> bool:
    """Return whether the file system of an open file has locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def create_locked(name: Callable[[], Path]) -> tuple[Path, IO[bytes]]:
    """Create a file under a new name, and lock it as long as the returned file is open."""
    while True:
        path = name()
        file = open(path, "xb")  # noqa: SIM115  (it stays open)
        with contextlib.suppress(FileNotFoundError):
            if lock(file) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return path, file
        file.close()  # taken for a leftover before it was locked


def leftovers(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the user's own files of this pattern that no process holds; each is locked until the next is asked for."""
    for path in folder.glob(pattern) if fcntl is not None else ():
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid == os.getuid() and _can_lock(file) and lock(file):
                yield path
