"""Small data for every family, so that tests can run over all of them. A new family joins by adding a line here."""

import numpy as np
import own_family

from subchain import Bernoulli, BlockSparse, Categorical, DiagonalGaussian, Gaussian, Poisson, Product
from subchain.core.components import clone
from subchain.data import Sequences


def hidden(rng, n):
    """A sticky path over three states."""
    return np.cumsum(rng.random(n) < 0.2) % 3


def symbols(rng, n):
    z = hidden(rng, n)
    return np.where(rng.random(n) < 0.7, z, rng.integers(0, 5, n))


def reals(rng, n):
    z = hidden(rng, n)
    return rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]])[z]


def counts(rng, n):
    return rng.poisson(np.array([[1.0, 8.0], [6.0, 1.0], [15.0, 15.0]])[hidden(rng, n)])


def flags(rng, n):
    table = np.array([[0.9, 0.1, 0.2], [0.1, 0.9, 0.5], [0.5, 0.5, 0.95]])[hidden(rng, n)]
    return (rng.random((n, 3)) < table).astype(np.int64)


def mixed(rng, n):
    return np.column_stack((reals(rng, n), symbols(rng, n)))


def times(rng, n):
    return rng.exponential(np.array([1.0, 10.0, 60.0])[hidden(rng, n)]) + 1e-6


FAMILIES = {
    "categorical": (Categorical(n_categories=5), symbols),
    "gaussian": (Gaussian(), reals),
    "diagonal_gaussian": (DiagonalGaussian(), reals),
    "poisson": (Poisson(), counts),
    "bernoulli": (Bernoulli(), flags),
    "product": (Product(a=Gaussian(columns=[0, 1]), b=Categorical(n_categories=5, columns=2)), mixed),
    "exponential": (own_family.Exponential(), times),
}

#: Also a family whose states have meanings of their own, for tests that neither relabel states nor ask for one state.
EVERY_FAMILY = FAMILIES | {"block_sparse": (BlockSparse(groups=[0, 1, 0, 0, 1]), symbols)}

SHAPES = {
    "one sequence": [97],
    "many": [20] * 12,
    "ragged": [31, 1, 0, 53, 2, 17],
    "missing": [40, 37],
    "length one": [1, 1, 1],
    "one observation": [1],
}


def example(family, shape="ragged", seed=0):
    """The family and data of the given shape."""
    rng = np.random.default_rng(seed)
    specification, draw = clone(EVERY_FAMILY[family][0]), EVERY_FAMILY[family][1]
    lengths = SHAPES[shape]
    values = draw(rng, sum(lengths))
    if shape == "missing":
        values = punch(values, rng)
    return specification, Sequences(values, np.concatenate(([0], np.cumsum(lengths))))


def punch(values, rng, share=0.2):
    """Make entries missing: −1 in integers, nan in floats; some rows entirely."""
    values = values.copy()
    hole = rng.random(values.shape) < share
    hole[rng.random(len(values)) < share / 2] = True
    values[hole] = -1 if values.dtype.kind == "i" else np.nan
    return values
