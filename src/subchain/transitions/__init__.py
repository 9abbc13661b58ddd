"""Priors over the hidden Markov chain: its initial distribution and its transition matrix."""

from subchain.errors import unknown_name
from subchain.numerics.stationary import stationary_distribution
from subchain.transitions.base import (
    Chain,
    ChainPosterior,
    FrozenChain,
    TransitionPrior,
    UnsuitedPriorError,
    check_chain,
)
from subchain.transitions.dirichlet import Dirichlet, DirichletChain
from subchain.transitions.hdp.prior import HDP
from subchain.transitions.low_rank import LowRank
from subchain.transitions.topology import banded, cyclic, left_right

TRANSITIONS: dict[str, type[TransitionPrior]] = {"dirichlet": Dirichlet, "hdp": HDP, "low_rank": LowRank}


def resolve_transition(given: str | TransitionPrior | None) -> TransitionPrior:
    """Return the prior with the given name and default settings; a prior is returned unchanged, None is Dirichlet()."""
    if given is None:
        return Dirichlet()
    if isinstance(given, TransitionPrior):
        return given
    if isinstance(given, str) and given in TRANSITIONS:
        return TRANSITIONS[given]()
    raise unknown_name("transition prior", given, TRANSITIONS)


__all__ = [
    "HDP",
    "TRANSITIONS",
    "Chain",
    "ChainPosterior",
    "Dirichlet",
    "DirichletChain",
    "FrozenChain",
    "LowRank",
    "TransitionPrior",
    "UnsuitedPriorError",
    "banded",
    "check_chain",
    "cyclic",
    "left_right",
    "resolve_transition",
    "stationary_distribution",
]
