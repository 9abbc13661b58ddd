"""The kernels for low-rank transitions: two matrix products a step, and no table of all transitions.

Every state leads to every other (`transitions.low_rank.LEAST`), so that nothing that underflows can matter later,
unless a whole position does: such sequences are run in log space, as others are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.kernels import Forms, Kernels
from subchain.propagation import factors as products
from subchain.propagation import underflow as losses
from subchain.propagation.factors import Factors
from subchain.propagation.lanes.products import carry, paired
from subchain.propagation.layout import Walks
from subchain.propagation.underflow import UNWATCHED
from subchain.transitions.operators import Factored, TransitionOperator

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: What kernels are given in the place of a matrix that they do not read.
NO_MATRIX = np.zeros((1, 1))


class FactoredKernels(Kernels):
    """The kernels for an operator that is kept as two factors."""

    operator: Factored
    takes_lists = False
    halves = 2

    def __init__(self, operator: Factored) -> None:
        super().__init__(operator)
        self.factors: Factors = operator.factors
        self.steps = UNWATCHED

    def _forms(self, operator: TransitionOperator) -> Forms:
        assert isinstance(operator, Factored)
        factors = operator.factors
        return Forms(factors, factors.turned, factors.turned)

    def pair_sums(self, alpha: Array, weighted: Array, offsets: Index, sums: Array) -> None:
        for before, after in paired(alpha, weighted, offsets):
            products.pair_sums(before, after, self.factors, sums)

    # ---- underflow ---------------------------------------------------------------------------------------------------

    def growth(
        self, likelihood: Array, start: Array, walks: Walks, alpha: Array, scale: Array,
        follows: NDArray[np.bool_] | None = None,
    ) -> losses.Growth:  # fmt: skip
        return losses.growth(likelihood, start, NO_MATRIX, UNWATCHED, walks, alpha, scale, follows)

    def possible(self, initial: Array) -> NDArray[np.bool_]:
        return np.ones(len(initial), dtype=np.bool_)

    # ---- one chain ---------------------------------------------------------------------------------------------------

    def advance_row(self, likelihood: Array, alpha: Array) -> None:
        message = alpha[:, None]
        for here in likelihood:
            carry(self.factors, message.copy(), message)
            message *= here[:, None]
            _normalise(message)

    def recede_row(self, likelihood: Array, beta: Array) -> None:
        message, turned = beta[:, None], self.factors.turned
        for here in likelihood[::-1]:
            carry(turned, message * here[:, None], message)
            _normalise(message)

    # ---- log space ---------------------------------------------------------------------------------------------------

    def log_forward(self, logs: Array, alpha: Array, out: Array) -> None:
        products.log_forward(logs, self.operator.log_factors, alpha, out)

    def log_backward(self, logs: Array, beta: Array, out: Array) -> None:
        products.log_backward(logs, self.operator.log_factors, beta, out)

    def log_predictions(self, logs: Array, first: Array, out: Array) -> None:
        turned = np.empty_like(out)
        products.log_backward(logs[::-1], self.operator.log_factors.turned, first.copy(), turned)
        out[:] = turned[::-1]

    def log_pair_sums(self, alpha: Array, logs: Array, beta: Array, log_total: float, sums: Array) -> None:
        products.log_pair_sums(alpha, logs, self.operator.log_factors, beta, log_total, sums)


def _normalise(message: Array) -> None:
    total = message.sum()
    message /= total if total > 0.0 else 1.0


def kernels_of(operator: TransitionOperator) -> Kernels:
    """Return the kernels for an operator."""
    return FactoredKernels(operator) if isinstance(operator, Factored) else Kernels(operator)
