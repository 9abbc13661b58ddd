"""Numbers that threads claim one after the other, without Python's lock."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _claim(typing_context, counter):
    """Return the number in `counter`, an array (1,) of int64, and raise it by one; no other thread gets the same."""

    def generate(context, builder, kinds, values):
        place = context.make_array(kinds.args[0])(context, builder, values[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), generate


claim: Any = intrinsic(_claim)
