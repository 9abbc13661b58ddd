from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from subchain.numerics.subnormals import IS_X86, flush_subnormals, restore_subnormals, subnormals_after_errors

TINY = np.array([1e-310, 3e-320])

pytestmark = pytest.mark.skipif(not IS_X86, reason="the control register of this processor is not known")


@njit
def product(factor, out):
    for i in range(out.shape[0]):
        out[i] *= factor


@njit
def flushed_product(factor, out, depth):
    before = flush_subnormals()
    if depth > 0:
        flushed_product(factor, out, depth - 1)
    product(factor, out)
    restore_subnormals(before)


@pytest.mark.parametrize("depth", [0, 1])
def test_subnormal_numbers_are_zero_inside_a_kernel_and_themselves_again_afterwards(depth: int) -> None:
    inside, outside = TINY.copy(), TINY.copy()
    flushed_product(1.0, inside, depth)
    product(1.0, outside)
    assert inside.view(np.int64).tolist() == [0, 0]
    assert (outside > 0.0).all()
    assert (TINY * 1.0 > 0.0).all()


@njit
def failing_product(factor, out):
    before = flush_subnormals()
    product(factor, out)
    if factor > 0.0:
        raise ValueError("inside")
    restore_subnormals(before)


def test_a_kernel_that_fails_leaves_nothing_behind() -> None:
    with pytest.raises(ValueError, match="inside"), subnormals_after_errors():
        failing_product(1.0, TINY.copy())
    assert (TINY * 1.0 > 0.0).all()
