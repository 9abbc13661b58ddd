"""Emission families: the distribution of an observation given the hidden state, one family per file."""

from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Emission, Frozen, Likelihood, Parameters
from subchain.emissions.bernoulli import Bernoulli
from subchain.emissions.categorical import Categorical
from subchain.emissions.choice import AUTO, Choice, choose_emission, coded_numbers, n_missing_entries
from subchain.emissions.diagonal_gaussian import DiagonalGaussian
from subchain.emissions.families import families, family_of
from subchain.emissions.gaussian import Gaussian
from subchain.emissions.learned_table import LearnedTable  # files name it: it must be known when they are read
from subchain.emissions.poisson import Poisson
from subchain.emissions.product import Product, ProductParameters
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
        raise unknown_name("emission", emission, [AUTO, *known])
    return known[emission]()


def density_columns(family: Emission, parameters: Parameters) -> tuple[bool, ...]:
    """Return whether the likelihood of each column is a density, as of measurements, or a probability.

    Examples
    --------
    >>> from subchain.emissions import Gaussian, Poisson, density_columns
    >>> density_columns(Gaussian(), Gaussian.from_parameters([[0.0, 1.0]], [[[1.0, 0.0], [0.0, 1.0]]]))
    (True, True)
    >>> density_columns(Poisson(), Poisson.from_parameters([1.0, 2.0]))
    (False,)
    """
    if isinstance(parameters, ProductParameters):
        assert isinstance(family, Product)
        found: dict[int, bool] = {}
        for (name, part), columns in zip(parameters.parts.items(), parameters.layout.slots(), strict=True):
            found.update(zip(columns.tolist(), density_columns(family.families[name], part), strict=True))
        return tuple(found.get(column, False) for column in range(parameters.layout.n_columns))
    marginals = parameters.marginals()
    is_density = marginals is not None and hasattr(marginals.dist, "pdf")
    n_columns = 1 if marginals is None else parameters.expectation().shape[1]
    return (is_density,) * n_columns


def emission_for(emission: str | Emission, data: Sequences) -> Choice:
    """Return the family for these data: the given one, or for "auto" the one that suits their columns.

    The reason is empty if the family was given.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.emissions import emission_for
    >>> emission_for("auto", Sequences(np.array([0.5, 1.5])))
    Choice(emission=Gaussian(), reason='Gaussian, because the data are numbers with fractions.')
    """
    return choose_emission(data) if isinstance(emission, str) and emission == AUTO else _given(emission)


def _given(emission: str | Emission) -> Choice:
    return Choice(resolve_emission(emission), "")


__all__ = [
    "AUTO",
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "Choice",
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
    "choose_emission",
    "coded_numbers",
    "density_columns",
    "emission_for",
    "family_of",
    "n_missing_entries",
    "resolve_emission",
]
