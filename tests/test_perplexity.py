"""Perplexity of a total log probability."""

from __future__ import annotations

import math

from subchain.numerics.perplexity import perplexity


def test_perplexity_beyond_doubles_is_infinite() -> None:
    assert perplexity(-10.0, 5) == math.exp(2.0)
    assert math.isfinite(perplexity(-709.0, 1))
    assert perplexity(-710.0, 1) == perplexity(-math.inf, 3) == math.inf
