"""Files of models that are a posterior and their settings: grammars, word aligners; no pickle."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import subchain
from subchain.core.components import Component
from subchain.core.files import check_version, read_arrays, reading, write_arrays
from subchain.core.parts import Posterior
from subchain.core.stored_records import RecordReader
from subchain.errors import FileFormatError
from subchain.models.settings import build, describe, describe_seed

Model = TypeVar("Model", bound=Component)
#: Settings that belong to the machine or the moment.
NOT_KEPT = ("random_state", "progress")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def save_posterior(
    model: Component, posterior: Posterior, path: str | os.PathLike[str], kind: str, version: int, facts: dict[str, Any]
) -> None:
    """Write the posterior, the settings and other facts, JSON values, of a fitted model."""
    given = model.get_params(deep=False)
    settings = {name: describe(value, 0) for name, value in given.items() if name not in NOT_KEPT}
    settings["random_state"] = describe_seed(given["random_state"])
    header = {
        "kind": kind,
        "version": version,
        "subchain": subchain.__version__,
        "settings": settings,
        "schema": posterior.schema(),
        **facts,
    }
    write_arrays(path, {f"posterior_.{name}": array for name, array in posterior.arrays().items()}, header)


def load_posterior(
    kind: type[Model],
    path: str | os.PathLike[str],
    name: str,
    version: int,
    posterior: type[Posterior],
    earlier: Mapping[str, Any] = _NOTHING,
) -> tuple[Model, Any, dict[str, Any]]:
    """Return the model of a file, as an object of class `kind`, its posterior, and the header with its facts.

    `earlier` has values of settings that files lack which were written before these were offered.
    """
    arrays, header = read_arrays(path, name)
    check_version(path, header, version)
    with reading(path):
        model = kind(**dict(earlier) | {key: build(value) for key, value in header["settings"].items()})
        return model, RecordReader(arrays).read(header["schema"], "posterior_", kind=posterior), header


def texts_of(plain: Any, what: str) -> list[str]:
    """Return a list of texts from a file; raise a `FileFormatError` if it is none."""
    if not isinstance(plain, list) or not all(isinstance(text, str) for text in plain):
        raise FileFormatError(f"the {what} of the file are no list of texts")
    return plain
