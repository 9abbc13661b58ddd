"""Components as plain JSON values and back: what the user wrote, for model files and for telling fits apart.

Only classes that are known to the package (or to the program that imported it) are ever built; nothing in a file can
run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from subchain.core.components import Component
from subchain.emissions.base import Emission
from subchain.errors import FileFormatError, InputError
from subchain.inference.run.algorithm import Algorithm
from subchain.structures.chain.boundaries import Boundary
from subchain.transitions.base import TransitionPrior


def describe(value: Any, n_states: int) -> Any:
    """A setting as JSON values; functions of the number of states are replaced by what they give."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, (list, tuple)):
        return [describe(item, n_states) for item in value]
    if isinstance(value, Component):
        settings = {name: describe(item, n_states) for name, item in value._written().items()}
        return {"component": type(value).__name__, "settings": settings}
    if callable(value):
        return describe(np.asarray(value(n_states)), n_states)
    raise InputError(f"a setting of type {type(value).__name__} cannot be written to a file: {value!r}.")


def build(plain: Any) -> Any:
    """The inverse of `describe`."""
    if isinstance(plain, list):
        return [build(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return np.array(plain["array"], dtype=plain["dtype"])
    known = {kind.__name__: kind for kind in _components(Emission, TransitionPrior, Algorithm, Boundary)}
    name = plain["component"]
    if name not in known:
        raise FileFormatError(
            f"the file needs a component called {name!r}, which is not known; import the module that defines it first."
        )
    return known[name](**{key: build(item) for key, item in plain["settings"].items()})


def _components(*bases: type) -> Iterator[type]:
    for base in bases:
        yield base
        yield from _components(*base.__subclasses__())
