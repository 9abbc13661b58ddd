"""Numba types of vectors and masks, and the signatures of the functions on them."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

import operator
from typing import ClassVar

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import models, register_model, type_callable

from subchain.numerics.vectors.functions import (
    WIDTH,
    all_within,
    at_most,
    except_at,
    exponential,
    fetch,
    first,
    largest,
    load,
    logarithm,
    minus,
    reached,
    reciprocal,
    running,
    spread,
    store,
    times,
    total,
    turned,
    zeros,
)


class Vector(types.Type):
    """Numba type of a vector of `WIDTH` doubles."""

    def __init__(self) -> None:
        super().__init__(name="Vector")


class Mask(types.Type):
    """Numba type of a mask of `WIDTH` booleans."""

    def __init__(self) -> None:
        super().__init__(name="Mask")


VECTOR, MASK = Vector(), Mask()
INDEX = ir.IntType(32)
DOUBLES, BITS, INTEGERS, INDICES = (
    ir.VectorType(kind, WIDTH) for kind in (ir.DoubleType(), ir.IntType(1), ir.IntType(64), INDEX)
)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, DOUBLES)


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, BITS)


def _is_table(kind):
    """Return whether a Numba type is a C-contiguous matrix of doubles."""
    return isinstance(kind, types.Array) and kind.dtype == types.float64 and kind.ndim == 2 and kind.layout == "C"


@type_callable(zeros)
def _type_zeros(context):
    return lambda: VECTOR


@type_callable(spread)
def _type_spread(context):
    return lambda table, row, column: VECTOR if _is_table(table) else None


@type_callable(first)
def _type_first(context):
    return lambda count: MASK


@type_callable(load)
def _type_load(context):
    return lambda table, row, column, mask: VECTOR if _is_table(table) else None


@type_callable(store)
def _type_store(context):
    return lambda table, row, column, mask, values: types.void if _is_table(table) else None


@type_callable(turned)
def _type_turned(context):
    return lambda table, rows, at, column, mask: types.UniTuple(VECTOR, WIDTH) if _is_table(table) else None


@type_callable(reciprocal)
def _type_reciprocal(context):
    return lambda values: VECTOR


@type_callable(at_most)
def _type_at_most(context):
    return lambda values, bound: VECTOR


@type_callable(largest)
def _type_largest(context):
    return lambda values, others: VECTOR


@type_callable(all_within)
def _type_all_within(context):
    return lambda values, low, high: types.boolean


@type_callable(minus)
def _type_minus(context):
    return lambda values, others: VECTOR


@type_callable(times)
def _type_times(context):
    return lambda values, factor: VECTOR


@type_callable(exponential)
def _type_exponential(context):
    return lambda values: VECTOR


@type_callable(logarithm)
def _type_logarithm(context):
    return lambda values: VECTOR


@type_callable(running)
def _type_running(context):
    return lambda values: VECTOR


@type_callable(reached)
def _type_reached(context):
    return lambda values, bound: types.int64


@type_callable(except_at)
def _type_except_at(context):
    return lambda values, place: VECTOR


@type_callable(fetch)
def _type_fetch(context):
    return lambda table, row, column: types.void if _is_table(table) else None


@type_callable(total)
def _type_total(context):
    return lambda values: types.float64


class _Arithmetic(ConcreteTemplate):
    cases: ClassVar = [signature(VECTOR, VECTOR, VECTOR)]


for _operator in (operator.add, operator.iadd, operator.mul, operator.imul):
    infer_global(_operator)(_Arithmetic)
