"""The joint probability of observations and hidden states, with the parameters summed out.

For moves and symbols it is a product of gamma functions of counts (equation 3.24 of Wang's thesis), which their priors
know (`log_evidence`). For emissions of any other conjugate family it follows from an identity: where q is the posterior
itself, the variational bound is the evidence, so

    log p(x | z) = E_q[log p(x | z, θ)] − KL(q ‖ prior).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subchain.data.legal_states import LegalStates
from subchain.data.missing import BLOCK_VALUES
from subchain.emissions.base import Likelihood, Posterior
from subchain.emissions.categorical import DirichletTable
from subchain.propagation.collapsed.rows import Rows
from subchain.transitions.base import ChainPosterior, FrozenChain
from subchain.transitions.initial import GivenInitial, LearnedInitial, StationaryInitial

Array = NDArray[np.float64]
States = NDArray[np.integer]

#: Rising factorials of so few factors are multiplied out.
FEW = 8


# ---- moves -----------------------------------------------------------------------------------------------------------


def empty_rows(prior: Any) -> Rows:
    """The rows of a chain's prior, first states in the last, with nothing counted.

    A chain that begins in its stationary distribution gets a last row of ones: its first states say nothing here.
    """
    concentration, fixed = _matrix(prior)
    n_states = fixed.shape[1]
    first, law = np.zeros(n_states), np.ones(n_states)
    initial = getattr(prior, "initial", None)
    if isinstance(initial, LearnedInitial):
        first, law = initial.concentration, np.zeros(n_states)
    elif isinstance(initial, GivenInitial):
        law = initial.probabilities
    elif isinstance(prior, FrozenChain):
        law = prior.chain.initial
    concentration, fixed = np.vstack((concentration, first)), np.vstack((fixed, law))
    shares = 1.0 - np.where(concentration.any(axis=1), fixed.sum(axis=1), 0.0)
    return Rows(np.zeros_like(fixed), np.zeros(len(fixed)), concentration, concentration.sum(axis=1), fixed, shares)


def _matrix(prior: ChainPosterior) -> tuple[Array, Array]:
    if isinstance(prior, FrozenChain):
        return np.zeros_like(prior.chain.transition), np.ascontiguousarray(prior.chain.transition)
    rows: Any = prior.rows  # type: ignore[attr-defined]
    return np.ascontiguousarray(rows.concentration), np.where(rows.free, 0.0, rows.fixed)


def begins_stationary(prior: Any) -> bool:
    """Whether first states follow the stationary distribution of the moves."""
    return isinstance(getattr(prior, "initial", None), StationaryInitial)


# ---- emissions -------------------------------------------------------------------------------------------------------


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


def log_joint_of_symbols(prior: DirichletTable, counts: Array) -> float:
    """The same for a table of whole counts (W, K), or one with more rows and columns, many times as fast."""
    return float(_log_joint_of_table(counts, np.ascontiguousarray(prior.concentration)))


@njit(nogil=True, cache=True)
def _log_rising(c, n):
    """log Γ(c + n) − log Γ(c) for a whole number n of at least one."""
    if n > FEW:
        return math.lgamma(c + n) - math.lgamma(c)
    product = c
    for step in range(1, int(n)):
        product *= c + step
    return math.log(product)


@njit(nogil=True, cache=True)
def _log_joint_of_table(counts, concentration):
    """Log probability of counted symbols; nothing is to be done where none was, which is nearly everywhere."""
    n_symbols, n_states = concentration.shape
    emitted, totals = np.zeros(n_states), np.zeros(n_states)
    total = 0.0
    for symbol in range(n_symbols):
        for k in range(n_states):
            totals[k] += concentration[symbol, k]
            if counts[symbol, k] > 0.0:
                emitted[k] += counts[symbol, k]
                total += _log_rising(concentration[symbol, k], counts[symbol, k])
    for k in range(n_states):
        if emitted[k] > 0.0:
            total -= _log_rising(totals[k], emitted[k])
    return total
