"""Cases that go wrong on purpose, for the test of `children.py`."""

import os
import time

from fuzz.children import PASSED, Verdict

CRASHES, RAISES, HANGS = 1, 2, 3


def run(seed: int) -> Verdict:
    if seed == CRASHES:
        os._exit(3)
    if seed == RAISES:
        raise ZeroDivisionError("of this case")
    if seed == HANGS:
        time.sleep(60)
    return Verdict(seed, PASSED)
