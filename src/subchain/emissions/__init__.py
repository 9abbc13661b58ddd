"""Emission families: the distribution of an observation given the hidden state, one family per file."""

from subchain.emissions.base import Conjugate, Emission, Frozen, Likelihood, Parameters
from subchain.emissions.bernoulli import Bernoulli
from subchain.emissions.categorical import Categorical
from subchain.emissions.diagonal_gaussian import DiagonalGaussian
from subchain.emissions.families import families, family_of
from subchain.emissions.gaussian import Gaussian
from subchain.emissions.learned_table import LearnedTable  # files name it: it must be known when they are read
from subchain.emissions.poisson import Poisson
from subchain.emissions.product import Product
from subchain.errors import InputError, unknown_name

FAMILIES: dict[str, type[Emission]] = {
    family.name: family for family in (Categorical, Gaussian, DiagonalGaussian, Poisson, Bernoulli, Product)
}


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
        raise unknown_name("emission", emission, known)
    return known[emission]()


__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "Conjugate",
    "DiagonalGaussian",
    "Emission",
    "Frozen",
    "Gaussian",
    "LearnedTable",
    "Likelihood",
    "Parameters",
    "Poisson",
    "Product",
    "family_of",
    "resolve_emission",
]
