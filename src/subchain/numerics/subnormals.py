"""Numbers below 1e-308 taken as zero: on many processors an operation on one costs as much as a hundred others.

States that are far from an observation have such likelihoods. Kernels that lose nothing with them begin with
`before = flush_subnormals()` and end with `restore_subnormals(before)`; nothing else that the thread computes is
affected. Both are instructions inside the kernel, so that no interruption of Python can come between them. A kernel
that raises an exception does not reach its end: `subnormals_after_errors` is put around the call.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from subchain.numerics.linking import called

#: Processors whose control register is known.
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
#: The register as programs begin with it: all exceptions masked, rounding to nearest.
USUAL = 0x1F80
#: Bits of the register: results that are subnormal become zero, and operands that are subnormal count as zero.
FLUSH = 0x8040

_WORD, _PLACE = ir.IntType(32), ir.IntType(8).as_pointer()


def _register(builder, name, slot):
    """Emit an instruction that reads or writes the control register of floating-point operations."""
    kind = ir.FunctionType(ir.VoidType(), [_PLACE])
    function = builder.module.declare_intrinsic(f"llvm.x86.sse.{name}", (), kind)
    builder.call(function, [builder.bitcast(slot, _PLACE)])


def _flush(typing_context):
    """Take subnormal numbers as zero in this thread; return what restores them."""

    def generate(context, builder, kinds, values):
        if not IS_X86:
            return ir.Constant(ir.IntType(64), 0)
        before, after = builder.alloca(_WORD), builder.alloca(_WORD)
        builder.store(ir.Constant(_WORD, USUAL | FLUSH), after)
        _register(builder, "stmxcsr", before)
        _register(builder, "ldmxcsr", after)
        return builder.zext(builder.load(before), ir.IntType(64))

    return types.int64(), generate


def _restore(typing_context, control):
    """Undo `flush_subnormals`, which returned `control`."""

    def generate(context, builder, kinds, values):
        if IS_X86:
            slot = builder.alloca(_WORD)
            builder.store(builder.trunc(values[0], _WORD), slot)
            _register(builder, "ldmxcsr", slot)
        return context.get_dummy_value()

    return types.void(types.int64), generate


flush_subnormals: Any = intrinsic(_flush)
restore_subnormals: Any = intrinsic(_restore)


@called()
def _reset(control):
    restore_subnormals(control)


@contextmanager
def subnormals_after_errors() -> Iterator[None]:
    """Restore subnormal numbers if a kernel that has flushed them ends with an exception."""
    try:
        yield
    except BaseException:
        _reset(USUAL)
        raise
