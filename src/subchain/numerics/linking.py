"""Kernels that call other kernels, instead of containing copies of them.

Numba puts a copy of every function that a kernel calls into the kernel, with all that these functions call in turn, and
optimises and translates everything again. For small pieces that is right: they are to be inlined. Large functions,
which are not inlined anyway, would be translated once more in every kernel above them, for every family of emissions.
A function compiled by `called` offers other kernels its name alone, and its machine code exists once.

A kernel that was read from Numba's cache on disk cannot run before the functions that it calls are in memory. Every
kernel of the package, called or not, is therefore compiled by a decorator of this module: its entry in the cache names
the functions that it calls, and they are read, or compiled, before it. Names must be the same in all processes, so a
checksum of the types of arguments takes the place of Numba's running number.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, misc, import-untyped, attr-defined"

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any
from zlib import crc32

from llvmlite import binding
from numba import njit
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.compiler import Compiler
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from subchain.numerics.kernel_cache import KernelCache, source_digest

#: Nothing calls kernels by pointers of C: the functions for that would only be compiled beside every kernel.
NO_C = {"no_cfunc_wrapper": True}

#: All functions that are called by their names.
_CALLED: list[Any] = []


def linked(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator like `numba.njit`, with a cache: kernels that call the function get a copy of it."""
    return partial(_compile, options | {"pipeline_class": _Linked})


def called(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator like `numba.njit`, with a cache: kernels that call the function share its machine code.

    Such functions belong to modules: they are found by the name of their module and their own.
    """
    return partial(_compile, options | {"pipeline_class": _Called})


class _Flags(set[str]):
    """Flags of arithmetic; their text is part of the names of functions and must not depend on the order of a set."""

    def __repr__(self) -> str:
        return str(sorted(self))


def _compile(options: dict[str, Any], function: Callable[..., Any]) -> Any:
    flags = _Flags(options.get("fastmath", ()))
    kernel = njit(**{"nogil": True} | NO_C | options | {"fastmath": flags})(function)
    if kernel is not function:  # as it is with compilation switched off
        kernel._cache = KernelCache(partial(_Cache, kernel.py_func))
        if options["pipeline_class"] is _Called:
            _CALLED.append(kernel)
    return kernel


class _Linked(Compiler):
    """Numba's compiler; its results remember which functions they call."""

    def _compile_bytecode(self):
        result = super()._compile_bytecode()
        declared = {function.name for function in result.library._final_module.functions if function.is_declaration}
        for kernel in _CALLED:
            for callee in kernel.overloads.values():
                symbol = callee.fndesc.llvm_func_name
                if symbol in declared:
                    place = kernel.__module__, kernel.__name__
                    result.reload_init.append(partial(_load, *place, callee.signature, symbol))
        return result


class _Called(_Linked):
    """The same for functions that offer their names alone to other kernels."""

    def _compile_bytecode(self):
        self.state.func_id.unique_id = crc32(repr([_full_name(kind) for kind in self.state.args]).encode())
        result = super()._compile_bytecode()
        module = result.library._final_module
        shell = binding.parse_assembly("")
        shell.triple, shell.data_layout = module.triple, module.data_layout
        result.library._shared_module = shell
        defined = [function.name for function in module.functions if not function.is_declaration]
        result.reload_init.append(partial(_define, defined))
        return result


def _full_name(kind: types.Type) -> str:
    """Return the name of a type with the modules of named tuples, which Numba leaves out."""
    inner = [_full_name(part) for part in kind] if isinstance(kind, types.BaseTuple) else kind
    return f"{getattr(kind, 'instance_class', '')}{inner}"


def _define(names: list[str]) -> None:
    """Tell Numba which functions an entry of the cache defines; it would look for them in what kernels may copy."""
    cpu_target.target_context.codegen()._engine._defined_symbols.update(names)


def _load(module: str, name: str, signature: Any, symbol: str) -> None:
    """Have a function in memory before a kernel that calls it by the name of its machine code."""
    try:
        kernel = getattr(importlib.import_module(module), name)
        kernel.compile(signature.args)
    except (ImportError, AttributeError, NumbaError) as error:
        raise _OutdatedError from error
    found = kernel.overloads[signature.args]
    if (found.signature, found.fndesc.llvm_func_name) != (signature, symbol):
        raise _OutdatedError


class _OutdatedError(Exception):
    """An entry of the cache belongs to another version of the functions that it calls."""


class _Cache(FunctionCache):
    """Numba's cache on disk; entries that belong to other versions of any file of the package are compiled anew."""

    def __init__(self, py_func):
        super().__init__(py_func)
        self._cache_file._source_stamp = (self._cache_file._source_stamp, source_digest())

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except _OutdatedError:
            return None
