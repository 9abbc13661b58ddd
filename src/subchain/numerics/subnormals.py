"""Numbers below 1e-308 taken as zero: on many processors an operation on one costs as much as a hundred others.

States that are far from an observation have such likelihoods. Passes that lose nothing with them run in this way;
nothing else that the thread computes is affected.
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
#: Bits of the register: results that are subnormal become zero, and operands that are subnormal count as zero.
FLUSH, WORD = 0x8040, ir.IntType(32)


def _exchange(typing_context, control):
    """Set the control register of floating-point operations and return what it was."""

    def generate(context, builder, kinds, values):
        before, after = builder.alloca(WORD), builder.alloca(WORD)
        builder.store(builder.trunc(values[0], WORD), after)
        place = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [place])
        for name, slot in (("stmxcsr", before), ("ldmxcsr", after)):
            function = builder.module.declare_intrinsic(f"llvm.x86.sse.{name}", (), kind)
            builder.call(function, [builder.bitcast(slot, place)])
        return builder.zext(builder.load(before), ir.IntType(64))

    return types.int64(types.int64), generate


_exchanged: Any = intrinsic(_exchange)


@called()
def _set(control):
    return _exchanged(control)


#: The register as programs begin with it: all exceptions masked, rounding to nearest.
USUAL = 0x1F80


@contextmanager
def flushed() -> Iterator[None]:
    """Take subnormal numbers as zero in this thread."""
    if not IS_X86:
        yield
        return
    before = _set(USUAL | FLUSH)
    try:
        yield
    finally:
        _set(before)
