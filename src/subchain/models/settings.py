"""Conversion of components (families, priors, algorithms, engines) to and from JSON values.

Model files store the settings of the model in this form, and checkpoints compare it. Reading builds only classes that
are already imported; nothing in a file can run code.
"""

from __future__ import annotations

import math
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.classes import find_class, user_module
from subchain.core.components import Component
from subchain.emissions.base import Emission
from subchain.engines import Cpu
from subchain.errors import FileFormatError, InputError
from subchain.inference.run.algorithm import Algorithm
from subchain.structures.chain.boundaries import Boundary
from subchain.transitions.base import TransitionPrior

#: Entries of an array that are written as numbers; longer ones (such as masks of many states) are packed.
LONG = 1 << 16
#: Bytes that zlib can pack into one, at most.
MAX_RATIO = 1032
#: Base classes of the components that settings may contain.
BASES: tuple[type, ...] = (Emission, TransitionPrior, Algorithm, Boundary, Cpu)


def describe_seed(seed: Any) -> int | None:
    """Return a seed as a JSON value; None for a generator, whose state is not kept."""
    return int(seed) if isinstance(seed, (int, np.integer)) else None


def describe(value: Any, n_states: int) -> Any:
    """Return a setting as JSON values; a function of the number of states is replaced by its value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.size <= LONG:
            return {"array": value.tolist(), "dtype": value.dtype.str}
        packed = b64encode(zlib.compress(value.tobytes())).decode()
        return {"array": packed, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        return [describe(item, n_states) for item in value]
    if isinstance(value, Component):
        settings = {name: describe(item, n_states) for name, item in value._saved_settings().items()}
        named = {"component": type(value).__name__, "settings": settings}
        module = user_module(type(value))
        modules = {user_module(kind) for kind in _components(*BASES) if kind.__name__ == named["component"]}
        return named if module is None or len(modules) == 1 else named | {"module": module}
    if callable(value):
        return describe(np.asarray(value(n_states)), n_states)
    raise InputError(
        f"a setting of type {type(value).__name__} cannot be written to a file: {value!r}; use numbers, text, arrays "
        "or components of this package."
    )


def build(plain: Any) -> Any:
    """Return the setting that `describe` converted to `plain`."""
    if isinstance(plain, list):
        return [build(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return _array(plain)
    kind = find_class(plain["component"], plain.get("module"), _components(*BASES))
    if kind is None:
        raise FileFormatError(
            f"the file needs the class {plain['component']!r}, which is not known; import the module that defines it "
            "first."
        )
    return kind(**{key: build(item) for key, item in plain["settings"].items()})


def _components(*bases: type) -> Iterator[type]:
    """Yield the given classes and all their subclasses."""
    for base in bases:
        yield base
        yield from _components(*base.__subclasses__())


def _array(plain: dict[str, Any]) -> NDArray[Any]:
    """Return the array of a setting, from numbers or from packed bytes."""
    dtype, given = np.dtype(plain["dtype"]), plain["array"]
    if dtype.kind not in "biufUO":
        raise FileFormatError(f"a setting is an array of type {dtype}, not of numbers or texts")
    if not isinstance(given, str):
        return np.array(given, dtype="U" if dtype.kind == "U" else dtype)  # NumPy finds out how long texts are
    packed, size = b64decode(given), math.prod(plain["shape"]) * dtype.itemsize
    if not 0 <= size <= MAX_RATIO * len(packed):
        raise FileFormatError(f"a setting has the shape {plain['shape']}, which does not fit its contents")
    try:
        content = zlib.decompressobj().decompress(packed, size) if size else b""
    except zlib.error as error:
        raise FileFormatError(f"a setting cannot be unpacked ({error})") from None
    return np.frombuffer(content, dtype=dtype).reshape(plain["shape"]).copy()
