"""LLVM code of the exponential and the logarithm of vectors, by polynomials."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numba.extending import lower_builtin

from subchain.numerics.vectors.functions import (
    IMPOSSIBLE,
    LEAST_NORMAL,
    LOWEST_EXPONENT,
    LOWEST_SINGLE_EXPONENT,
    exponential,
    logarithm,
)
from subchain.numerics.vectors.lowering import constant
from subchain.numerics.vectors.types import VECTOR, Vector


class _Exponential(NamedTuple):
    """What the exponential of a floating type is computed with.

    Attributes
    ----------
    lowest : smallest argument whose exponential is computed; see `exponential` for what lies below
    high, low : ln 2 = high + low; the last bits of the high part are zero: its products with small integers are exact
    rounder : added to a number of moderate size, it rounds it to an integer and leaves that in the lowest bits
    bits : of the fraction of a number
    polynomial : interpolates the exponential at Chebyshev nodes on ±½ ln 2
    """

    lowest: float
    high: float
    low: float
    rounder: float
    bits: int
    polynomial: tuple[float, ...]


#: Error of the polynomial 1.7e-17.
_DOUBLE = _Exponential(
    LOWEST_EXPONENT,
    0.693147180369123816490,
    1.90821492927058770002e-10,
    1.5 * 2.0**52,
    52,
    (
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
    ),
)
#: Error of the polynomial 2.6e-9.
_SINGLE = _Exponential(
    LOWEST_SINGLE_EXPONENT,
    0.693359375,
    -0.00021219444005471377,
    1.5 * 2.0**23,
    23,
    (
        1.0,
        1.0000000377162153,
        0.5000000047117972,
        0.16666415514649002,
        0.041666352896198126,
        0.008375126398416404,
        0.001394110846934711,
    ),
)


@lower_builtin(exponential, Vector)
def _exponential(context, builder, sig, args):
    """Emit 2ⁿ · eʳ with integer n and |r| ≤ ½ ln 2; n is added to the exponent bits."""
    vector = sig.args[0]
    parts, code, integers = (_DOUBLE if vector == VECTOR else _SINGLE), vector.code, vector.integers
    is_low = builder.fcmp_ordered("<", args[0], constant(code, parts.lowest))
    x = builder.select(is_low, constant(code, parts.lowest), args[0])
    rounder = constant(code, parts.rounder)
    rounded = builder.fadd(builder.fmul(x, constant(code, 1.0 / np.log(2.0))), rounder)
    n = builder.fsub(rounded, rounder)
    r = builder.fsub(x, builder.fmul(n, constant(code, parts.high)))
    r = builder.fsub(r, builder.fmul(n, constant(code, parts.low)))
    value = constant(code, parts.polynomial[-1])
    for coefficient in parts.polynomial[-2::-1]:
        value = builder.fadd(builder.fmul(value, r), constant(code, coefficient))
    shift = builder.shl(builder.bitcast(rounded, integers), constant(integers, parts.bits))
    scaled = builder.add(builder.bitcast(value, integers), shift)
    if vector == VECTOR:  # doubles that are low stay positive: underflow must not make impossible what is not
        is_low = builder.fcmp_ordered("<", args[0], constant(code, IMPOSSIBLE))
    return builder.select(is_low, constant(code, 0.0), builder.bitcast(scaled, code))


#: Polynomial in s² that interpolates (log m − 2 s) / s³ for s = (m − 1) / (m + 1) and √½ ≤ m ≤ √2: error 5e-18.
_LOGARITHM = (
    0.666666666666667,
    0.39999999999899505,
    0.28571428625975487,
    0.2222221113479508,
    0.18182889125261723,
    0.15331721600556042,
    0.14616449685043406,
)
#: The bits of √½ and of the rounder as integers.
_ROOT_BITS, _ROUNDER_BITS = (int(np.float64(value).view(np.int64)) for value in (np.sqrt(0.5), _DOUBLE.rounder))


@lower_builtin(logarithm, Vector)
def _logarithm(context, builder, sig, args):
    """Emit n · ln 2 + log m with integer n, from the exponent bits, and m near one."""
    doubles, integers = VECTOR.code, VECTOR.integers
    number = partial(constant, doubles)
    whole = [constant(integers, value) for value in (_ROOT_BITS, _ROUNDER_BITS, _DOUBLE.bits)]
    bits = builder.bitcast(args[0], integers)
    power = builder.ashr(builder.sub(bits, whole[0]), whole[2])
    m = builder.bitcast(builder.sub(bits, builder.shl(power, whole[2])), doubles)
    n = builder.fsub(builder.bitcast(builder.add(power, whole[1]), doubles), number(_DOUBLE.rounder))
    f = builder.fsub(m, number(1.0))
    s = builder.fdiv(f, builder.fadd(m, number(1.0)))
    z = builder.fmul(s, s)
    tail = number(_LOGARITHM[-1])
    for coefficient in _LOGARITHM[-2::-1]:
        tail = builder.fadd(builder.fmul(tail, z), number(coefficient))
    # log m = f − s (f − z · tail), since f = 2 s + s f: no cancellation for small f
    low = builder.fsub(builder.fmul(n, number(_DOUBLE.low)), builder.fmul(s, builder.fsub(f, builder.fmul(z, tail))))
    found = builder.fadd(builder.fmul(n, number(_DOUBLE.high)), builder.fadd(f, low))
    is_zero = builder.fcmp_ordered("<", args[0], number(LEAST_NORMAL))
    return builder.select(is_zero, number(-np.inf), found)
