"""Parts of a flat array as tables, made by kernels without what reshaping does: checks, and counting of references."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array


def table_at(flat: Any, first: Any, n_rows: Any, width: Any) -> Any:
    """Return `n_rows` rows of `width` entries of a flat array, from entry `first` on, as a table."""
    return flat[first : first + n_rows * width].reshape(n_rows, width)


@type_callable(table_at)
def _type_of_table(context):
    def type_of(flat, first, n_rows, width):
        return types.Array(flat.dtype, 2, "C")

    return type_of


@lower_builtin(table_at, types.Array, types.Integer, types.Integer, types.Integer)
def _table_at(context, builder, signature, values):
    flat, word = signature.args[0], context.get_value_type(types.intp)
    first, n_rows, width = (
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(values[1:], signature.args[1:], strict=True)
    )
    n_bytes = ir.Constant(word, context.get_abi_sizeof(context.get_data_type(flat.dtype)))
    found = context.make_array(signature.return_type)(context, builder)
    populate_array(
        found,
        data=builder.gep(context.make_array(flat)(context, builder, values[0]).data, [first]),
        shape=(n_rows, width),
        strides=(builder.mul(width, n_bytes), n_bytes),
        itemsize=n_bytes,
        meminfo=None,
        parent=None,
    )
    return found._getvalue()
