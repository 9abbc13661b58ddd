"""LLVM code of the functions on vectors: memory, arithmetic, comparisons and sums."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from subchain.numerics.vectors.functions import (
    all_within,
    at_most,
    except_at,
    fetch,
    first,
    largest,
    load,
    load_doubles,
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
from subchain.numerics.vectors.types import INDEX, Mask, Vector


def constant(kind, value):
    """Return the LLVM constant, a vector type, whose entries all equal `value`."""
    return ir.Constant(kind, [value] * kind.count)


def _indices(places):
    """Return the constant that says which entries a shuffle takes."""
    return ir.Constant(ir.VectorType(INDEX, len(places)), places)


def _spread(builder, scalar, kind):
    """Emit a vector of an LLVM type whose entries all equal one scalar."""
    empty = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(empty, scalar, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(one, empty, _indices([0] * kind.count))


def _spread_number(context, builder, number, kind, vector):
    """Emit a vector whose entries all equal a number of a Numba type, rounded to the vector's floating type."""
    return _spread(builder, context.cast(builder, number, kind, vector.element), vector.code)


def _as(builder, values, element):
    """Emit the vector with its entries converted to another LLVM floating type."""
    if values.type.element == element:
        return values
    kind = ir.VectorType(element, values.type.count)
    return (builder.fptrunc if isinstance(element, ir.FloatType) else builder.fpext)(values, kind)


def _address(context, builder, kinds, table, row, column):
    """Emit a pointer to table[row, column]; `kinds` begins with the types of table, row and column."""
    array = context.make_array(kinds[0])(context, builder, table)
    row, column = (
        context.cast(builder, value, kind, types.intp) for value, kind in ((row, kinds[1]), (column, kinds[2]))
    )
    stride = builder.extract_value(array.strides, 0)
    line = cgutils.pointer_add(builder, array.data, builder.mul(row, stride), array.data.type)
    return builder.gep(line, [column])


def _addresses(context, builder, count, kinds, *entry):
    """Emit a pointer to the `count` entries that begin at table[row, column]."""
    address = _address(context, builder, kinds, *entry)
    return builder.bitcast(address, ir.VectorType(address.type.pointee, count).as_pointer())


def _name(kind):
    """Return how LLVM names a vector type in the names of intrinsics."""
    return f"v{kind.count}{'f64' if isinstance(kind.element, ir.DoubleType) else 'f32'}"


def _call(builder, name, result, *arguments):
    """Emit a call of an LLVM intrinsic."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


@lower_builtin(width, types.Array)
def _width(context, builder, sig, args):
    return context.get_constant(types.intp, Vector(sig.args[0].dtype).width)


@lower_builtin(zeros)
@lower_builtin(zeros, types.Array)
def _zeros(context, builder, sig, args):
    return constant(sig.return_type.code, 0.0)


@lower_builtin(spread, types.Array, types.Integer, types.Integer)
def _spread_entry(context, builder, sig, args):
    return _spread(builder, builder.load(_address(context, builder, sig.args, *args)), sig.return_type.code)


@lower_builtin(first, types.Integer)
@lower_builtin(first, types.Integer, types.Array)
def _first(context, builder, sig, args):
    count = context.cast(builder, args[0], sig.args[0], types.intp)
    integers = ir.VectorType(count.type, sig.return_type.width)
    places = ir.Constant(integers, list(range(integers.count)))
    return builder.icmp_signed("<", places, _spread(builder, count, integers))


@lower_builtin(load, types.Array, types.Integer, types.Integer, types.NoneType)
@lower_builtin(load_doubles, types.Array, types.Integer, types.Integer, types.NoneType)
def _load(context, builder, sig, args):
    loaded = builder.load(_addresses(context, builder, sig.return_type.width, sig.args, *args[:3]))
    loaded.align = sig.args[0].dtype.bitwidth // 8
    return _as(builder, loaded, sig.return_type.code.element)


@lower_builtin(load, types.Array, types.Integer, types.Integer, Mask)
@lower_builtin(load_doubles, types.Array, types.Integer, types.Integer, Mask)
def _load_some(context, builder, sig, args):
    entries = _addresses(context, builder, sig.return_type.width, sig.args, *args[:3])
    kind, align = entries.type.pointee, ir.Constant(INDEX, sig.args[0].dtype.bitwidth // 8)
    loaded = _call(builder, f"llvm.masked.load.{_name(kind)}.p0", kind, entries, align, args[3], constant(kind, 0.0))
    return _as(builder, loaded, sig.return_type.code.element)


@lower_builtin(store, types.Array, types.Integer, types.Integer, types.NoneType, Vector)
def _store(context, builder, sig, args):
    entries = _addresses(context, builder, sig.args[4].width, sig.args, *args[:3])
    values = _as(builder, args[4], entries.type.pointee.element)
    builder.store(values, entries, align=sig.args[0].dtype.bitwidth // 8)
    return context.get_dummy_value()


@lower_builtin(store, types.Array, types.Integer, types.Integer, Mask, Vector)
def _store_some(context, builder, sig, args):
    entries = _addresses(context, builder, sig.args[4].width, sig.args, *args[:3])
    kind, align = entries.type.pointee, ir.Constant(INDEX, sig.args[0].dtype.bitwidth // 8)
    values = _as(builder, args[4], kind.element)
    _call(builder, f"llvm.masked.store.{_name(kind)}.p0", ir.VoidType(), values, entries, align, args[3])
    return context.get_dummy_value()


def _transpose(builder, rows):
    """Emit the transpose of a square block: exchange halves, then quarters, down to single entries."""
    size = len(rows)
    half = size // 2
    while half:
        upper = [c - half + size if c & half else c for c in range(size)]
        lower = [c + size if c & half else c + half for c in range(size)]
        mixed = list(rows)
        for i in (i for i in range(size) if not i & half):
            mixed[i] = builder.shuffle_vector(rows[i], rows[i + half], _indices(upper))
            mixed[i + half] = builder.shuffle_vector(rows[i], rows[i + half], _indices(lower))
        rows, half = mixed, half // 2
    return rows


@lower_builtin(turned, types.Array, types.Array, types.Integer, types.Integer, types.NoneType)
@lower_builtin(turned, types.Array, types.Array, types.Integer, types.Integer, Mask)
@lower_builtin(turned_doubles, types.Array, types.Array, types.Integer, types.Integer, types.NoneType)
@lower_builtin(turned_doubles, types.Array, types.Array, types.Integer, types.Integer, Mask)
def _turned(context, builder, sig, args):
    table, rows, at, column, mask = args
    load_row = _load if isinstance(sig.args[4], types.NoneType) else _load_some
    load_sig = signature(sig.return_type.dtype, sig.args[0], types.intp, sig.args[3], sig.args[4])
    indices = context.make_array(sig.args[1])(context, builder, rows)
    stride = builder.extract_value(indices.strides, 0)
    n_rows = builder.extract_value(context.make_array(sig.args[0])(context, builder, table).shape, 0)
    at = context.cast(builder, at, sig.args[2], types.intp)
    block = []
    for i in range(sig.return_type.count):
        offset = builder.mul(builder.add(at, ir.Constant(at.type, i)), stride)
        row = builder.load(cgutils.pointer_add(builder, indices.data, offset, indices.data.type))
        from_end = builder.icmp_signed("<", row, ir.Constant(row.type, 0))
        row = builder.select(from_end, builder.add(row, n_rows), row)
        block.append(load_row(context, builder, load_sig, (table, row, column, mask)))
    return context.make_tuple(builder, sig.return_type, _transpose(builder, block))


@lower_builtin(reciprocal, Vector)
def _reciprocal(context, builder, sig, args):
    kind = sig.return_type.code
    is_positive = builder.fcmp_ordered(">", args[0], constant(kind, 0.0))
    return builder.select(is_positive, builder.fdiv(constant(kind, 1.0), args[0]), constant(kind, 0.0))


@lower_builtin(at_most, Vector, types.Float)
def _at_most(context, builder, sig, args):
    values, bound = args[0], _spread_number(context, builder, args[1], sig.args[1], sig.args[0])
    return builder.select(builder.fcmp_ordered("<", values, bound), values, bound)


@lower_builtin(largest, Vector, Vector)
def _largest(context, builder, sig, args):
    return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])


@lower_builtin(all_within, Vector, types.Float, types.Float)
def _all_within(context, builder, sig, args):
    low, high = (_spread_number(context, builder, args[i], sig.args[i], sig.args[0]) for i in (1, 2))
    within = builder.and_(builder.fcmp_ordered(">=", args[0], low), builder.fcmp_ordered("<=", args[0], high))
    bits = builder.bitcast(within, ir.IntType(sig.args[0].width))
    return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, (1 << sig.args[0].width) - 1))


@lower_builtin(minus, Vector, Vector)
def _minus(context, builder, sig, args):
    return builder.fsub(*args)


@lower_builtin(times, Vector, types.Float)
def _times(context, builder, sig, args):
    return builder.fmul(args[0], _spread_number(context, builder, args[1], sig.args[1], sig.args[0]))


@lower_builtin(running, Vector)
def _running(context, builder, sig, args):
    """Emit a parallel prefix sum: add the entry one place before, then two places before, then four."""
    values, step, size = args[0], 1, sig.args[0].width
    while step < size:
        shifted = [i - step if i >= step else size for i in range(size)]
        nothing = constant(values.type, 0.0)
        values = builder.fadd(values, builder.shuffle_vector(values, nothing, _indices(shifted)))
        step *= 2
    return values


@lower_builtin(reached, Vector, types.Float)
def _reached(context, builder, sig, args):
    bound = _spread_number(context, builder, args[1], sig.args[1], sig.args[0])
    below = builder.fcmp_ordered("<=", args[0], bound)
    bits = builder.zext(builder.bitcast(below, ir.IntType(sig.args[0].width)), ir.IntType(64))
    return builder.ctpop(bits)


@lower_builtin(except_at, Vector, types.Integer)
def _except_at(context, builder, sig, args):
    place = context.cast(builder, args[1], sig.args[1], types.intp)
    integers = ir.VectorType(ir.IntType(64), sig.args[0].width)
    places = ir.Constant(integers, list(range(integers.count)))
    here = builder.icmp_signed("==", places, _spread(builder, place, integers))
    return builder.select(here, constant(args[0].type, 0.0), args[0])


@lower_builtin(fetch, types.Array, types.Integer, types.Integer)
def _fetch(context, builder, sig, args):
    entry = builder.bitcast(_address(context, builder, sig.args, *args), cgutils.voidptr_t)
    for_reading, keep, data = (ir.Constant(INDEX, value) for value in (0, 3, 1))
    _call(builder, "llvm.prefetch.p0", ir.VoidType(), entry, for_reading, keep, data)
    return context.get_dummy_value()


@lower_builtin(total, Vector)
def _total(context, builder, sig, args):
    doubles, start = _as(builder, args[0], ir.DoubleType()), ir.Constant(ir.DoubleType(), -0.0)
    return _call(builder, f"llvm.vector.reduce.fadd.{_name(doubles.type)}", ir.DoubleType(), start, doubles)


def _add(context, builder, sig, args):
    return builder.fadd(*args)


def _multiply(context, builder, sig, args):
    return builder.fmul(*args)


for _operators, _lower in (((operator.add, operator.iadd), _add), ((operator.mul, operator.imul), _multiply)):
    for _operator in _operators:
        lower_builtin(_operator, Vector, Vector)(_lower)
