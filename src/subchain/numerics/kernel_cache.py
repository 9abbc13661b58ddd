"""A cache of compiled kernels on disk that is used where it can be.

Numba raises an error if it finds no folder for its cache (a read-only installation and home, as in containers), and if
the folder's disk is full or becomes read-only while kernels are compiled. Here that costs the time to compile them, and
a warning, but neither an import nor a fit.

Numba keeps a kernel as long as the file that defines it stays the same. What other files of the package put into it
(inlined functions, constants, implementations of verbs) may change with a new version of the package, while the old
kernels are still there; `source_digest` is therefore part of what a kept kernel must agree with.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock

#: The packages whose code may become part of a kernel of another file.
PARTS = ("core", "data", "emissions", "engines", "numerics", "propagation", "structures", "tables", "transitions")


@functools.cache
def source_digest() -> str:
    """Return a digest of all source files whose code may become part of kernels."""
    digest, package = hashlib.blake2b(digest_size=16), Path(__file__).parents[1]
    for part in PARTS:
        for folder, inner, names in os.walk(package / part):
            inner.sort()
            for name in sorted(names):
                if name.endswith(".py"):
                    digest.update(Path(folder, name).read_bytes())
    return digest.hexdigest()


class KernelCache(NullCache):
    """Numba's cache of one kernel, or none where that fails."""

    _has_warned = False

    def __init__(self, files: Callable[[], Any]) -> None:
        """Take what makes Numba's cache, which may fail."""
        self._failure: Exception | None = None
        self._files: Any = NullCache()
        try:
            self._files = files()
        except (RuntimeError, OSError) as error:  # no folder can be written
            self._failure = error

    @property
    def cache_path(self) -> str | None:
        path: str | None = self._files.cache_path
        return path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for a signature; None if it was not kept, or its files are damaged or cannot be read."""
        try:
            found = self._files.load_overload(sig, target_context)
            # processes that compile at the same time may write over each other's files
            if found is None or tuple(found.signature.args) == tuple(getattr(sig, "args", sig)):
                return found
            self._forget()
        except OSError as error:
            self._give_up(error)
        except Exception:  # a damaged pickle can raise anything; it is compiled and written anew
            self._forget()
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        try:
            self._files.save_overload(sig, cres)
        except OSError as error:
            self._give_up(error)
        if self._failure is not None:
            self._warn(self._failure)

    def _forget(self) -> None:
        """Delete the index: it may refer to a file that could not be written, where that of older code still is."""
        with contextlib.suppress(OSError):
            os.unlink(self._files._cache_file._index_path)

    def _give_up(self, error: Exception) -> None:
        self._forget()
        self._failure, self._files = error, NullCache()

    @classmethod
    def _warn(cls, failure: Exception) -> None:
        if not KernelCache._has_warned:
            KernelCache._has_warned = True
            warnings.warn(
                f"compiled kernels cannot be kept on disk, so every new process compiles them again ({failure}). Set "
                "the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
                stacklevel=2,
            )


if hasattr(os, "register_at_fork"):
    # A lock that another thread holds at a fork would never be released in the child, which could compile nothing.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
