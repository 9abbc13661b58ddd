"""LLVM code of the exponential and the logarithm of vectors, by polynomials."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, import-untyped"

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.extending import lower_builtin

from subchain.numerics.vectors.functions import LEAST_NORMAL, LOWEST_EXPONENT, WIDTH, exponential, logarithm
from subchain.numerics.vectors.lowering import constant
from subchain.numerics.vectors.types import DOUBLES, INTEGERS, Vector

#: ln 2 = high + low. The last bits of the high part are zero, so that its products with small integers are exact.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
#: Added to a double of moderate size, this rounds it to an integer and leaves the integer in the lowest bits.
_ROUNDER = 1.5 * 2.0**52
#: Polynomial that interpolates the exponential at Chebyshev nodes on ±½ ln 2: error 1.7e-17.
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
    """Emit 2ⁿ · eʳ with integer n and |r| ≤ ½ ln 2; n is added to the exponent bits."""
    is_low = builder.fcmp_ordered("<", args[0], constant(LOWEST_EXPONENT))
    x = builder.select(is_low, constant(LOWEST_EXPONENT), args[0])
    rounded = builder.fadd(builder.fmul(x, constant(1.0 / np.log(2.0))), constant(_ROUNDER))
    n = builder.fsub(rounded, constant(_ROUNDER))
    r = builder.fsub(x, builder.fmul(n, constant(_LN2_HIGH)))
    r = builder.fsub(r, builder.fmul(n, constant(_LN2_LOW)))
    value = constant(_EXPONENTIAL[-1])
    for coefficient in _EXPONENTIAL[-2::-1]:
        value = builder.fadd(builder.fmul(value, r), constant(coefficient))
    shift = builder.shl(builder.bitcast(rounded, INTEGERS), ir.Constant(INTEGERS, [52] * WIDTH))
    scaled = builder.add(builder.bitcast(value, INTEGERS), shift)
    return builder.select(is_low, constant(0.0), builder.bitcast(scaled, DOUBLES))


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
#: The bits of √½ and of _ROUNDER as integers.
_ROOT_BITS, _ROUNDER_BITS = (int(np.float64(value).view(np.int64)) for value in (np.sqrt(0.5), _ROUNDER))


@lower_builtin(logarithm, Vector)
def _logarithm(context, builder, sig, args):
    """Emit n · ln 2 + log m with integer n, from the exponent bits, and m near one."""
    whole = [ir.Constant(INTEGERS, [value] * WIDTH) for value in (_ROOT_BITS, _ROUNDER_BITS, 52)]
    bits = builder.bitcast(args[0], INTEGERS)
    power = builder.ashr(builder.sub(bits, whole[0]), whole[2])
    m = builder.bitcast(builder.sub(bits, builder.shl(power, whole[2])), DOUBLES)
    n = builder.fsub(builder.bitcast(builder.add(power, whole[1]), DOUBLES), constant(_ROUNDER))
    f = builder.fsub(m, constant(1.0))
    s = builder.fdiv(f, builder.fadd(m, constant(1.0)))
    z = builder.fmul(s, s)
    tail = constant(_LOGARITHM[-1])
    for coefficient in _LOGARITHM[-2::-1]:
        tail = builder.fadd(builder.fmul(tail, z), constant(coefficient))
    # log m = f − s (f − z · tail), since f = 2 s + s f: no cancellation for small f
    low = builder.fsub(builder.fmul(n, constant(_LN2_LOW)), builder.fmul(s, builder.fsub(f, builder.fmul(z, tail))))
    found = builder.fadd(builder.fmul(n, constant(_LN2_HIGH)), builder.fadd(f, low))
    is_zero = builder.fcmp_ordered("<", args[0], constant(LEAST_NORMAL))
    return builder.select(is_zero, constant(-np.inf), found)
