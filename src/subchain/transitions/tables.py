"""Temporary."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

Array = NDArray[np.float64]
def expected_tables(base: Array, counts: Array, occurrence: Array | None = None) -> Array:
    counts = np.maximum(counts, 0.0)
    happens = np.ones_like(counts) if occurrence is None else -np.expm1(-np.maximum(occurrence, counts))
    each = np.divide(counts, happens, out=np.zeros_like(counts), where=happens > 0.0)
    if occurrence is not None:
        each = np.where(counts > 0.0, np.maximum(each, 1.0), 0.0)
    base = np.broadcast_to(base, counts.shape)
    small = base < 1e-8
    value = base * (digamma(base + each) - digamma(base))
    tiny = np.where(each > 0.0, 1.0 + base * (digamma(np.maximum(each, 1e-300)) - digamma(1.0)), 0.0)
    return np.asarray(happens * np.where(small, np.clip(tiny, 0, 1) * (each / (each + base)), value))
