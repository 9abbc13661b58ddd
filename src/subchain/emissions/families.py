"""Which family given parameters belong to: every family is known by the class of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from subchain.emissions.base import Emission, Parameters
from subchain.errors import InputError


def family_of(parameters: Parameters) -> Emission:
    """The family that emits with these parameters, as the user would have written it.

    Families outside this package are found as well, as soon as their classes are defined.

    Examples
    --------
    >>> from subchain.emissions import Categorical
    >>> family_of(Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]]))
    Categorical(n_categories=2)
    """
    for family in families():
        if family.parameters_type is type(parameters):
            return family.for_parameters(parameters)
    raise InputError(f"no family of emissions has parameters of the class {type(parameters).__name__}.")


def families(base: type[Emission] = Emission) -> Iterator[type[Emission]]:
    """All families that are defined so far, those of other packages included."""
    for family in base.__subclasses__():
        if not inspect.isabstract(family):
            yield family
        yield from families(family)
