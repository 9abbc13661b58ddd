"""Example data: a book that comes with the package, random chains, synthetic data of papers, and stand-ins."""

from subchain.datasets.alice import Alice, load_alice
from subchain.datasets.chains import BernoulliChain, CategoricalChain, Chain, GaussianChain, PoissonChain
from subchain.datasets.paths import sample_chain
from subchain.datasets.published import diagonally_dominant, four_state, regular_grammar, reversed_cycles
from subchain.datasets.stand_ins import write_stand_in
from subchain.datasets.synthetic import bernoulli_chain, categorical_chain, gaussian_chain, poisson_chain
from subchain.datasets.writing import write_chain

__all__ = [
    "Alice",
    "BernoulliChain",
    "CategoricalChain",
    "Chain",
    "GaussianChain",
    "PoissonChain",
    "bernoulli_chain",
    "categorical_chain",
    "diagonally_dominant",
    "four_state",
    "gaussian_chain",
    "load_alice",
    "poisson_chain",
    "regular_grammar",
    "reversed_cycles",
    "sample_chain",
    "write_chain",
    "write_stand_in",
]
