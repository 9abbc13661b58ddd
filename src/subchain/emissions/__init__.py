"""Emission families: the distribution of an observation given the hidden state, one family per file."""

from subchain.emissions.base import Conjugate, Emission, Likelihood, Parameters
from subchain.emissions.bernoulli import Bernoulli
from subchain.emissions.block_sparse import BlockSparse
from subchain.emissions.categorical import Categorical
from subchain.emissions.choice import Choice, choose_emission
from subchain.emissions.diagonal_gaussian import DiagonalGaussian
from subchain.emissions.families import family_of, resolve_emission
from subchain.emissions.frozen import Frozen
from subchain.emissions.gaussian import Gaussian
from subchain.emissions.learned_table import LearnedTable  # files name it: it must be known when they are read
from subchain.emissions.poisson import Poisson
from subchain.emissions.product import Product

FAMILIES: dict[str, type[Emission]] = {
    family.name: family
    for family in (Categorical, Gaussian, DiagonalGaussian, Poisson, Bernoulli, Product, BlockSparse)
}

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "BlockSparse",
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
    "family_of",
    "resolve_emission",
]
