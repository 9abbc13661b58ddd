"""The joint probability of observations and hidden states, with the parameters summed out.

For transitions and symbols it is a product of gamma functions of counts (equation 3.24 of Wang's thesis), which their
priors compute (`log_evidence`). For emissions of any other conjugate family it follows from an identity: where q is the
posterior itself, the variational bound is the evidence, so

    log p(x | z) = E_q[log p(x | z, θ)] − KL(q ‖ prior).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.legal_states import LegalStates
from subchain.data.missing import BLOCK_VALUES
from subchain.emissions.base import Likelihood, Posterior

States = NDArray[np.integer]


def one_hot(states: States, n_states: int) -> LegalStates:
    """Certain states, as lists of one."""
    return LegalStates(np.arange(len(states) + 1), np.ascontiguousarray(states, dtype=np.int32), None, n_states)


def blocks_of(n: int, n_states: int) -> list[slice]:
    """Positions in pieces for which a table over all states stays small."""
    size = max(BLOCK_VALUES // n_states, 1)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def emission_sums(likelihood: Likelihood, values: NDArray[Any], states: States) -> Any:
    """The family's sums of observations whose states are certain."""
    sums = likelihood.zeros()
    for block in blocks_of(len(states), likelihood.n_states):
        here = one_hot(states[block], likelihood.n_states)
        likelihood.accumulate_listed(np.asarray(values[block]), here, np.ones(len(here.states)), sums)
    return sums


def log_joint_of_emissions(prior: Posterior, sums: Any, values: NDArray[Any], states: States) -> float:
    """Log probability of observations given their states; `sums` are theirs."""
    known = prior.log_evidence(sums)
    if known is not None:
        return known
    posterior = prior.update(sums)
    expected, total = posterior.expected_log(), 0.0
    for block in blocks_of(len(states), expected.n_states):
        here = one_hot(states[block], expected.n_states)
        total += float(expected.log_likelihood_listed(np.asarray(values[block]), here).sum())
    return total - posterior.kl(prior)
