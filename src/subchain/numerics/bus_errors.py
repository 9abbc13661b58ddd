"""Memory maps of files that lose their pages: zeros and a mark, instead of a bus error that ends the process.

A page of a memory map cannot be read, or written, once the file behind it has been cut, or if its disk fails or is
full. The system then sends SIGBUS to the thread that touched the page. While maps are watched, a handler puts a page of
zeros in its place (and of all that follow in the map), marks the map as broken, and lets the thread go on. Whoever uses
the map must look at the mark before results are believed.

The handler runs in the middle of any instruction, so it is machine code that only reads and writes fixed places and
calls `mmap`, `sigaction` and `raise`, which are safe there. A bus error anywhere else is left to the handler that was
there before. This is for Linux; on other systems, no map is watched.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, import-untyped, misc"

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import signal
import sys
import threading
import weakref
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numpy.typing import NDArray

#: Systems whose structures and numbers are written here; they are the same for both processors.
IS_KNOWN = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64") and sys.maxsize > 2**32
#: Number of maps that can be watched at a time; others are not.
CAPACITY = 1024
#: Columns of the table of maps: first address, address behind the last, whether the map is broken.
FIRST, BEHIND, BROKEN, COLUMNS = 0, 1, 2, 3
#: Offsets in `siginfo_t` of the code, which is positive for errors of the system, and of the address.
CODE, ADDRESS = 8, 16
SA_SIGINFO, SA_ONSTACK = 0x4, 0x08000000
HANDLER = "on_bus_error"
_WORD, _NUMBER = ir.IntType(64), ir.IntType(32)
#: Readable and writable; private, at a fixed address, without a file, without a reservation of memory.
PROTECTION, MAP_FLAGS = 0x3, 0x2 | 0x10 | 0x20 | 0x4000


class _Action(ctypes.Structure):
    """`struct sigaction`."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class WatchedMap:
    """A memory map that is watched as long as this object lives; made by `watch`."""

    def __init__(self, row: NDArray[np.int64]) -> None:
        self._row = row

    @property
    def is_broken(self) -> bool:
        """Whether pages of the map have become zero."""
        return bool(self._row[BROKEN])


class _Watcher:
    """All watched maps of the process, and the handler, which is installed while there are any."""

    def __init__(self) -> None:
        self.table = np.zeros((CAPACITY, COLUMNS), dtype=np.int64)
        self._free = list(range(CAPACITY))
        self._watched: weakref.WeakValueDictionary[int, WatchedMap] = weakref.WeakValueDictionary()
        self._broken: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()  # pages stay zero as long as a map lives
        self._previous, self._default, self._own = _Action(), _Action(), _Action()
        self._was_passed_on = np.zeros(1, dtype=np.int64)
        self._code: Any = None
        self._begin_locking()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_locking)

    def _begin_locking(self) -> None:
        """Make the lock, and make it anew after a fork, at which another thread may have held it."""
        self._lock = threading.RLock()  # not a plain one: the collector may release a map while another is watched

    def watch(self, map_: mmap.mmap) -> WatchedMap | None:
        code = self._code or self._compile()  # before the lock is held: a thread that compiles may wait for the lock
        with self._lock:
            self._code = self._code or code
            self._own = _Action(handler=self._code[1], flags=SA_SIGINFO | SA_ONSTACK)
            found = self._watched.get(id(map_))
            if found is None and self._free:
                found = self._watched[id(map_)] = self._enter(map_)
                self._install()
            return found

    def renew(self) -> None:
        """Install the handler again if another has taken its place since the last map was entered."""
        with self._lock:
            if self._code is not None and len(self._free) < CAPACITY:
                self._install()

    def _enter(self, map_: mmap.mmap) -> WatchedMap:
        slot = self._free.pop()
        content = np.frombuffer(map_, dtype=np.uint8)
        first = content.__array_interface__["data"][0]
        behind = first + -(-len(content) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.table[slot] = first, behind, map_ in self._broken
        watched = WatchedMap(self.table[slot])
        weakref.finalize(watched, self._release, content, map_, slot).atexit = False
        return watched

    def _release(self, content: object, map_: mmap.mmap, slot: int) -> None:
        """Forget a map; it could not be closed before, because its content was in use."""
        with self._lock:
            if self.table[slot, BROKEN]:
                self._broken.add(map_)
            self.table[slot] = 0
            self._free.append(slot)
            if len(self._free) == CAPACITY and _current().handler == self._own.handler:
                _library().sigaction(signal.SIGBUS, ctypes.byref(self._previous), None)

    def _install(self) -> None:
        """Install the handler, also if another has taken its place since."""
        current = _current()
        if current.handler != self._own.handler:
            ctypes.pointer(self._previous)[0] = current
            self._was_passed_on[0] = 0
            _library().sigaction(signal.SIGBUS, ctypes.byref(self._own), None)

    def _compile(self) -> tuple[Any, int]:
        """Return the handler as machine code, which lives as long as the first item, and its address."""
        module = _handler(self.table, self._was_passed_on, self._previous, self._default)
        with global_compiler_lock:
            library = cpu_target.target_context.codegen().create_library(module.name)
            library.add_ir_module(module)
            library.finalize()
            return library, int(library.get_pointer_to_function(HANDLER))


def _current() -> _Action:
    """Return what happens at a bus error now."""
    current = _Action()
    _library().sigaction(signal.SIGBUS, None, ctypes.byref(current))
    return current


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(None)


class _Builder(ir.IRBuilder):
    """Instructions with addresses that are numbers."""

    def place(self, address: Any, kind: Any = _WORD) -> Any:
        """Return a pointer to an address."""
        return self.inttoptr(address, kind.as_pointer())

    def call_library(self, name: str, result: Any, kinds: list[Any], arguments: list[Any]) -> Any:
        """Call a function of the C library."""
        address = ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value
        return self.call(self.place(ir.Constant(_WORD, address), ir.FunctionType(result, kinds)), arguments)

    def cell(self, table: NDArray[np.int64], row: Any, column: int) -> Any:
        """Return a pointer to a cell of a table."""
        start = ir.Constant(_WORD, table.ctypes.data + table.itemsize * column)
        return self.place(self.add(start, self.mul(row, ir.Constant(_WORD, table.strides[0]))))


def _handler(table: Any, was_passed_on: Any, previous: _Action, default: _Action) -> Any:
    """Return the module of the handler, a function of signal, information and context.

    Two handlers that were each installed after the other would hand an error to each other for ever, so what is passed
    on for the second time meets the default.
    """
    word, number, constant = _WORD, _NUMBER, partial(ir.Constant, _WORD)
    module = ir.Module("bus_errors")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [number, word, word]), HANDLER)
    begin, loop, ours, following, foreign, back = map(
        function.append_basic_block, ("begin", "loop", "ours", "following", "foreign", "back")
    )
    number_of_signal, information, _ = function.args

    builder = _Builder(begin)
    code = builder.load(builder.place(builder.add(information, constant(CODE)), number))
    address = builder.load(builder.place(builder.add(information, constant(ADDRESS))))
    is_sent = builder.icmp_signed("<=", code, ir.Constant(number, 0))  # by a process; there is no address
    builder.cbranch(is_sent, foreign, loop)

    builder.position_at_end(loop)
    row = builder.phi(word)
    row.add_incoming(constant(0), begin)
    is_behind_first = builder.icmp_signed(">=", address, builder.load(builder.cell(table, row, FIRST)))
    behind = builder.load(builder.cell(table, row, BEHIND))
    is_inside = builder.and_(is_behind_first, builder.icmp_signed("<", address, behind))
    builder.cbranch(is_inside, ours, following)

    builder.position_at_end(following)
    next_row = builder.add(row, constant(1))
    row.add_incoming(next_row, following)
    builder.cbranch(builder.icmp_signed("<", next_row, constant(len(table))), loop, foreign)

    builder.position_at_end(ours)
    builder.store(constant(1), builder.cell(table, row, BROKEN))  # before anything can be read as zero
    page = builder.and_(address, constant(-mmap.PAGESIZE))
    found = builder.call_library(
        "mmap", word, [word, word, number, number, number, word],
        [page, builder.sub(behind, page), ir.Constant(number, PROTECTION), ir.Constant(number, MAP_FLAGS),
         ir.Constant(number, -1), constant(0)],
    )  # fmt: skip
    builder.cbranch(builder.icmp_signed("==", found, page), back, foreign)

    builder.position_at_end(foreign)
    passed = builder.place(constant(was_passed_on.ctypes.data))
    is_second = builder.icmp_signed("!=", builder.load(passed), constant(0))
    builder.store(constant(1), passed)
    action = builder.select(is_second, *(constant(ctypes.addressof(known)) for known in (default, previous)))
    builder.call_library("sigaction", number, [number, word, word], [number_of_signal, action, constant(0)])
    with builder.if_then(is_sent):
        builder.call_library("raise", number, [number], [number_of_signal])  # others come again by themselves
    builder.branch(back)

    builder.position_at_end(back)
    builder.ret_void()
    return module


_WATCHER = _Watcher()


def watch(map_: mmap.mmap) -> WatchedMap | None:
    """Watch a memory map as long as the result lives; None on systems for which this is not written.

    Examples
    --------
    >>> import mmap
    >>> watched = watch(mmap.mmap(-1, 100))
    >>> watched is not None and watched.is_broken
    False
    """
    return _WATCHER.watch(map_) if IS_KNOWN else None


def renew() -> None:
    """Watch again if another handler of bus errors has been installed meanwhile, as by `faulthandler.enable`."""
    if IS_KNOWN:
        _WATCHER.renew()
