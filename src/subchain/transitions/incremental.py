"""The hidden chain's posterior that changes in small steps, for stochastic and collapsed inference."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import EXPECTED_LOG, KINDS, MEAN, MODE
from subchain.numerics.linking import linked
from subchain.numerics.special import SMALL_TOTAL, exp_digamma, small_dirichlet_weight
from subchain.transitions.base import ChainLaw, ChainPosterior, ChainSums
from subchain.transitions.stationary import stationary_of

if TYPE_CHECKING:
    from subchain.propagation.collapsed.rows import Rows

Array = NDArray[np.float64]


class IncrementalChain:
    """Posterior of a chain, from a prior and expected counts that change a little at a time.

    Parameters
    ----------
    prior : the chain's distribution before the data
    sums : expected first states and transitions to begin with
    """

    def __init__(self, prior: ChainPosterior, sums: ChainSums) -> None:
        self.prior = prior
        self.initial = np.array(sums.initial, dtype=np.float64)
        self.pairs = np.array(sums.pairs, dtype=np.float64)
        self._form = sums
        self._posterior: ChainPosterior | None = None

    def surrogate(self, kind: str) -> ChainLaw:
        """The chain called `kind`: "expected_log", "predictive", "mean" or "mode"."""
        if self._posterior is None:
            self._posterior = self.prior.update(self._form.like(self.initial, self.pairs))
        found: ChainLaw = getattr(self._posterior, kind)()
        return found

    def stationary(self) -> Array:
        """Stationary distribution of the expected transition matrix."""
        return stationary_of(self.surrogate("mean").operator)

    def adopt(self, prior: Any) -> None:
        """Continue under another prior with the same counts."""
        self.prior, self._posterior = prior, None

    def sums(self) -> ChainSums:
        """Return a copy of the present counts."""
        return self._form.like(self.initial.copy(), self.pairs.copy())

    def apply_factor(self) -> None:
        """Do nothing: no factor is kept beside the counts."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """Return nothing: the counts are all there is."""
        return {}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """Undo `memory`."""

    def counts(self) -> Rows:
        """Return counts for the kernels of collapsed inference, which change those of this object in place.

        For dense transitions only. First states become the last row of one table, (K + 1, K).
        """
        from subchain.propagation.collapsed.rows import count_rows

        table = np.vstack((self.pairs, self.initial))
        self.pairs, self.initial = table[:-1], table[-1]
        prior = self.prior.row_prior()
        if prior.is_stationary:
            prior.fixed[-1] = self.surrogate("predictive").initial
        return count_rows(prior, table)

    def blend(self, keep: float, gain: float, fresh: ChainSums) -> None:
        """Replace the counts S by keep · S + gain · fresh."""
        self._posterior = None
        self.initial *= keep
        self.initial += gain * fresh.initial
        self.pairs *= keep
        self.pairs += gain * fresh.pairs


#: Weights down to the exponential of minus this are kept as they are. Smaller ones are raised to it: what is improbable
#: must not become impossible.
LARGEST_EXPONENT = 690.0
LEAST_WEIGHT = float(np.exp(-LARGEST_EXPONENT))


@linked(error_model="numpy")
def _exponentiate(row, total):
    """Replace concentrations, (1, K), by weights in proportion to e^E[log p]; return what to divide them by.

    Where all weights of a row would underflow, they get a common factor: such a row is then not as improbable beside
    other rows as it should be, but its weights keep their ratios.
    """
    if 0.0 < total < SMALL_TOTAL:
        shift = max(1.0 / row.max() - 1.0 / total - LARGEST_EXPONENT, 0.0)
        for k in range(row.shape[1]):
            row[0, k] = small_dirichlet_weight(row[0, k], total, shift) if row[0, k] > 0.0 else 0.0
        return 1.0
    whole = np.full((1, 1), total if total > 0.0 else 1.0)
    exp_digamma(whole)
    exp_digamma(row)
    return whole[0, 0]


@linked(error_model="numpy")
def dirichlet_rows(kind, prior, counts, fixed, out):
    """Rows of a Dirichlet posterior as probabilities or weights, those that are fixed in their places."""
    for j in range(prior.shape[0]):
        share, total = 1.0, 0.0
        for k in range(prior.shape[1]):
            share -= fixed[j, k]
            if prior[j, k] > 0.0:
                value = prior[j, k] + max(counts[j, k], 0.0)  # rounding may leave less than nothing of what was taken
                if kind == MODE:
                    value = max(value - 1.0, 0.0)
                out[j, k] = value
                total += value
            else:
                out[j, k] = 0.0
        if kind == EXPECTED_LOG:
            total = _exponentiate(out[j : j + 1], total)
        elif total <= 0.0:
            for k in range(prior.shape[1]):
                out[j, k] = 1.0 if prior[j, k] > 0.0 else 0.0
                total += out[j, k]
        least = LEAST_WEIGHT if kind == EXPECTED_LOG else 0.0
        for k in range(prior.shape[1]):
            out[j, k] = share * max(out[j, k] / total, least) if prior[j, k] > 0.0 else fixed[j, k]


class IncrementalDirichlet(IncrementalChain):
    """As `IncrementalChain`, for Dirichlet rows: a step costs microseconds."""

    def __init__(self, prior: Any, sums: ChainSums) -> None:
        super().__init__(prior, sums)
        self._nothing_fixed = np.zeros((1, len(self.initial)))
        self.adopt(prior)

    def adopt(self, prior: Any) -> None:
        super().adopt(prior)
        self.prior_rows = np.ascontiguousarray(prior.rows.concentration)
        self.fixed = np.ascontiguousarray(prior.rows.fixed)
        concentration = getattr(prior.initial, "concentration", None)
        self.learns_first = concentration is not None
        self.prior_first = np.zeros((1, len(self.initial)))
        if concentration is not None:
            self.prior_first[0] = concentration

    def _transition(self, kind: int) -> Array:
        out = np.empty_like(self.pairs)
        dirichlet_rows(kind, self.prior_rows, self.pairs, self.fixed, out)
        return out

    def surrogate(self, kind: str) -> ChainLaw:
        prior: Any = self.prior
        how = KINDS[kind]
        transition = self._transition(how)
        if self.learns_first:
            first = np.empty_like(self.prior_first)
            dirichlet_rows(how, self.prior_first, self.initial[None], self._nothing_fixed, first)
            return self._closed(prior.law(first[0], transition), kind)
        weights = transition if how == MODE else self._transition(MEAN)
        return self._closed(prior.law(prior.initial.mean(prior.moves(weights)), transition), kind)

    def _closed(self, chain: ChainLaw, kind: str) -> ChainLaw:
        """Return the chain with the weights of its endings, which algorithms that use this class do not learn."""
        found: ChainLaw = self.prior.final.closed(chain, kind)  # type: ignore[attr-defined]
        return found

    def stationary(self) -> Array:
        prior: Any = self.prior
        return stationary_of(prior.moves(self._transition(MEAN)))
