"""Matrix libraries limited to one thread each while chains run, since their idle threads occupy the engine's cores.

Most libraries have one number of threads for the whole process. Fits in several threads then share one limit: the first
sets it, and the last restores what was there before. With OpenMP every thread has a number of its own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

#: Libraries with their numbers of threads.
Numbers = list[tuple[Any, int | None]]


class SingleThreaded:
    """Context in which matrix libraries use one thread each; threads may enter it at the same time, and repeatedly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: list[int] = []
        self._shared: Numbers = []
        self._of_thread = threading.local()
        self._libraries: list[Any] = []
        self._n_modules = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._continue_in_child
            )

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            if not self._inside:
                self._find_libraries()
                self._shared = _limit(library for library in self._libraries if not _is_of_thread(library))
            if thread not in self._inside:
                self._of_thread.numbers = _limit(library for library in self._libraries if _is_of_thread(library))
            self._inside.append(thread)

    def __exit__(self, *error: object) -> None:
        thread = threading.get_ident()
        with self._lock:
            self._inside.remove(thread)
            if thread not in self._inside:
                _set(self._of_thread.numbers)
            if not self._inside:
                _set(self._shared)

    def _find_libraries(self) -> None:
        """Look for the libraries of the process; that is slow, and only new imports bring new ones."""
        if len(sys.modules) != self._n_modules:
            self._libraries, self._n_modules = ThreadpoolController().lib_controllers, len(sys.modules)

    def _continue_in_child(self) -> None:
        """Forget the other threads, which a forked process does not have."""
        was_limited, thread = bool(self._inside), threading.get_ident()
        self._inside = [inside for inside in self._inside if inside == thread]
        if was_limited and not self._inside:
            _set(self._shared)
        self._lock.release()


def _is_of_thread(library: Any) -> bool:
    return library.user_api == "openmp" or getattr(library, "threading_layer", None) == "openmp"


def _limit(libraries: Iterable[Any]) -> Numbers:
    """Limit libraries to one thread; return the numbers that they had."""
    before = [(library, library.num_threads) for library in libraries]
    _set([(library, 1) for library, number in before if number != 1])
    return before


def _set(numbers: Numbers) -> None:
    if not numbers:
        return
    _let_any_thread_set_numbers()
    for library, number in numbers:
        if number is not None:  # else the library does not tell it
            library.set_num_threads(number)
    _let_any_thread_set_numbers()


def _let_any_thread_set_numbers() -> None:
    """Since threadpoolctl 3.8 the first thread that sets a number of OpenBLAS keeps others from it."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


#: The limit of this process.
single_threaded = SingleThreaded()
