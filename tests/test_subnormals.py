from __future__ import annotations

import numpy as np
import pytest

from subchain.numerics.subnormals import IS_X86, flushed

TINY = np.array([1e-310, 3e-320])

pytestmark = pytest.mark.skipif(not IS_X86, reason="the control register of this processor is not known")


def test_subnormal_numbers_are_zero_inside_and_themselves_again_afterwards() -> None:
    with flushed():
        inside = TINY * 1.0
    assert inside.view(np.int64).tolist() == [0, 0]
    assert (TINY * 1.0 > 0.0).all()


def test_an_error_and_nesting_leave_nothing_behind() -> None:
    with pytest.raises(ValueError, match="inside"), flushed(), flushed():
        raise ValueError("inside")
    assert (TINY * 1.0 > 0.0).all()
