"""Problems whose structure is a hidden Markov chain, for algorithms and options that exist for chains alone."""

from __future__ import annotations

import dataclasses
from typing import cast

from subchain.errors import InputError
from subchain.inference.run.problem import Problem
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.structure import Chains


@dataclasses.dataclass
class ChainProblem(Problem):
    """A problem about hidden Markov chains."""

    structure: Chains
    prior: HMMPosterior


def chain_problem(problem: Problem, what: str) -> ChainProblem:
    """Return the problem as one about chains; raise an `InputError` that names `what` if it is about something else."""
    if not isinstance(problem.structure, Chains):
        raise InputError(f"{what} is for hidden Markov chains, not for {type(problem.structure).__name__}.")
    return cast(ChainProblem, problem)
