"""Bernoulli emissions: vectors of zeros and ones, independent given the state, with Beta priors."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, digamma, xlog1py, xlogy

from subchain.core.ranges import FRACTIONS, POSITIVE, ROUNDING
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
    filled_rows,
    read_block,
    weigh,
    weigh_logs,
)
from subchain.emissions.hyperparameters import check_mode, per_column, state_table

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts
    from subchain.emissions.steps.base import EmissionSteps

#: Both parameters of Jeffreys' prior, which weighs as much as one observation.
JEFFREYS = 0.5


class BernoulliLikelihood(CountLikelihood):
    """Log likelihood x · log p + (1 − x) · log(1 − p), where both logarithms may be expectations or −inf."""

    @abstractmethod
    def logs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log weights of a one and of a zero, each (K, D)."""

    def log_likelihood(self, values: Values) -> Table:
        amounts, known = read_block(values)
        one, zero = self.logs()
        if np.isfinite(one).all() and np.isfinite(zero).all():
            return np.asarray((one - zero) @ amounts + weigh(zero, known))
        zeros = (1.0 if known is None else known) - amounts
        return weigh_logs(one, amounts) + weigh_logs(zero, zeros)

    def linear(self) -> tuple[NDArray[np.float64], NDArray[np.float64], bool] | None:
        one, zero = self.logs()
        return (one - zero, np.ascontiguousarray(zero), False) if np.isfinite(zero).all() else None


@dataclasses.dataclass
class BernoulliWeights(BernoulliLikelihood):
    """Surrogate with given log weights of a one and of a zero, such as E[log p] and E[log(1 − p)], each (K, D)."""

    one: NDArray[np.float64]
    zero: NDArray[np.float64]

    @property
    def dimensions(self) -> tuple[int, ...]:
        return self.one.shape

    def logs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.one, self.zero


@dataclasses.dataclass
class BernoulliParameters(BernoulliLikelihood, Parameters):
    """Probability of a one in each state and column, `probabilities` (K, D); 0 and 1 are allowed."""

    probabilities: NDArray[np.float64] = array("KD", FRACTIONS)

    @property
    def dimensions(self) -> tuple[int, ...]:
        return self.probabilities.shape

    def logs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities), np.log1p(-self.probabilities)

    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        return (rng.random((len(states), self.n_columns)) < self.probabilities[states]).astype(np.int64)

    @property
    def n_free(self) -> int:
        return int(self.probabilities.size)

    def expectation(self) -> NDArray[np.float64]:
        return self.probabilities

    def marginals(self) -> Any:
        from scipy import stats

        return stats.bernoulli(self.probabilities)


@dataclasses.dataclass
class BetaTable(Conjugate):
    """Independent Beta(successes, failures) distributions of the probabilities; both arrays are (K, D)."""

    successes: NDArray[np.float64] = array("KD", POSITIVE)
    failures: NDArray[np.float64] = array("KD", POSITIVE)

    def update(self, sums: CountSums) -> Self:
        return dataclasses.replace(
            self, successes=self.successes + sums.total, failures=self.failures + (sums.weight - sums.total)
        )

    def check_sums(self, sums: CountSums) -> None:
        if (sums.total > sums.weight + ROUNDING * np.maximum(sums.weight, 1.0)).any():
            raise ValueError("there are more ones than observations")

    def mean(self) -> BernoulliParameters:
        return BernoulliParameters(self.successes / (self.successes + self.failures))

    def mode(self) -> BernoulliParameters:
        one, zero = np.maximum(self.successes - 1.0, 0.0), np.maximum(self.failures - 1.0, 0.0)
        total = one + zero
        return BernoulliParameters(np.where(total > EMPTY, one / np.where(total > EMPTY, total, 1.0), 0.5))

    def expected_log(self) -> BernoulliWeights:
        total = digamma(self.successes + self.failures)
        return BernoulliWeights(digamma(self.successes) - total, digamma(self.failures) - total)

    def predictive(self) -> BernoulliWeights:
        total = np.log(self.successes + self.failures)
        return BernoulliWeights(np.log(self.successes) - total, np.log(self.failures) - total)

    def sample(self, rng: np.random.Generator) -> BernoulliParameters:
        # A draw that rounds to 0 or 1 would make ones or zeros impossible, and no later update would undo that.
        return BernoulliParameters(np.clip(rng.beta(self.successes, self.failures), 1e-300, 1.0 - 2.0**-53))

    def kl(self, prior: BetaTable) -> float:
        ones, zeros = self.successes - prior.successes, self.failures - prior.failures
        normalizer = betaln(prior.successes, prior.failures) - betaln(self.successes, self.failures)
        total = digamma(self.successes + self.failures)
        expected = ones * (digamma(self.successes) - total) + zeros * (digamma(self.failures) - total)
        return float((normalizer + expected).sum())

    def log_partition(self) -> NDArray[np.float64]:
        return np.asarray(betaln(self.successes, self.failures).sum(axis=1))

    def log_density(self, parameters: BernoulliParameters) -> float:
        p = parameters.probabilities
        return float((xlogy(self.successes - 1.0, p) + xlog1py(self.failures - 1.0, -p)).sum())

    def steps(self, sums: CountSums, kind: str, values: Values) -> EmissionSteps | None:
        from subchain.emissions.steps.counts import flag_steps

        return flag_steps(self, sums, kind, values)

    def counts(self, sums: CountSums, values: Values) -> EmissionCounts:
        from subchain.emissions.collapsed.bernoulli import bernoulli_counts

        return bernoulli_counts(self, sums, values)


class Bernoulli(CountEmission):
    """Vectors of zeros and ones, (N, D) or (N,), whose columns are independent given the state.

    Entries are booleans, integers (−1 where missing) or floating-point numbers (nan where missing). A missing entry is
    ignored; the other columns of its row are used.

    Parameters
    ----------
    successes, failures : float or (D,) or (K, D), optional
        Parameters of the Beta prior: pseudo-counts of ones and zeros. By default both are 0.5 (Jeffreys' prior) for
        variational and collapsed inference, and 1 for EM, which gives the maximum-likelihood estimate.
    columns : names or indices, optional
        Columns that hold the zeros and ones.
    frozen : bool or list of states
        Whether to keep the parameters of the start (`init=` a model), of all states or of those in a list.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.emissions import Bernoulli
    >>> Bernoulli.from_parameters([[0.5, 0.25], [1.0, 0.0]]).log_likelihood(np.array([[1, 1]])).round(3)
    array([[-2.079],
           [  -inf]])
    """

    name = "bernoulli"
    parameters_type = BernoulliParameters

    def __init__(self, successes: Any = None, failures: Any = None, columns: Any = None, frozen: Any = False) -> None:
        self.successes = successes
        self.failures = failures
        self.columns = columns
        self.frozen = frozen

    @staticmethod
    def from_parameters(probabilities: ArrayLike) -> BernoulliParameters:
        """Build parameters from the probabilities of a one, (K, D), or (K,) for one column."""
        return BernoulliParameters(state_table("probabilities", probabilities, largest=1.0))

    def check(self, data: Sequences) -> None:
        without_symbols(data, "Bernoulli")
        check_counts(data, "Bernoulli", "0 or 1", largest=1.0)

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> BetaTable:
        tables = []
        for name, given in (("successes", self.successes), ("failures", self.failures)):
            if flat and given is not None:
                check_mode(name, given)
            default = 1.0 if flat else JEFFREYS
            tables.append(per_column(name, default if given is None else given, n_states, data.n_features))
        return BetaTable(*tables)

    def features(self, data: Sequences, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the zeros and ones themselves; None for one column, whose clusters would emit one value only."""
        return filled_rows(data, index) if data.n_features > 1 else None
