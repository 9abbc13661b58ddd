"""Numbers that threads claim, and counters by which they wait for each other, without Python's lock."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from subchain.numerics.linking import linked


def _claim(typing_context, counter):
    """Return the number in `counter`, an array (1,) of int64, and raise it by one; no other thread gets the same."""

    def generate(context, builder, kinds, values):
        place = context.make_array(kinds.args[0])(context, builder, values[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), generate


claim: Any = intrinsic(_claim)


def _raise_by(typing_context, counter, amount):
    """Return the number in `counter`, an array (1,) of int64, and raise it; what was written before is then seen."""

    def generate(context, builder, kinds, values):
        place = context.make_array(kinds.args[0])(context, builder, values[0]).data
        return builder.atomic_rmw("add", place, values[1], "seq_cst")

    return types.int64(counter, types.int64), generate


def _replace(typing_context, counter, expected, new):
    """Return the number in `counter` and, if it is the expected one, put another in its place."""

    def generate(context, builder, kinds, values):
        place = context.make_array(kinds.args[0])(context, builder, values[0]).data
        return builder.extract_value(builder.cmpxchg(place, values[1], values[2], "seq_cst", "seq_cst"), 0)

    return types.int64(counter, types.int64, types.int64), generate


def _look(typing_context, counter):
    """Return the number in `counter`. Unlike a change by zero, this leaves the counter in the caches of all cores."""

    def generate(context, builder, kinds, values):
        place = context.make_array(kinds.args[0])(context, builder, values[0]).data
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(counter), generate


raise_by: Any = intrinsic(_raise_by)
replace: Any = intrinsic(_replace)
look: Any = intrinsic(_look)


@linked()
def claim_below(counter, limit):
    """Claim the next number if it is below the limit; return −1 otherwise."""
    while True:
        number = look(counter)
        if number >= limit:
            return -1
        if replace(counter, number, number + 1) == number:
            return number
