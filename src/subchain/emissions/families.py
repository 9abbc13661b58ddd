"""Lookup of emission families: all that are defined, by name, and the one that given parameters belong to."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from subchain.emissions.base import Emission, Parameters
from subchain.errors import InputError, unknown_name

#: Name of the automatic choice.
AUTO = "auto"


def family_of(parameters: Parameters) -> Emission:
    """Return the family specification that these parameters belong to.

    Families defined outside this package are found as well, once their module is imported.

    Examples
    --------
    >>> from subchain.emissions import Categorical
    >>> family_of(Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]]))
    Categorical(n_categories=2)
    """
    for family in families():
        if family.parameters_type is type(parameters):
            return family.for_parameters(parameters)
    raise InputError(
        f"no emission family has parameters of class {type(parameters).__name__}; import the module that defines it."
    )


def families(base: type[Emission] = Emission) -> Iterator[type[Emission]]:
    """Yield all families that are defined so far, including those of other packages."""
    for family in base.__subclasses__():
        if not inspect.isabstract(family):
            yield family
        yield from families(family)


def resolve_emission(emission: str | Emission) -> Emission:
    """Return the family with the given name and default settings; return a family object unchanged.

    Examples
    --------
    >>> from subchain.emissions import resolve_emission
    >>> resolve_emission("poisson")
    Poisson()
    """
    if isinstance(emission, Emission):
        return emission
    if not isinstance(emission, str):
        raise InputError(f"emission must be a family such as Poisson(), or the name of one; got {emission!r}.")
    known = {family.name: family for family in families()}
    if emission not in known:
        raise unknown_name("emission", emission, [AUTO, *known])
    return known[emission]()
