"""Fingerprints of arguments, by which checkpoints recognise the fit that they belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from subchain.data.sequences import Sequences


def digest(value: Any) -> str | None:
    """Return a hexadecimal hash of arrays, sequences, mappings, lists and plain values; None for None.

    Examples
    --------
    >>> digest([np.arange(3), None]) == digest([np.arange(3), None]) != digest([np.arange(4), None])
    True
    """
    if value is None:
        return None
    hashed = hashlib.blake2b(digest_size=8)
    for part in _parts(value):
        hashed.update(part)
    return hashed.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, Sequences):
        yield value.fingerprint().encode()
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield repr(key).encode()
            yield from _parts(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield b"["
            yield from _parts(item)
    else:
        yield repr(value).encode()
