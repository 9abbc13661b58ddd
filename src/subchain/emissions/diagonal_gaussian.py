"""Gaussian emissions with diagonal covariances and normal-inverse-gamma priors.

Each coordinate of each state has σ² ~ IG(a, b) and μ | σ² ~ N(m, σ² / κ). A missing coordinate (nan) is ignored; the
others of its row are used. With one column the family equals the full Gaussian with ν = 2 a and Ψ = 2 b.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from subchain.core.ranges import COUNTS, NOT_NEGATIVE, POSITIVE, REAL, Range
from subchain.core.records import array
from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Parameters, Table, Values
from subchain.emissions.hyperparameters import per_column
from subchain.emissions.moments import (
    EMPTY,
    FLOOR,
    LOG_2PI,
    CenteredSums,
    RealEmission,
    VectorLikelihood,
    contiguous_rows,
    data_moments,
    mean_table,
)
from subchain.emissions.normal_kernels import TOGETHER, centered, separate_moments, separate_products, separate_squares
from subchain.errors import InferenceError, InputError
from subchain.numerics.special import log_rising

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts
    from subchain.emissions.compiled.normal import SeparateNormal
    from subchain.emissions.steps.base import EmissionSteps

Array = NDArray[np.float64]


@dataclasses.dataclass
class DiagonalGaussianSums(CenteredSums):
    """Expected counts, sums and sums of squares of the known coordinates minus `origin`, each (K, D)."""

    weight: Array = array("KD", COUNTS)
    first: Array = array("KD")
    second: Array = array("KD", COUNTS)

    def about(self, origin: Array) -> Self:
        shift = self.origin - origin
        if not shift.any():
            return self
        return dataclasses.replace(
            self,
            first=self.first + self.weight * shift,
            second=self.second + (2.0 * self.first + self.weight * shift) * shift,
            origin=origin,
        )


class SeparateLikelihood(VectorLikelihood):
    """Likelihood that is a product over coordinates d of functions of |x_d − m_d|; subclasses define the function."""

    @abstractmethod
    def _evaluate(self, x: Array, out: Table) -> None:
        """Write the log likelihood of complete observations `x`, (D, n) minus origin, into `out` (K, n)."""

    @abstractmethod
    def _at_origin(self) -> Array:
        """Return the term of each coordinate in the log likelihood of the point `origin`, (K, D)."""

    def _log_likelihood_into(self, values: Values, out: Table) -> None:
        """Evaluate missing coordinates at the origin, then subtract their terms."""
        x, missing = _filled(values, self.origin)
        self._evaluate(x, out)
        if missing is not None:
            out -= self._at_origin() @ missing
            out[:, missing.all(axis=0)] = 0.0

    def zeros(self) -> DiagonalGaussianSums:
        weight, first, second = np.zeros((3, *self.means.shape))
        return DiagonalGaussianSums(weight, first, second, self.origin)

    def accumulate(self, values: Values, marginals: Table, sums: DiagonalGaussianSums) -> None:
        x, missing = _filled(values, sums.origin)
        separate_moments(x, np.ascontiguousarray(marginals), sums.first, sums.second)
        sums.weight += marginals.sum(axis=1)[:, None] if missing is None else marginals @ (1.0 - missing).T


def _filled(values: Values, origin: Array) -> tuple[Array, Array | None]:
    """Return observations minus origin, (D, n), zero where missing, and an indicator of missing entries, (D, n).

    The indicator is None if nothing is missing.
    """
    padded, any_missing = centered(values, origin)
    x = padded[: len(origin)]
    if not any_missing:
        return x, None
    missing = np.isnan(x)
    np.copyto(x, 0.0, where=missing)
    return x, missing.astype(np.float64)


class SeparateForm(SeparateLikelihood):
    """Likelihood Π_d exp{c_d − ½ p_d (x_d − m_d)²}."""

    @property
    @abstractmethod
    def precisions(self) -> Array:
        """p, (K, D)."""

    @property
    @abstractmethod
    def log_constants(self) -> Array:
        """c, (K, D)."""

    def _evaluate(self, x: Array, out: Table) -> None:
        scales = np.sqrt(self.precisions)
        separate_squares(x, scales, scales * (self.means - self.origin), self.log_constants.sum(axis=1), out)

    def compiled(self, values: Values) -> SeparateNormal | None:
        from subchain.emissions.compiled.normal import SeparateNormal

        rows = contiguous_rows(values, self.n_features)
        if rows is None:
            return None
        scales = np.sqrt(self.precisions)
        offsets = scales * (self.means - self.origin)
        return SeparateNormal(rows, self.origin, scales, offsets, self.log_constants.sum(axis=1))

    def _at_origin(self) -> Array:
        return self.log_constants - 0.5 * self.precisions * (self.means - self.origin) ** 2


class SeparateSurrogate(SeparateForm):
    """Gaussian forms with given means, precisions and log constants, each (K, D); in general not normalised."""

    def __init__(self, means: Array, precisions: Array, log_constants: Array) -> None:
        self.means = means
        self._precisions = precisions
        self._log_constants = log_constants

    @property
    def precisions(self) -> Array:
        return self._precisions

    @property
    def log_constants(self) -> Array:
        return self._log_constants


class SeparateStudents(SeparateLikelihood):
    """Independent Student t distributions: location `means`, squared scale `spreads` and `degrees`, all (K, D)."""

    def __init__(self, means: Array, spreads: Array, degrees: Array) -> None:
        self.means = means
        self.degrees = degrees
        self.powers = 0.5 * (degrees + 1.0)
        self.scales = 1.0 / np.sqrt(degrees * spreads)
        self.offsets = self.scales * (means - self.origin)
        norm = np.log(self.scales) - 0.5 * np.log(np.pi)
        self.log_constants = log_rising(0.5 * degrees, np.asarray(0.5)) + norm

    def _evaluate(self, x: Array, out: Table) -> None:
        # Columns with the same power share a logarithm; without missing values all columns have the same.
        width = TOGETHER if (self.powers == self.powers[:, :1]).all() else 1
        out[:] = self.log_constants.sum(axis=1)[:, None]
        factors = np.empty_like(out)
        for d in range(0, self.n_features, width):
            block = slice(d, d + width)
            scales, offsets = self.scales[:, block].copy(), self.offsets[:, block].copy()
            separate_products(x[block], scales, offsets, factors)
            np.log(factors, out=factors)
            factors *= self.powers[:, d, None]
            out -= factors

    def _at_origin(self) -> Array:
        return np.asarray(self.log_constants - self.powers * np.log1p(self.offsets**2))


@dataclasses.dataclass
class DiagonalGaussianParameters(SeparateForm, Parameters):
    """Means and variances, (K, D)."""

    means: Array = array("KD", REAL)
    variances: Array = array("KD", POSITIVE)

    @property
    def precisions(self) -> Array:
        return 1.0 / self.variances

    @property
    def log_constants(self) -> Array:
        return -0.5 * (LOG_2PI + np.log(self.variances))

    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        return rng.normal(self.means[states], np.sqrt(self.variances)[states])

    @property
    def n_free(self) -> int:
        return 2 * int(self.means.size)

    def expectation(self) -> Array:
        return self.means

    def fill(self, values: Values, marginals: Table) -> Values:
        """Replace missing coordinates by their means, averaged over the states; integers are never missing."""
        return super().fill(values, marginals) if values.dtype.kind == "f" else values

    def draw_missing(self, values: Values, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        return super().draw_missing(values, states, rng) if values.dtype.kind == "f" else values

    def marginals(self) -> Any:
        from scipy import stats

        return stats.norm(self.means, np.sqrt(self.variances))


@dataclasses.dataclass
class NormalInverseGamma(Conjugate):
    """Distribution over means and variances: σ² ~ IG(a, b), μ | σ² ~ N(m, σ² / κ), independent over coordinates.

    Attributes
    ----------
    location, strength, shape, scale : m, κ, a, b, each (K, D)
    origin : (D,) mean of the data
    data_variances : (D,) variances of the data; used for coordinates without data, and as the unit of the smallest
        variance

    The flat prior κ = 0, a = −3/2, b = 0 is improper, but given data its mode is the maximum-likelihood estimate.
    """

    location: Array = array("KD", REAL)
    strength: Array = array("KD", NOT_NEGATIVE)
    shape: Array = array("KD", Range(least=-1.5))
    scale: Array = array("KD", NOT_NEGATIVE)
    origin: Array = array("D", REAL)
    data_variances: Array = array("D", POSITIVE)

    def update(self, sums: DiagonalGaussianSums) -> Self:
        sums = sums.about(self.origin)
        before = self.location - self.origin
        strength = self.strength + sums.weight
        pulled = self.strength * before + sums.first
        after = pulled / np.where(strength > 0.0, strength, 1.0)
        scatter = sums.second + self.strength * before**2 - after * pulled
        return dataclasses.replace(
            self,
            location=self.origin + after,
            strength=strength,
            shape=self.shape + 0.5 * sums.weight,
            scale=self.scale + 0.5 * np.maximum(scatter, 0.0),
        )

    def mode(self) -> DiagonalGaussianParameters:
        """Return the joint mode, σ² = b / (a + 3/2), with variances of at least 1e-6 of the data's.

        A coordinate without data under a flat prior gets the data's mean and variance.
        """
        return self._point(self.shape + 1.5)

    def mean(self) -> DiagonalGaussianParameters:
        """Return the mean, σ² = b / (a − 1); where it does not exist (a ≤ 1), b / (a + 3/2) as in the mode."""
        return self._point(np.where(self.shape > 1.0, self.shape - 1.0, self.shape + 1.5))

    def _point(self, divisor: Array) -> DiagonalGaussianParameters:
        empty = divisor < 0.5 * EMPTY
        variances = np.where(empty, self.data_variances, self.scale / np.where(empty, 1.0, divisor))
        means = np.where(empty, self.origin, self.location)
        return DiagonalGaussianParameters(means, np.maximum(variances, FLOOR * self.data_variances))

    def expected_log(self) -> SeparateSurrogate:
        """Return the Gaussian form with precision a / b and constant −½ (log 2π + E[log σ²] + 1 / κ)."""
        self._demand_proper()
        constants = -0.5 * (LOG_2PI + np.log(self.scale) - digamma(self.shape) + 1.0 / self.strength)
        return SeparateSurrogate(self.location, self.shape / self.scale, np.asarray(constants))

    def predictive(self) -> SeparateStudents:
        """Return the Student t with 2 a degrees of freedom, location m and squared scale b (κ + 1) / (a κ)."""
        self._demand_proper()
        spreads = self.scale * (self.strength + 1.0) / (self.shape * self.strength)
        return SeparateStudents(self.location, spreads, 2.0 * self.shape)

    def sample(self, rng: np.random.Generator) -> DiagonalGaussianParameters:
        self._demand_proper()
        # A gamma draw that underflows to zero would make the variance infinite.
        variances = self.scale / np.maximum(rng.gamma(self.shape), 1e-200)
        means = rng.normal(self.location, np.sqrt(variances / self.strength))
        return DiagonalGaussianParameters(means, variances)

    def kl(self, prior: NormalInverseGamma) -> float:
        self._demand_proper()
        prior._demand_proper()
        ratio = prior.strength / self.strength
        distance = prior.strength * (self.location - prior.location) ** 2 * self.shape / self.scale
        of_means = 0.5 * (ratio - 1.0 - np.log(ratio) + distance)
        of_variances = (self.shape - prior.shape) * digamma(self.shape) - gammaln(self.shape) + gammaln(prior.shape)
        of_variances += prior.shape * np.log(self.scale / prior.scale) + self.shape * (prior.scale / self.scale - 1.0)
        return float((of_means + of_variances).sum())

    def log_partition(self) -> Array:
        of_variances = gammaln(self.shape) - self.shape * np.log(self.scale)
        return np.asarray((of_variances - 0.5 * np.log(self.strength)).sum(axis=1))

    def log_density(self, parameters: DiagonalGaussianParameters) -> float:
        distance = (parameters.means - self.location) ** 2
        per_variance = (self.scale + 0.5 * self.strength * distance) / parameters.variances
        return -float(((self.shape + 1.5) * np.log(parameters.variances) + per_variance).sum()) + 0.0

    def steps(self, sums: DiagonalGaussianSums, kind: str, values: Values) -> EmissionSteps | None:
        from subchain.emissions.steps.normal import separate_steps

        return separate_steps(self, sums, kind, values)

    def counts(self, sums: DiagonalGaussianSums, values: Values) -> EmissionCounts:
        from subchain.emissions.collapsed.diagonal_gaussian import diagonal_gaussian_counts

        self._demand_proper()
        return diagonal_gaussian_counts(self, sums, values)

    def _demand_proper(self) -> None:
        improper = (self.strength <= 0.0) | (self.shape <= 0.0) | (self.scale <= 0.0)
        if improper.any():
            state, column = np.argwhere(improper)[0]
            raise InferenceError(
                f"the distribution of mean and variance of state {state}, column {column} is improper; variational "
                "and collapsed inference need a proper prior: set mean_strength or shape, or leave all "
                "hyperparameters at their defaults."
            )


class DiagonalGaussian(RealEmission):
    """Real vectors whose coordinates are independent given the state; nan where a coordinate is missing.

    Use it for many columns, or where columns are nearly uncorrelated within a state. The prior is normal-inverse-gamma:
    σ² ~ IG(shape, scale), mean ~ N(mean, σ² / mean_strength). Defaults are scaled by the data; EM with no
    hyperparameter set maximises the likelihood. Integers are treated as real numbers, −1 included.

    Parameters
    ----------
    mean : float, (D,) or (K, D), optional
        Prior mean of the means; by default the mean of the data.
    mean_strength : float, (D,) or (K, D), optional
        Weight of the prior mean, as a number of observations; 0.01 by default.
    shape : float, (D,) or (K, D), optional
        Shape of the inverse-gamma distribution; 1.5 by default.
    scale : float, (D,) or (K, D), optional
        Scale of the inverse-gamma distribution; by default such that the expected variance is 0.75 times that of the
        data.
    columns : names or indices, optional
        Columns that hold the vector.
    frozen : bool or list of states
        Whether to keep the parameters of the start (`init=` a model), of all states or of those in a list.

    Examples
    --------
    >>> from subchain.emissions import DiagonalGaussian
    >>> parameters = DiagonalGaussian.from_parameters([[0.0, 0.0], [3.0, 1.0]], [[1.0, 1.0], [1.0, 4.0]])
    >>> parameters.log_likelihood([[3.0, 1.0]]).round(3).T
    array([[-6.838, -2.531]])
    """

    name = "diagonal_gaussian"
    parameters_type = DiagonalGaussianParameters
    hyperparameters = ("mean", "mean_strength", "shape", "scale")

    def __init__(
        self,
        mean: Any = None,
        mean_strength: Any = None,
        shape: Any = None,
        scale: Any = None,
        columns: Any = None,
        frozen: Any = False,
    ) -> None:
        self.mean = mean
        self.mean_strength = mean_strength
        self.shape = shape
        self.scale = scale
        self.columns = columns
        self.frozen = frozen

    @staticmethod
    def from_parameters(means: ArrayLike, variances: ArrayLike) -> DiagonalGaussianParameters:
        """Build parameters from means and variances, both (K, D), or (K,) for one column."""
        centers, squares = np.asarray(means, dtype=np.float64), np.asarray(variances, dtype=np.float64)
        if centers.ndim == 1 and squares.ndim == 1:
            centers, squares = centers[:, None], squares[:, None]
        if centers.ndim != 2 or squares.shape != centers.shape:
            raise InputError(
                f"means have shape {np.shape(means)} and variances {np.shape(variances)}; "
                "expected (K, D) for both, with K states and D columns."
            )
        wrong = ~(np.isfinite(centers) & np.isfinite(squares) & (squares > 0.0))
        if wrong.any():
            state, column = np.argwhere(wrong)[0]
            raise InputError(
                f"state {state}, column {column} has mean {centers[state, column]} and variance "
                f"{squares[state, column]}; means must be finite, variances finite and positive."
            )
        return DiagonalGaussianParameters(centers.copy(), squares.copy())

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> NormalInverseGamma:
        moments = data_moments(data)
        shared = (moments.mean, moments.variances)
        n_features = data.n_features
        if flat and self._untouched():
            location, zeros = mean_table(moments.mean, n_states, n_features), np.zeros((n_states, n_features))
            return NormalInverseGamma(location, zeros, zeros - 1.5, zeros.copy(), *shared)

        def table(name: str, given: Any) -> Array:
            return per_column(name, given, n_states, n_features)

        shape = table("shape", 1.5 if self.shape is None else self.shape)
        surplus = np.maximum(2.0 * shape - 2.0, 1.0)
        return NormalInverseGamma(
            mean_table(moments.mean if self.mean is None else self.mean, n_states, n_features),
            table("mean_strength", 0.01 if self.mean_strength is None else self.mean_strength),
            shape,
            0.375 * surplus * moments.variances if self.scale is None else table("scale", self.scale),
            *shared,
        )
