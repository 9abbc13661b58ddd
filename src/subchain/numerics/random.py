"""Random numbers for compiled kernels: a function of a key, the number of a stream and a position.

There is no state that threads could share or that a checkpoint would have to keep. Position i of a stream has the i-th
output of the generator splitmix64 (Steele, Lea and Flood 2014), begun at a hash of the key and of the stream's number.
A stream belongs to one sweep of a sampler, or to one path; its positions are those of the data, so that draws depend
neither on how a chain was cut nor on the number of threads.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.numerics.compilation import compiled

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

#: Compiled into its callers; `_nrt` is off since nothing is allocated and references need not be counted.
_part = compiled(error_model="numpy", forceinline=True, _nrt=False)


def key_of(seed: np.random.SeedSequence) -> NDArray[np.uint64]:
    """Return the key (2,) that a seed stands for."""
    return np.asarray(seed.generate_state(2, np.uint64), dtype=np.uint64)


@_part
def _mixed(x):
    """The output function of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST_FACTOR
    x = (x ^ (x >> np.uint64(27))) * _SECOND_FACTOR
    return x ^ (x >> np.uint64(31))


@_part
def stream(key, number):
    """Return where stream `number` of a key (2,) begins."""
    return _mixed(_mixed(key[0] + np.uint64(number) * _STEP) + key[1])


@_part
def seeded_stream(seed, number):
    """Return where stream `number` of a 64-bit seed begins."""
    return np.uint64(seed) ^ (np.uint64(number) * _SECOND_FACTOR)


@_part
def uniform(begin, position):
    """Return the uniform number in [0, 1) at a position of a stream."""
    return (_mixed(begin + np.uint64(position + 1) * _STEP) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
