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
    load_doubles,
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
    turned_doubles,
    width,
    zeros,
)

#: LLVM's names of the floating types.
_FLOATS = {types.float64: ir.DoubleType(), types.float32: ir.FloatType()}


class Vector(types.Type):
    """Numba type of a vector: one cache line of numbers of a floating type.

    Attributes
    ----------
    element : floating type of the entries
    width : number of entries
    """

    def __init__(self, element) -> None:
        self.element = element
        self.width = WIDTH * 64 // element.bitwidth
        super().__init__(name=f"Vector({element})")

    @property
    def code(self):
        """LLVM's type."""
        return ir.VectorType(_FLOATS[self.element], self.width)

    @property
    def integers(self):
        """LLVM's type of as many integers of the same size."""
        return ir.VectorType(ir.IntType(self.element.bitwidth), self.width)


class Mask(types.Type):
    """Numba type of a mask of `width` booleans."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Mask({width})")


VECTOR, MASK = Vector(types.float64), Mask(WIDTH)
INDEX = ir.IntType(32)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, kind.code)


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.width))


def _is_table(kind):
    """Return whether a Numba type is a C-contiguous matrix of doubles or singles."""
    return isinstance(kind, types.Array) and kind.dtype in _FLOATS and kind.ndim == 2 and kind.layout == "C"


def _has_width(mask, width):
    """Return whether a mask, or None, goes with vectors of so many entries."""
    return isinstance(mask, types.NoneType) or (isinstance(mask, Mask) and mask.width == width)


def _type_of_load(table, row, column, mask):
    if _is_table(table) and _has_width(mask, Vector(table.dtype).width):
        return Vector(table.dtype)
    return None


@type_callable(width)
def _type_width(context):
    return lambda table: types.intp if isinstance(table, types.Array) and table.dtype in _FLOATS else None


@type_callable(zeros)
def _type_zeros(context):
    def typer(table=None):
        if table is None:
            return VECTOR
        return Vector(table.dtype) if _is_table(table) else None

    return typer


@type_callable(spread)
def _type_spread(context):
    return lambda table, row, column: Vector(table.dtype) if _is_table(table) else None


@type_callable(first)
def _type_first(context):
    def typer(count, table=None):
        if table is None:
            return MASK
        return Mask(Vector(table.dtype).width) if _is_table(table) else None

    return typer


@type_callable(load)
def _type_load(context):
    return _type_of_load


@type_callable(load_doubles)
def _type_load_doubles(context):
    return lambda table, row, column, mask: VECTOR if _is_table(table) and _has_width(mask, WIDTH) else None


@type_callable(store)
def _type_store(context):
    def typer(table, row, column, mask, values):
        fits = isinstance(values, Vector) and _has_width(mask, values.width)
        return types.void if _is_table(table) and fits else None

    return typer


@type_callable(turned)
def _type_turned(context):
    def typer(table, rows, at, column, mask):
        loaded = _type_of_load(table, rows, column, mask)
        return None if loaded is None else types.UniTuple(loaded, loaded.width)

    return typer


@type_callable(turned_doubles)
def _type_turned_doubles(context):
    def typer(table, rows, at, column, mask):
        return types.UniTuple(VECTOR, WIDTH) if _is_table(table) and _has_width(mask, WIDTH) else None

    return typer


@type_callable(reciprocal)
def _type_reciprocal(context):
    return lambda values: values


@type_callable(at_most)
def _type_at_most(context):
    return lambda values, bound: values


@type_callable(largest)
def _type_largest(context):
    return lambda values, others: values if values == others else None


@type_callable(all_within)
def _type_all_within(context):
    return lambda values, low, high: types.boolean


@type_callable(minus)
def _type_minus(context):
    return lambda values, others: values if values == others else None


@type_callable(times)
def _type_times(context):
    return lambda values, factor: values


@type_callable(exponential)
def _type_exponential(context):
    return lambda values: values


@type_callable(logarithm)
def _type_logarithm(context):
    return lambda values: VECTOR if values == VECTOR else None


@type_callable(running)
def _type_running(context):
    return lambda values: values


@type_callable(reached)
def _type_reached(context):
    return lambda values, bound: types.int64


@type_callable(except_at)
def _type_except_at(context):
    return lambda values, place: values


@type_callable(fetch)
def _type_fetch(context):
    return lambda table, row, column: types.void if _is_table(table) else None


@type_callable(total)
def _type_total(context):
    return lambda values: types.float64


class _Arithmetic(ConcreteTemplate):
    cases: ClassVar = [signature(kind, kind, kind) for kind in map(Vector, _FLOATS)]


for _operator in (operator.add, operator.iadd, operator.mul, operator.imul):
    infer_global(_operator)(_Arithmetic)
