"""Arrays of small numbers inside a page: all of them in one block of bytes, deflated, in base64.

The page's own script unpacks the block in one go and makes typed arrays that look into it.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Types of arrays that the page understands, by what its script calls them.
KINDS = {"uint8": "Uint8Array", "uint16": "Uint16Array"}
#: Arrays begin at multiples of so many bytes, as typed arrays must.
ALIGNED = 4
#: How hard zlib tries; more hardly helps.
EFFORT = 7


class Packing:
    """Collects arrays by name.

    Examples
    --------
    >>> packing = Packing()
    >>> packing.add("shares", np.zeros((2, 3), dtype=np.uint8))
    >>> packing.index["shares"]
    {'kind': 'Uint8Array', 'shape': [2, 3], 'offset': 0}
    """

    def __init__(self) -> None:
        self.index: dict[str, dict[str, Any]] = {}
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Put an array in."""
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        self.index[name] = {"kind": KINDS[array.dtype.name], "shape": list(array.shape), "offset": self._size}
        content = little.tobytes()
        content += bytes(-len(content) % ALIGNED)
        self._parts.append(content)
        self._size += len(content)

    def block(self) -> str:
        """All arrays, as the page carries them."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), EFFORT)).decode("ascii")


def as_roots(probabilities: NDArray[Any]) -> NDArray[np.uint16]:
    """Probabilities as their square roots, from 0 to 65535, which keeps small ones apart.

    Examples
    --------
    >>> as_roots(np.array([0.0, 1e-6, 1.0]))
    array([    0,    66, 65535], dtype=uint16)
    """
    return np.rint(np.sqrt(np.clip(probabilities, 0.0, 1.0)) * 65_535.0).astype(np.uint16)


def as_bytes(shares: NDArray[Any], largest: float = 1.0) -> NDArray[np.uint8]:
    """Numbers from 0 to `largest` as bytes from 0 to 255.

    Examples
    --------
    >>> as_bytes(np.array([0.0, 0.5, 1.0]))
    array([  0, 128, 255], dtype=uint8)
    """
    return np.rint(np.clip(np.asarray(shares, dtype=np.float64) / largest, 0.0, 1.0) * 255.0).astype(np.uint8)
