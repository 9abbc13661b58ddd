"""Arrays inside a page: one block of bytes, compressed by zlib and encoded in base64.

The page's script decompresses the block and creates typed arrays that are views of it.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: JavaScript types of the arrays.
KINDS = {"uint8": "Uint8Array", "uint16": "Uint16Array"}
#: Alignment of the arrays in bytes, as typed arrays require.
ALIGNED = 4
#: Compression level of zlib; higher ones hardly help.
EFFORT = 7


class Packing:
    """Builder of the block of arrays.

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
        """Append an array under a name."""
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        self.index[name] = {"kind": KINDS[array.dtype.name], "shape": list(array.shape), "offset": self._size}
        content = little.tobytes()
        content += bytes(-len(content) % ALIGNED)
        self._parts.append(content)
        self._size += len(content)

    def block(self) -> str:
        """Return all arrays as base64 text."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), EFFORT)).decode("ascii")


def as_roots(probabilities: NDArray[Any]) -> NDArray[np.uint16]:
    """Return square roots of probabilities scaled to 0 … 65535; roots keep precision for small probabilities.

    Examples
    --------
    >>> as_roots(np.array([0.0, 1e-6, 1.0]))
    array([    0,    66, 65535], dtype=uint16)
    """
    return np.rint(np.sqrt(np.clip(probabilities, 0.0, 1.0)) * 65_535.0).astype(np.uint16)


def as_bytes(shares: NDArray[Any], largest: float = 1.0) -> NDArray[np.uint8]:
    """Return numbers from 0 to `largest` scaled to bytes 0 … 255.

    Examples
    --------
    >>> as_bytes(np.array([0.0, 0.5, 1.0]))
    array([  0, 128, 255], dtype=uint8)
    """
    return np.rint(np.clip(np.asarray(shares, dtype=np.float64) / largest, 0.0, 1.0) * 255.0).astype(np.uint8)
