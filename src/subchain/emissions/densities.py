"""Kinds of likelihoods: densities of measurements, or probabilities of counts and symbols."""

from __future__ import annotations

from subchain.emissions.base import Emission, Parameters
from subchain.emissions.product import Product, ProductParameters


def density_columns(family: Emission, parameters: Parameters) -> tuple[bool, ...]:
    """Return whether the likelihood of each column is a density, as of measurements, or a probability.

    Examples
    --------
    >>> from subchain.emissions import Gaussian, Poisson
    >>> from subchain.emissions.densities import density_columns
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
