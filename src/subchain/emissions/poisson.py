"""Poisson emissions: vectors of counts, independent given the state, with Gamma priors on the rates.

The predictive distribution is negative binomial.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, xlogy

from subchain.core.ranges import NOT_NEGATIVE, POSITIVE
from subchain.core.records import array
from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Parameters, Table, Values
from subchain.emissions.checks import without_symbols
from subchain.emissions.counts import (
    EMPTY,
    CountEmission,
    CountLikelihood,
    CountSums,
    check_counts,
    column_means,
    filled_rows,
    read_block,
    weigh,
    weigh_logs,
)
from subchain.emissions.hyperparameters import check_mode, per_column, state_table
from subchain.errors import InputError
from subchain.numerics.special import log_factorial, log_rising

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts
    from subchain.emissions.steps.base import EmissionSteps


class PoissonLikelihood(CountLikelihood):
    """Log likelihood x · log λ − λ − log x!, where log λ and λ may be expectations."""

    @abstractmethod
    def terms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log λ (−inf for rates of zero) and λ, each (K, D)."""

    def log_likelihood(self, values: Values) -> Table:
        amounts, known = read_block(values)
        log_rates, rates = self.terms()
        return np.asarray(weigh_logs(log_rates, amounts) - weigh(rates, known) - log_factorial(amounts).sum(axis=0))

    def linear(self) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
        log_rates, rates = self.terms()
        return np.ascontiguousarray(log_rates), -rates, True


#: Largest rate from which whole numbers are drawn.
LARGEST_DRAWN = 1e18


@dataclasses.dataclass
class PoissonWeights(PoissonLikelihood):
    """Variational surrogate: E[log λ] and E[λ], each (K, D)."""

    log_rates: NDArray[np.float64]
    rates: NDArray[np.float64]

    @property
    def dimensions(self) -> tuple[int, ...]:
        return self.rates.shape

    def terms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.log_rates, self.rates


@dataclasses.dataclass
class PoissonPredictive(CountLikelihood):
    """Predictive distribution of a count whose rate has a Gamma(shape, rate) distribution; both are (K, D)."""

    shape: NDArray[np.float64]
    rate: NDArray[np.float64]

    @property
    def dimensions(self) -> tuple[int, ...]:
        return self.shape.shape

    def log_likelihood(self, values: Values) -> Table:
        amounts, known = read_block(values)
        logs = -weigh(self.shape * np.log1p(1.0 / self.rate), known) - np.log1p(self.rate) @ amounts
        logs -= log_factorial(amounts).sum(axis=0)
        for column, counts in enumerate(amounts):
            distinct, place = np.unique(counts, return_inverse=True)
            logs += log_rising(self.shape[:, column, None], distinct)[:, place]
        return logs


@dataclasses.dataclass
class PoissonParameters(PoissonLikelihood, Parameters):
    """Mean count of each state and column, `rates` (K, D); a rate of 0 makes every positive count impossible."""

    rates: NDArray[np.float64] = array("KD", NOT_NEGATIVE)

    @property
    def dimensions(self) -> tuple[int, ...]:
        return self.rates.shape

    def terms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        with np.errstate(divide="ignore"):
            return np.log(self.rates), self.rates

    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        if self.rates.max(initial=0.0) > LARGEST_DRAWN:
            raise InputError(f"Poisson: counts with a rate of {self.rates.max():.3g} cannot be drawn; they overflow.")
        return rng.poisson(self.rates[states])

    @property
    def n_free(self) -> int:
        return int(self.rates.size)

    def expectation(self) -> NDArray[np.float64]:
        return self.rates

    def marginals(self) -> Any:
        from scipy import stats

        return stats.poisson(self.rates)


@dataclasses.dataclass
class GammaRates(Conjugate):
    """Independent Gamma(shape, rate) distributions of the rates, one per state and column; both are (K, D)."""

    shape: NDArray[np.float64] = array("KD", POSITIVE)
    rate: NDArray[np.float64] = array("KD", NOT_NEGATIVE)

    def update(self, sums: CountSums) -> Self:
        return dataclasses.replace(self, shape=self.shape + sums.total, rate=self.rate + sums.weight)

    def mean(self) -> PoissonParameters:
        return PoissonParameters(self._per_rate(self.shape))

    def mode(self) -> PoissonParameters:
        return PoissonParameters(self._per_rate(np.maximum(self.shape - 1.0, 0.0)))

    def _per_rate(self, amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Divide amounts (K, D) by `rate`; with a flat prior and next to no data, use the ratio over all states."""
        total, weight = amounts.sum(axis=0), self.rate.sum(axis=0)
        pooled = np.where(weight > 0.0, total / np.where(weight > 0.0, weight, 1.0), 1.0)
        known = self.rate > EMPTY
        return np.where(known, amounts / np.where(known, self.rate, 1.0), pooled)

    def expected_log(self) -> PoissonWeights:
        return PoissonWeights(digamma(self.shape) - np.log(self.rate), self.shape / self.rate)

    def predictive(self) -> PoissonPredictive:
        return PoissonPredictive(self.shape, self.rate)

    def sample(self, rng: np.random.Generator) -> PoissonParameters:
        # A draw that underflows to 0 would make positive counts impossible, and no later update would undo that.
        return PoissonParameters(np.maximum(rng.gamma(self.shape) / self.rate, 1e-300))

    def kl(self, prior: GammaRates) -> float:
        gain = (self.shape - prior.shape) * digamma(self.shape) - gammaln(self.shape) + gammaln(prior.shape)
        scale = prior.shape * np.log(self.rate / prior.rate) + self.shape * (prior.rate / self.rate - 1.0)
        return float((gain + scale).sum())

    def log_partition(self) -> NDArray[np.float64]:
        return np.asarray((gammaln(self.shape) - self.shape * np.log(self.rate)).sum(axis=1))

    def log_density(self, parameters: PoissonParameters) -> float:
        return float((xlogy(self.shape - 1.0, parameters.rates) - self.rate * parameters.rates).sum())

    def steps(self, sums: CountSums, kind: str, values: Values) -> EmissionSteps | None:
        from subchain.emissions.steps.counts import rate_steps

        return rate_steps(self, sums, kind, values)

    def counts(self, sums: CountSums, values: Values) -> EmissionCounts:
        from subchain.emissions.collapsed.poisson import poisson_counts

        return poisson_counts(self, sums, values)


class Poisson(CountEmission):
    """Vectors of counts, (N, D) or (N,), whose columns are independent given the state.

    Counts are whole numbers from 0, as integers (−1 where missing) or floating-point numbers (nan where missing). A
    missing entry is ignored; the other columns of its row are used.

    Parameters
    ----------
    shape : float or (D,) or (K, D), optional
        Shape of the Gamma prior: a pseudo-total of counts. 1 by default.
    rate : float or (D,) or (K, D), optional
        Rate of the Gamma prior: a pseudo-number of positions. By default such that the prior mean is the mean of the
        column in the data; for EM 0, which with a shape of 1 gives the maximum-likelihood estimate.
    columns : names or indices, optional
        Columns that hold the counts.
    frozen : bool or list of states
        Whether to keep the parameters of the start (`init=` a model), of all states or of those in a list.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.emissions import Poisson
    >>> Poisson.from_parameters([[0.5, 3.0], [8.0, 0.0]]).log_likelihood(np.array([[0, 1]])).round(3)
    array([[-2.401],
           [  -inf]])
    """

    name = "poisson"
    parameters_type = PoissonParameters

    def __init__(self, shape: Any = None, rate: Any = None, columns: Any = None, frozen: Any = False) -> None:
        self.shape = shape
        self.rate = rate
        self.columns = columns
        self.frozen = frozen

    @staticmethod
    def from_parameters(rates: ArrayLike) -> PoissonParameters:
        """Build parameters from rates, (K, D), or (K,) for one column."""
        return PoissonParameters(state_table("rates", rates, largest=float(np.finfo(np.float64).max)))

    def check(self, data: Sequences) -> None:
        without_symbols(data, "Poisson")
        check_counts(data, "Poisson", "whole numbers from 0")

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> GammaRates:
        if flat and self.shape is not None:
            check_mode("shape", self.shape)
        given = 1.0 if self.shape is None else self.shape
        shape = per_column("shape", given, n_states, data.n_features)
        if self.rate is not None:
            return GammaRates(shape, per_column("rate", self.rate, n_states, data.n_features))
        return GammaRates(shape, np.zeros_like(shape) if flat else shape / column_means(data))

    def features(self, data: Sequences, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the square roots of the counts, whose variance hardly depends on the rate."""
        return np.sqrt(filled_rows(data, index))
