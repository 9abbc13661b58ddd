"""LLVM code of the functions on vectors: memory, arithmetic, comparisons and sums."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from subchain.numerics.vectors.functions import (
    WIDTH,
    all_within,
    at_most,
    except_at,
    fetch,
    first,
    largest,
    load,
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
from subchain.numerics.vectors.types import DOUBLES, INDEX, INDICES, INTEGERS, VECTOR, Mask, Vector


def constant(value):
    """Return the LLVM constant whose entries all equal `value`."""
    return ir.Constant(DOUBLES, [value] * WIDTH)


def _spread(builder, scalar, kind):
    """Emit a vector whose entries all equal one scalar."""
    empty = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(empty, scalar, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(INDICES, [0] * WIDTH))


def _address(context, builder, kinds, table, row, column):
    """Emit a pointer to table[row, column]; `kinds` begins with the types of table, row and column."""
    array = context.make_array(kinds[0])(context, builder, table)
    row, column = (
        context.cast(builder, value, kind, types.intp) for value, kind in ((row, kinds[1]), (column, kinds[2]))
    )
    stride = builder.extract_value(array.strides, 0)
    line = cgutils.pointer_add(builder, array.data, builder.mul(row, stride), array.data.type)
    return builder.gep(line, [column])


def _addresses(context, builder, kinds, *entry):
    """Emit a pointer to the vector that begins at table[row, column]."""
    return builder.bitcast(_address(context, builder, kinds, *entry), DOUBLES.as_pointer())


def _call(builder, name, result, *arguments):
    """Emit a call of an LLVM intrinsic."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


@lower_builtin(zeros)
def _zeros(context, builder, sig, args):
    return constant(0.0)


@lower_builtin(spread, types.Array, types.Integer, types.Integer)
def _spread_entry(context, builder, sig, args):
    return _spread(builder, builder.load(_address(context, builder, sig.args, *args)), DOUBLES)


@lower_builtin(first, types.Integer)
def _first(context, builder, sig, args):
    count = context.cast(builder, args[0], sig.args[0], types.intp)
    return builder.icmp_signed("<", ir.Constant(INTEGERS, list(range(WIDTH))), _spread(builder, count, INTEGERS))


@lower_builtin(load, types.Array, types.Integer, types.Integer, types.NoneType)
def _load(context, builder, sig, args):
    loaded = builder.load(_addresses(context, builder, sig.args, *args[:3]))
    loaded.align = 8
    return loaded


@lower_builtin(load, types.Array, types.Integer, types.Integer, Mask)
def _load_some(context, builder, sig, args):
    entries, align = _addresses(context, builder, sig.args, *args[:3]), ir.Constant(ir.IntType(32), 8)
    return _call(builder, f"llvm.masked.load.v{WIDTH}f64.p0", DOUBLES, entries, align, args[3], constant(0.0))


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
    """Emit the transpose of a WIDTH × WIDTH block: exchange halves, then quarters, down to single entries."""
    half = WIDTH // 2
    while half:
        upper = [c - half + WIDTH if c & half else c for c in range(WIDTH)]
        lower = [c + WIDTH if c & half else c + half for c in range(WIDTH)]
        mixed = list(rows)
        for i in (i for i in range(WIDTH) if not i & half):
            mixed[i] = builder.shuffle_vector(rows[i], rows[i + half], ir.Constant(INDICES, upper))
            mixed[i + half] = builder.shuffle_vector(rows[i], rows[i + half], ir.Constant(INDICES, lower))
        rows, half = mixed, half // 2
    return rows


@lower_builtin(turned, types.Array, types.Array, types.Integer, types.Integer, types.NoneType)
@lower_builtin(turned, types.Array, types.Array, types.Integer, types.Integer, Mask)
def _turned(context, builder, sig, args):
    table, rows, at, column, mask = args
    load_row = _load if isinstance(sig.args[4], types.NoneType) else _load_some
    load_sig = signature(VECTOR, sig.args[0], types.intp, sig.args[3], sig.args[4])
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
    is_positive = builder.fcmp_ordered(">", args[0], constant(0.0))
    return builder.select(is_positive, builder.fdiv(constant(1.0), args[0]), constant(0.0))


@lower_builtin(at_most, Vector, types.Float)
def _at_most(context, builder, sig, args):
    values, bound = args[0], _spread(builder, args[1], DOUBLES)
    return builder.select(builder.fcmp_ordered("<", values, bound), values, bound)


@lower_builtin(largest, Vector, Vector)
def _largest(context, builder, sig, args):
    return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])


@lower_builtin(all_within, Vector, types.Float, types.Float)
def _all_within(context, builder, sig, args):
    above = builder.fcmp_ordered(">=", args[0], _spread(builder, args[1], DOUBLES))
    below = builder.fcmp_ordered("<=", args[0], _spread(builder, args[2], DOUBLES))
    bits = builder.bitcast(builder.and_(above, below), ir.IntType(WIDTH))
    return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, (1 << WIDTH) - 1))


@lower_builtin(minus, Vector, Vector)
def _minus(context, builder, sig, args):
    return builder.fsub(*args)


@lower_builtin(times, Vector, types.Float)
def _times(context, builder, sig, args):
    return builder.fmul(args[0], _spread(builder, args[1], DOUBLES))


@lower_builtin(running, Vector)
def _running(context, builder, sig, args):
    """Emit a parallel prefix sum: add the entry one place before, then two places before, then four."""
    values, step = args[0], 1
    while step < WIDTH:
        shifted = [i - step if i >= step else WIDTH for i in range(WIDTH)]
        values = builder.fadd(values, builder.shuffle_vector(values, constant(0.0), ir.Constant(INDICES, shifted)))
        step *= 2
    return values


@lower_builtin(reached, Vector, types.Float)
def _reached(context, builder, sig, args):
    below = builder.fcmp_ordered("<=", args[0], _spread(builder, args[1], DOUBLES))
    bits = builder.zext(builder.bitcast(below, ir.IntType(WIDTH)), ir.IntType(64))
    return builder.ctpop(bits)


@lower_builtin(except_at, Vector, types.Integer)
def _except_at(context, builder, sig, args):
    place = context.cast(builder, args[1], sig.args[1], types.intp)
    places = ir.Constant(INTEGERS, list(range(WIDTH)))
    here = builder.icmp_signed("==", places, _spread(builder, place, INTEGERS))
    return builder.select(here, constant(0.0), args[0])


@lower_builtin(fetch, types.Array, types.Integer, types.Integer)
def _fetch(context, builder, sig, args):
    entry = builder.bitcast(_address(context, builder, sig.args, *args), cgutils.voidptr_t)
    for_reading, keep, data = (ir.Constant(INDEX, value) for value in (0, 3, 1))
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
        lower_builtin(_operator, Vector, Vector)(_lower)
