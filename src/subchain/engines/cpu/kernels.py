"""Which compiled kernels run a kind of transition operator.

Kernels of the lanes, of single chains and of log space take a matrix or a band and are compiled for either; matrices of
many states are multiplied by a library instead. `Kernels` keeps an operator in all the forms that they take. Those for
low-rank transitions are in `factored.py`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.propagation import lanes, serial
from subchain.propagation import underflow as losses
from subchain.propagation.band import Band
from subchain.propagation.band import reached as band_reached
from subchain.propagation.factors import Factors
from subchain.propagation.lanes import products
from subchain.propagation.lanes.sums import band_pair_sums
from subchain.propagation.layout import Walks
from subchain.propagation.underflow import UNWATCHED, reached, steps_of
from subchain.transitions.operators import Banded, Dense, Factored, TransitionOperator
from subchain.transitions.sums import check_dense

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: From this number of states on, a step with a matrix is a matrix product.
MANY_STATES = 1024


class Forms(NamedTuple):
    """An operator A as kernels take it; see `propagation.band`.

    Attributes
    ----------
    forward : for Σ_j x[j] · A[j, k]: the matrix, or the band of its transpose
    backward : for Σ_k A[j, k] · x[k]: the transposed matrix, or the band of the matrix
    into : whose row k lists what leads to state k: the transposed matrix, or the band of that
    """

    forward: Array | Band | Factors
    backward: Array | Band | Factors
    into: Array | Band | Factors

    @classmethod
    def of(cls, operator: TransitionOperator) -> Forms:
        if isinstance(operator, Banded):
            return cls(operator.into, operator.out_of, operator.into)
        matrix = operator if isinstance(operator, Dense) else Dense(operator.dense())
        return cls(matrix.weights, matrix.transposed, matrix.transposed)


class Kernels:
    """The kernels for one operator.

    Attributes
    ----------
    forms : the operator as kernels take it
    is_wide : whether steps are matrix products, for which many lanes side by side are best
    halves : in how many halves a transition is counted: one, or two if it passes through a feature
    """

    halves = 1

    def __init__(self, operator: TransitionOperator) -> None:
        self.operator = operator
        self.forms = self._forms(operator)
        self.is_banded = isinstance(operator, Banded)
        self.is_wide = has_wide_steps(operator)
        self._lanes: Any = products if self.is_wide else lanes

    def _forms(self, operator: TransitionOperator) -> Forms:
        return Forms.of(operator)

    @property
    def takes_lists(self) -> bool:
        """Whether passes may run along lists of legal states."""
        return not self.is_banded

    # ---- lanes -------------------------------------------------------------------------------------------------------

    def forward(self, likelihood: Array, start: Array, offsets: Index, alpha: Array, scale: Array) -> None:
        self._lanes.forward(likelihood, self.forms.forward, start, offsets, alpha, scale)

    def backward(
        self, likelihood: Array, stop: Array, offsets: Index, alpha: Array, scale: Array, marginals: Array
    ) -> None:
        self._lanes.backward(likelihood, self.forms.backward, stop, offsets, alpha, scale, marginals)

    def forward_backward(
        self, likelihood: Array, start: Array, stop: Array, offsets: Index, shift: Array, alpha: Array, scale: Array,
        marginals: Array, totals: Array,
    ) -> None:  # fmt: skip
        self._lanes.forward_backward(
            likelihood, self.forms.forward, self.forms.backward, start, stop, offsets, shift, alpha, scale, marginals,
            totals,
        )  # fmt: skip

    def log_totals(self, scale: Array, shift: Array, offsets: Index, totals: Array) -> None:
        self._lanes.log_totals(scale, shift, offsets, totals)

    def advance(self, likelihood: Array, start: Array, offsets: Index, last: Array) -> None:
        self._lanes.advance(likelihood, self.forms.forward, start, offsets, last)

    def retreat(self, likelihood: Array, stop: Array, offsets: Index, before: Array) -> None:
        self._lanes.retreat(likelihood, self.forms.backward, stop, offsets, before)

    def approach(
        self, likelihood: Array, start: Array, stop: Array, offsets: Index, last: Array, before: Array
    ) -> None:
        self._lanes.approach(likelihood, self.forms.forward, self.forms.backward, start, stop, offsets, last, before)

    def pair_sums(self, alpha: Array, weighted: Array, offsets: Index, sums: Array) -> None:
        """Add expected transitions, without the factor of their weights, to sums of the operator's form."""
        if isinstance(self.operator, Banded):
            band_pair_sums(alpha, weighted, offsets, self.operator.layout.first, sums)
        else:
            self._lanes.pair_sums(alpha, weighted, offsets, sums)

    # ---- underflow ---------------------------------------------------------------------------------------------------

    @cached_property
    def steps(self) -> losses.Flags:
        """Which transitions are possible, (K, K); (0, 0) for bands, and where no loss to underflow can matter."""
        return UNWATCHED if self.is_banded else steps_of(np.asarray(self.forms.forward))

    @property
    def every_way(self) -> bool:
        """Whether nothing that is lost to underflow can matter later."""
        return not self.is_banded and len(self.steps) == 0

    def growth(
        self, likelihood: Array, start: Array, walks: Walks, alpha: Array, scale: Array,
        follows: NDArray[np.bool_] | None = None,
    ) -> losses.Growth:  # fmt: skip
        assert not isinstance(self.forms.forward, Factors)
        return losses.growth(likelihood, start, self.forms.forward, self.steps, walks, alpha, scale, follows)

    def possible(self, initial: Array) -> NDArray[np.bool_]:
        """States (K,) that can be reached from those with initial weight."""
        possible = initial > 0.0
        if isinstance(self.operator, Banded):
            band_reached(self.operator.into, possible)
            return possible
        return reached(np.asarray(self.forms.forward), possible)

    # ---- one chain ---------------------------------------------------------------------------------------------------

    def advance_row(self, likelihood: Array, alpha: Array) -> None:
        serial.advance(likelihood, self.forms.forward, alpha)

    def recede_row(self, likelihood: Array, beta: Array) -> None:
        serial.recede(likelihood, self.forms.backward, beta)

    # ---- log space ---------------------------------------------------------------------------------------------------

    @cached_property
    def log_forms(self) -> Forms:
        """Log weights as kernels take them."""
        with np.errstate(divide="ignore"):
            return Forms.of(self.operator.mapped(np.log))

    def log_forward(self, logs: Array, alpha: Array, out: Array) -> None:
        serial.log_forward(logs, self.log_forms.forward, alpha, out)

    def log_backward(self, logs: Array, beta: Array, out: Array) -> None:
        serial.log_backward(logs, self.log_forms.backward, beta, out)

    def log_predictions(self, logs: Array, first: Array, out: Array) -> None:
        """Log weights (n, K) of the states of n positions before their own observations, `first` (K,) being the first.

        A prediction obeys the recursion of a backward message, run from left to right over the transposed matrix.
        """
        turned = np.empty_like(out)
        serial.log_backward(logs[::-1].copy(), self.log_forms.forward, first.copy(), turned)
        out[:] = turned[::-1]

    def log_pair_sums(self, alpha: Array, logs: Array, beta: Array, log_total: float, sums: Array) -> None:
        if self.is_banded:
            serial.band_log_pair_sums(alpha, self.log_forms.backward, logs, beta, log_total, sums)
        else:
            serial.log_pair_sums(alpha, self.log_forms.forward, logs, beta, log_total, sums)


def has_wide_steps(operator: TransitionOperator) -> bool:
    """Whether steps with an operator are products of whole matrices or factors."""
    if isinstance(operator, Factored):
        return True
    return operator.n_states >= MANY_STATES and not isinstance(operator, Banded)


def needs_matrix(operator: TransitionOperator, what: str) -> TransitionOperator:
    """Return the operator as a dense one; raise an `InputError` if it is of another kind and has too many states."""
    if isinstance(operator, Dense):
        return operator
    check_dense(operator.n_states, what)
    return Dense(operator.dense())
