"""Vectors of doubles as values inside compiled kernels: what the registers of the processor hold.

A compiler that is given loops over an array writes every intermediate result back to memory. A kernel that names its
vectors keeps its sums in registers from the first term to the last, and comes near the speed of the arithmetic itself.
A vector is `WIDTH` neighbouring entries of a row of a table. It adds and multiplies like a number and exists only while
a kernel runs; where compilation is switched off it is an array of `WIDTH` entries.

A mask says which entries of a vector exist in memory; `None` stands for all of them and costs nothing. Tables are
C-contiguous and indices are not checked.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

import operator
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_jitable, register_model, type_callable

#: Entries of a vector: a cache line of doubles, one register of the widest processors and two or four of others.
WIDTH = 8

#: Logarithm below which an exponential counts as zero; doubles that are not subnormal reach a little further.
LOWEST_EXPONENT = -700.0
#: Smallest double that has all its digits.
LEAST_NORMAL = float(np.finfo(np.float64).tiny)


# ---- what kernels call: the plain functions say what the compiled ones do --------------------------------------------


def zeros() -> Any:
    """A vector of zeros."""
    return np.zeros(WIDTH)


def spread(table: Any, row: Any, column: Any) -> Any:
    """A vector all of whose entries are that one of a table."""
    return np.full(WIDTH, table[row, column])


def first(count: Any) -> Any:
    """The mask of the first `count` entries."""
    return np.arange(WIDTH) < count


def load(table: Any, row: Any, column: Any, mask: Any) -> Any:
    """Entries of a row from `column` on; zero where the mask is off."""
    out = np.zeros(WIDTH)
    count = WIDTH if mask is None else np.count_nonzero(mask)
    out[:count] = table[row, column : column + count]
    return out


def store(table: Any, row: Any, column: Any, mask: Any, values: Any) -> None:
    """Write entries of a row from `column` on, where the mask is on."""
    count = WIDTH if mask is None else np.count_nonzero(mask)
    table[row, column : column + count] = values[:count]


def turned(table: Any, rows: Any, at: Any, column: Any, mask: Any) -> Any:
    """A block of `WIDTH` rows of a table, as one vector for each of its `WIDTH` columns.

    The rows are `rows[at]` and those that follow it in `rows`, negative ones counting from the end; the columns begin
    with `column`, and the mask says which of them exist.
    """
    return tuple(np.array([load(table, row, column, mask) for row in rows[at : at + WIDTH]]).T)


def reciprocal(values: Any) -> Any:
    """1 / values where these are positive, zero elsewhere."""
    positive = values > 0.0
    return np.where(positive, 1.0 / np.where(positive, values, 1.0), 0.0)


def at_most(values: Any, bound: Any) -> Any:
    """The values, or the bound where they exceed it."""
    return np.where(values < bound, values, bound)


def largest(values: Any, others: Any) -> Any:
    """The larger of two values, entry by entry; the second where the first is not a number."""
    return np.where(values > others, values, others)


def exponential(values: Any) -> Any:
    """e to the values, which are not above zero; zero where they are below `LOWEST_EXPONENT`.

    To be called from kernels whose additions may not be reordered.
    """
    return np.where(values < LOWEST_EXPONENT, 0.0, np.exp(np.maximum(values, LOWEST_EXPONENT)))


def logarithm(values: Any) -> Any:
    """Natural logarithms of positive values; minus infinity where they are below the smallest normal double.

    To be called from kernels whose additions may not be reordered.
    """
    return np.where(values < LEAST_NORMAL, -np.inf, np.log(np.maximum(values, LEAST_NORMAL)))


def running(values: Any) -> Any:
    """Sums of the entries up to and with each."""
    return np.cumsum(values)


def reached(values: Any, bound: Any) -> Any:
    """How many entries are at most the bound."""
    return int(np.count_nonzero(values <= bound))


def except_at(values: Any, place: Any) -> Any:
    """The values with a zero at one place; all of them if there is no such place."""
    return np.where(np.arange(WIDTH) == place, 0.0, values)


def fetch(table: Any, row: Any, column: Any) -> None:
    """Ask for an entry to be brought near, along with its neighbours; any place may be named."""


def all_within(values: Any, low: Any, high: Any) -> Any:
    """Whether every entry is at least `low` and at most `high`."""
    return bool(np.all((values >= low) & (values <= high)))


def minus(values: Any, others: Any) -> Any:
    """The difference of two vectors."""
    return values - others


def times(values: Any, factor: Any) -> Any:
    """The product of a vector and a number."""
    return values * factor


def total(values: Any) -> Any:
    """Sum of the entries."""
    return values.sum()


@register_jitable
def aligned(rows: Any, columns: Any) -> Any:
    """A table that begins at a cache line, holding whatever was there before."""
    buffer = np.empty(rows * columns + WIDTH)
    start = -(buffer.ctypes.data // 8) % WIDTH
    return buffer[start : start + rows * columns].reshape(rows, columns)


# ---- types -----------------------------------------------------------------------------------------------------------


class Vector(types.Type):
    """The type of `WIDTH` doubles."""

    def __init__(self) -> None:
        super().__init__(name="Vector")


class Mask(types.Type):
    """The type of `WIDTH` truth values."""

    def __init__(self) -> None:
        super().__init__(name="Mask")


_VECTOR, _MASK = Vector(), Mask()
_INDEX = ir.IntType(32)
_DOUBLES, _BITS, _INTEGERS, _INDICES = (
    ir.VectorType(kind, WIDTH) for kind in (ir.DoubleType(), ir.IntType(1), ir.IntType(64), _INDEX)
)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, _DOUBLES)


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager, kind) -> None:
        super().__init__(manager, kind, _BITS)


def _is_table(kind):
    return isinstance(kind, types.Array) and kind.dtype == types.float64 and kind.ndim == 2 and kind.layout == "C"


@type_callable(zeros)
def _type_zeros(context):
    return lambda: _VECTOR


@type_callable(spread)
def _type_spread(context):
    return lambda table, row, column: _VECTOR if _is_table(table) else None


@type_callable(first)
def _type_first(context):
    return lambda count: _MASK


@type_callable(load)
def _type_load(context):
    return lambda table, row, column, mask: _VECTOR if _is_table(table) else None


@type_callable(store)
def _type_store(context):
    return lambda table, row, column, mask, values: types.void if _is_table(table) else None


@type_callable(turned)
def _type_turned(context):
    return lambda table, rows, at, column, mask: types.UniTuple(_VECTOR, WIDTH) if _is_table(table) else None


@type_callable(reciprocal)
def _type_reciprocal(context):
    return lambda values: _VECTOR


@type_callable(at_most)
def _type_at_most(context):
    return lambda values, bound: _VECTOR


@type_callable(largest)
def _type_largest(context):
    return lambda values, others: _VECTOR


@type_callable(all_within)
def _type_all_within(context):
    return lambda values, low, high: types.boolean


@type_callable(minus)
def _type_minus(context):
    return lambda values, others: _VECTOR


@type_callable(times)
def _type_times(context):
    return lambda values, factor: _VECTOR


@type_callable(exponential)
def _type_exponential(context):
    return lambda values: _VECTOR


@type_callable(logarithm)
def _type_logarithm(context):
    return lambda values: _VECTOR


@type_callable(running)
def _type_running(context):
    return lambda values: _VECTOR


@type_callable(reached)
def _type_reached(context):
    return lambda values, bound: types.int64


@type_callable(except_at)
def _type_except_at(context):
    return lambda values, place: _VECTOR


@type_callable(fetch)
def _type_fetch(context):
    return lambda table, row, column: types.void if _is_table(table) else None


@type_callable(total)
def _type_total(context):
    return lambda values: types.float64


class _Arithmetic(ConcreteTemplate):
    cases: ClassVar = [signature(_VECTOR, _VECTOR, _VECTOR)]


# ---- machine code ----------------------------------------------------------------------------------------------------


def _constant(value):
    return ir.Constant(_DOUBLES, [value] * WIDTH)


def _spread(builder, scalar, kind):
    """All entries of a vector equal to one scalar."""
    empty = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(empty, scalar, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(_INDICES, [0] * WIDTH))


def _address(context, builder, kinds, table, row, column):
    """Pointer to an entry of a table; `kinds` begins with the types of the last three arguments."""
    array = context.make_array(kinds[0])(context, builder, table)
    row, column = (
        context.cast(builder, value, kind, types.intp) for value, kind in ((row, kinds[1]), (column, kinds[2]))
    )
    stride = builder.extract_value(array.strides, 0)
    line = cgutils.pointer_add(builder, array.data, builder.mul(row, stride), array.data.type)
    return builder.gep(line, [column])


def _addresses(context, builder, kinds, *entry):
    return builder.bitcast(_address(context, builder, kinds, *entry), _DOUBLES.as_pointer())


def _call(builder, name, result, *arguments):
    """Call a function that the compiler knows, whose name ends with the type of vectors."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


@lower_builtin(zeros)
def _zeros(context, builder, sig, args):
    return _constant(0.0)


@lower_builtin(spread, types.Array, types.Integer, types.Integer)
def _spread_entry(context, builder, sig, args):
    return _spread(builder, builder.load(_address(context, builder, sig.args, *args)), _DOUBLES)


@lower_builtin(first, types.Integer)
def _first(context, builder, sig, args):
    count = context.cast(builder, args[0], sig.args[0], types.intp)
    return builder.icmp_signed("<", ir.Constant(_INTEGERS, list(range(WIDTH))), _spread(builder, count, _INTEGERS))


@lower_builtin(load, types.Array, types.Integer, types.Integer, types.NoneType)
def _load(context, builder, sig, args):
    loaded = builder.load(_addresses(context, builder, sig.args, *args[:3]))
    loaded.align = 8
    return loaded


@lower_builtin(load, types.Array, types.Integer, types.Integer, Mask)
def _load_some(context, builder, sig, args):
    entries, align = _addresses(context, builder, sig.args, *args[:3]), ir.Constant(ir.IntType(32), 8)
    return _call(builder, f"llvm.masked.load.v{WIDTH}f64.p0", _DOUBLES, entries, align, args[3], _constant(0.0))


@lower_builtin(store, types.Array, types.Integer, types.Integer, types.NoneType, Vector)
def _store(context, builder, sig, args):
    builder.store(args[4], _addresses(context, builder, sig.args, *args[:3]), align=8)
    return context.get_dummy_value()


@lower_builtin(store, types.Array, types.Integer, types.Integer, Mask, Vector)
def _store_some(context, builder, sig, args):
    entries, align = _addresses(context, builder, sig.args, *args[:3]), ir.Constant(ir.IntType(32), 8)
    _call(builder, f"llvm.masked.store.v{WIDTH}f64.p0", ir.VoidType(), args[4], entries, align, args[3])
    return context.get_dummy_value()


def _transpose(builder, rows):
    """Turn a square block: exchange its halves, then the quarters of each half, down to single entries."""
    half = WIDTH // 2
    while half:
        upper = [c - half + WIDTH if c & half else c for c in range(WIDTH)]
        lower = [c + WIDTH if c & half else c + half for c in range(WIDTH)]
        mixed = list(rows)
        for i in (i for i in range(WIDTH) if not i & half):
            mixed[i] = builder.shuffle_vector(rows[i], rows[i + half], ir.Constant(_INDICES, upper))
            mixed[i + half] = builder.shuffle_vector(rows[i], rows[i + half], ir.Constant(_INDICES, lower))
        rows, half = mixed, half // 2
    return rows


@lower_builtin(turned, types.Array, types.Array, types.Integer, types.Integer, types.NoneType)
@lower_builtin(turned, types.Array, types.Array, types.Integer, types.Integer, Mask)
def _turned(context, builder, sig, args):
    table, rows, at, column, mask = args
    load_row = _load if isinstance(sig.args[4], types.NoneType) else _load_some
    load_sig = signature(_VECTOR, sig.args[0], types.intp, sig.args[3], sig.args[4])
    indices = context.make_array(sig.args[1])(context, builder, rows)
    stride = builder.extract_value(indices.strides, 0)
    n_rows = builder.extract_value(context.make_array(sig.args[0])(context, builder, table).shape, 0)
    at = context.cast(builder, at, sig.args[2], types.intp)
    block = []
    for i in range(WIDTH):
        offset = builder.mul(builder.add(at, ir.Constant(at.type, i)), stride)
        row = builder.load(cgutils.pointer_add(builder, indices.data, offset, indices.data.type))
        from_end = builder.icmp_signed("<", row, ir.Constant(row.type, 0))
        row = builder.select(from_end, builder.add(row, n_rows), row)
        block.append(load_row(context, builder, load_sig, (table, row, column, mask)))
    return context.make_tuple(builder, sig.return_type, _transpose(builder, block))


@lower_builtin(reciprocal, Vector)
def _reciprocal(context, builder, sig, args):
    is_positive = builder.fcmp_ordered(">", args[0], _constant(0.0))
    return builder.select(is_positive, builder.fdiv(_constant(1.0), args[0]), _constant(0.0))


@lower_builtin(at_most, Vector, types.Float)
def _at_most(context, builder, sig, args):
    values, bound = args[0], _spread(builder, args[1], _DOUBLES)
    return builder.select(builder.fcmp_ordered("<", values, bound), values, bound)


@lower_builtin(largest, Vector, Vector)
def _largest(context, builder, sig, args):
    return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])


@lower_builtin(all_within, Vector, types.Float, types.Float)
def _all_within(context, builder, sig, args):
    above = builder.fcmp_ordered(">=", args[0], _spread(builder, args[1], _DOUBLES))
    below = builder.fcmp_ordered("<=", args[0], _spread(builder, args[2], _DOUBLES))
    bits = builder.bitcast(builder.and_(above, below), ir.IntType(WIDTH))
    return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, (1 << WIDTH) - 1))


@lower_builtin(minus, Vector, Vector)
def _minus(context, builder, sig, args):
    return builder.fsub(*args)


@lower_builtin(times, Vector, types.Float)
def _times(context, builder, sig, args):
    return builder.fmul(args[0], _spread(builder, args[1], _DOUBLES))


#: ln 2 in two parts, the first with zeros at its end, so that its multiples are exact.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
#: Added to a number of moderate size, this rounds it to a whole one and leaves that in the last bits.
_ROUNDER = 1.5 * 2.0**52
#: Interpolates the exponential at the zeros of a Chebyshev polynomial on ±½ ln 2: error 1.7e-17.
_EXPONENTIAL = (
    1.0,
    1.0,
    0.5000000000000019,
    0.1666666666666668,
    0.04166666666648795,
    0.008333333333319589,
    0.0013888888952352863,
    0.00019841269890076403,
    2.4801485441561313e-05,
    2.755724088722987e-06,
    2.763265472252779e-07,
    2.5110049204818658e-08,
)


@lower_builtin(exponential, Vector)
def _exponential(context, builder, sig, args):
    """2ⁿ · eʳ with a whole n and |r| ≤ ½ ln 2; n goes into the bits of the exponent."""
    is_low = builder.fcmp_ordered("<", args[0], _constant(LOWEST_EXPONENT))
    x = builder.select(is_low, _constant(LOWEST_EXPONENT), args[0])
    rounded = builder.fadd(builder.fmul(x, _constant(1.0 / np.log(2.0))), _constant(_ROUNDER))
    n = builder.fsub(rounded, _constant(_ROUNDER))
    r = builder.fsub(x, builder.fmul(n, _constant(_LN2_HIGH)))
    r = builder.fsub(r, builder.fmul(n, _constant(_LN2_LOW)))
    value = _constant(_EXPONENTIAL[-1])
    for coefficient in _EXPONENTIAL[-2::-1]:
        value = builder.fadd(builder.fmul(value, r), _constant(coefficient))
    shift = builder.shl(builder.bitcast(rounded, _INTEGERS), ir.Constant(_INTEGERS, [52] * WIDTH))
    scaled = builder.add(builder.bitcast(value, _INTEGERS), shift)
    return builder.select(is_low, _constant(0.0), builder.bitcast(scaled, _DOUBLES))


#: Interpolates (log m − 2 s) / s³ as a polynomial in s² for s = (m − 1) / (m + 1) and √½ ≤ m ≤ √2: error 5e-18.
_LOGARITHM = (
    0.666666666666667,
    0.39999999999899505,
    0.28571428625975487,
    0.2222221113479508,
    0.18182889125261723,
    0.15331721600556042,
    0.14616449685043406,
)
#: The bits of √½ and of the number that rounds, as whole numbers.
_ROOT_BITS, _ROUNDER_BITS = (int(np.float64(value).view(np.int64)) for value in (np.sqrt(0.5), _ROUNDER))


@lower_builtin(logarithm, Vector)
def _logarithm(context, builder, sig, args):
    """n · ln 2 + log m with a whole n, taken from the bits of the exponent, and m about one."""
    whole = [ir.Constant(_INTEGERS, [value] * WIDTH) for value in (_ROOT_BITS, _ROUNDER_BITS, 52)]
    bits = builder.bitcast(args[0], _INTEGERS)
    power = builder.ashr(builder.sub(bits, whole[0]), whole[2])
    m = builder.bitcast(builder.sub(bits, builder.shl(power, whole[2])), _DOUBLES)
    n = builder.fsub(builder.bitcast(builder.add(power, whole[1]), _DOUBLES), _constant(_ROUNDER))
    f = builder.fsub(m, _constant(1.0))
    s = builder.fdiv(f, builder.fadd(m, _constant(1.0)))
    z = builder.fmul(s, s)
    tail = _constant(_LOGARITHM[-1])
    for coefficient in _LOGARITHM[-2::-1]:
        tail = builder.fadd(builder.fmul(tail, z), _constant(coefficient))
    # log m = f − s (f − z · tail), since f = 2 s + s f: nothing is lost where f is small
    low = builder.fsub(builder.fmul(n, _constant(_LN2_LOW)), builder.fmul(s, builder.fsub(f, builder.fmul(z, tail))))
    found = builder.fadd(builder.fmul(n, _constant(_LN2_HIGH)), builder.fadd(f, low))
    is_zero = builder.fcmp_ordered("<", args[0], _constant(LEAST_NORMAL))
    return builder.select(is_zero, _constant(-np.inf), found)


@lower_builtin(running, Vector)
def _running(context, builder, sig, args):
    """Add what stands one place before, then what stands two before, and so on."""
    values, step = args[0], 1
    while step < WIDTH:
        shifted = [i - step if i >= step else WIDTH for i in range(WIDTH)]
        values = builder.fadd(values, builder.shuffle_vector(values, _constant(0.0), ir.Constant(_INDICES, shifted)))
        step *= 2
    return values


@lower_builtin(reached, Vector, types.Float)
def _reached(context, builder, sig, args):
    below = builder.fcmp_ordered("<=", args[0], _spread(builder, args[1], _DOUBLES))
    bits = builder.zext(builder.bitcast(below, ir.IntType(WIDTH)), ir.IntType(64))
    return builder.ctpop(bits)


@lower_builtin(except_at, Vector, types.Integer)
def _except_at(context, builder, sig, args):
    place = context.cast(builder, args[1], sig.args[1], types.intp)
    places = ir.Constant(_INTEGERS, list(range(WIDTH)))
    here = builder.icmp_signed("==", places, _spread(builder, place, _INTEGERS))
    return builder.select(here, _constant(0.0), args[0])


@lower_builtin(fetch, types.Array, types.Integer, types.Integer)
def _fetch(context, builder, sig, args):
    entry = builder.bitcast(_address(context, builder, sig.args, *args), cgutils.voidptr_t)
    for_reading, keep, data = (ir.Constant(_INDEX, value) for value in (0, 3, 1))
    _call(builder, "llvm.prefetch.p0", ir.VoidType(), entry, for_reading, keep, data)
    return context.get_dummy_value()


@lower_builtin(total, Vector)
def _total(context, builder, sig, args):
    start = ir.Constant(ir.DoubleType(), -0.0)
    return _call(builder, f"llvm.vector.reduce.fadd.v{WIDTH}f64", ir.DoubleType(), start, args[0])


def _add(context, builder, sig, args):
    return builder.fadd(*args)


def _multiply(context, builder, sig, args):
    return builder.fmul(*args)


for _operators, _lower in (((operator.add, operator.iadd), _add), ((operator.mul, operator.imul), _multiply)):
    for _operator in _operators:
        infer_global(_operator)(_Arithmetic)
        lower_builtin(_operator, Vector, Vector)(_lower)
