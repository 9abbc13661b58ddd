"""Gaussian emissions with full covariances and a normal-inverse-Wishart prior NIW(m, κ, ν, Ψ).

A point and the variational surrogate are Gaussian forms; the predictive distribution is a Student t.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, multigammaln

from subchain.core.ranges import COVARIANCES, NOT_NEGATIVE, REAL, SCATTERS
from subchain.core.records import array
from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Parameters, Table, Values
from subchain.emissions.checks import as_matrix, positive
from subchain.emissions.elliptical import GaussianForm, GaussianSums, GaussianSurrogate, StudentSurrogate, apply
from subchain.emissions.moments import (
    EMPTY,
    FLOOR,
    LOG_2PI,
    Moments,
    RealEmission,
    cholesky,
    data_moments,
    lift_eigenvalues,
    mean_table,
    patterns,
    solve,
    spread_over,
    symmetric,
)
from subchain.errors import InferenceError, InputError

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts
    from subchain.emissions.steps.base import EmissionSteps

Array = NDArray[np.float64]


@dataclasses.dataclass
class GaussianParameters(GaussianForm, Parameters):
    """Means (K, D) and covariances (K, D, D)."""

    means: Array = array("KD", REAL)
    covariances: Array = array("KDD", COVARIANCES)

    @property
    def spreads(self) -> Array:
        return self.covariances

    @property
    def log_constants(self) -> Array:
        return -0.5 * (self.n_features * LOG_2PI + self._whitening.log_determinants)

    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        noise = rng.standard_normal((len(states), self.n_features))
        lower = cholesky("covariance", self.covariances)
        for state in np.unique(states):
            chosen = states == state
            noise[chosen] = noise[chosen] @ lower[state].T
        return self.means[states] + noise

    @property
    def n_free(self) -> int:
        return self.n_states * (self.n_features + self.n_features * (self.n_features + 1) // 2)

    def expectation(self) -> Array:
        return self.means

    def fill(self, values: Values, marginals: Table) -> Values:
        """Replace missing coordinates by their conditional means given the known ones, averaged over the states."""
        table = as_matrix(values)
        if table.dtype.kind != "f":
            return values
        filled = table.astype(np.float64)
        for known, rows in patterns(np.isnan(table.T)):
            gain = self._partial(known).gain if known.any() else np.zeros((self.n_states, self.n_features, 0))
            constants = self.means[:, ~known] - apply(gain, self.means[:, known])
            expected = marginals[:, rows].T @ constants
            expected += np.einsum("kn,kij,nj->ni", marginals[:, rows], gain, filled[rows][:, known], optimize=True)
            filled[np.ix_(rows, ~known)] = expected
        return filled.reshape(values.shape).astype(values.dtype)

    def draw_missing(self, values: Values, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        """Draw missing coordinates from their conditional distribution given the known ones."""
        table = as_matrix(values)
        if table.dtype.kind != "f":
            return values
        filled = table.astype(np.float64)
        for known, rows in patterns(np.isnan(table.T)):
            _, gain, conditional = self._partial(known)
            state, noise = states[rows], rng.standard_normal((len(rows), int((~known).sum()), 1))
            known_part = filled[rows][:, known] - self.means[state][:, known]
            mean = self.means[state][:, ~known] + apply(gain[state], known_part)
            root = cholesky("covariance", conditional)[state]
            filled[np.ix_(rows, ~known)] = mean + (root @ noise)[..., 0]
        return filled.reshape(values.shape).astype(values.dtype)

    def marginals(self) -> Any:
        from scipy import stats

        return stats.norm(self.means, np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2)))


@dataclasses.dataclass
class NormalInverseWishart(Conjugate):
    """Distribution over means and covariances: Σ ~ IW(ν, Ψ), μ | Σ ~ N(m, Σ / κ).

    Attributes
    ----------
    location : m, (K, D)
    strength : κ, (K,)
    degrees : ν, (K,)
    scale : Ψ, (K, D, D)
    origin : (D,) mean of the data
    data_covariance : (D, D) covariance of the data; used for states without data, and as the unit of the smallest
        variance

    The flat prior κ = 0, ν = −(D + 2), Ψ = 0 is improper, but given data its mode is the maximum-likelihood estimate.
    """

    location: Array = array("KD", REAL)
    strength: Array = array("K", NOT_NEGATIVE)
    degrees: Array = array("K")
    scale: Array = array("KDD", SCATTERS)
    origin: Array = array("D", REAL)
    data_covariance: Array = array("DD", SCATTERS)

    @property
    def n_features(self) -> int:
        return int(self.location.shape[1])

    def update(self, sums: GaussianSums) -> Self:
        sums = sums.about(self.origin)
        before = self.location - self.origin
        strength = self.strength + sums.weight
        pulled = self.strength[:, None] * before + sums.first
        after = pulled / np.where(strength > 0.0, strength, 1.0)[:, None]
        scale = self.scale + sums.second
        scale += before[:, :, None] * (self.strength[:, None] * before)[:, None, :]
        scale -= after[:, :, None] * pulled[:, None, :]
        return dataclasses.replace(
            self,
            location=self.origin + after,
            strength=strength,
            degrees=self.degrees + sums.weight,
            scale=symmetric(scale),
        )

    def mode(self) -> GaussianParameters:
        """Return the joint mode, Σ = Ψ / (ν + D + 2), with variances of at least 1e-6 of the data's.

        A state without data under a flat prior gets the data's mean and covariance.
        """
        return self._point(self.degrees + self.n_features + 2.0)

    def mean(self) -> GaussianParameters:
        """Return the mean, Σ = Ψ / (ν − D − 1); where it does not exist (ν ≤ D + 1), Ψ / (ν + D + 2) as in the mode."""
        surplus = self.degrees - self.n_features - 1.0
        return self._point(np.where(surplus > 0.0, surplus, self.degrees + self.n_features + 2.0))

    def _point(self, divisor: Array) -> GaussianParameters:
        empty = divisor < EMPTY
        covariances = self.scale / np.where(empty, 1.0, divisor)[:, None, None]
        covariances[empty] = self.data_covariance
        covariances = lift_eigenvalues(covariances, FLOOR * np.diagonal(self.data_covariance))
        return GaussianParameters(np.where(empty[:, None], self.origin, self.location), covariances)

    def expected_log(self) -> GaussianSurrogate:
        """Return the Gaussian form with precision ν Ψ⁻¹ and constant −½ (E[log |Σ|] + D log 2π + D / κ)."""
        self._demand_proper()
        n_features = self.n_features
        constants = -0.5 * (self._expected_log_determinant() + n_features * LOG_2PI + n_features / self.strength)
        return GaussianSurrogate(self.location, self.scale / self.degrees[:, None, None], constants)

    def predictive(self) -> StudentSurrogate:
        """Return the Student t with ν − D + 1 degrees of freedom, location m and spread (κ + 1) / (κ (ν − D + 1)) Ψ."""
        self._demand_proper()
        degrees = self.degrees - self.n_features + 1.0
        growth = (self.strength + 1.0) / (self.strength * degrees)
        return StudentSurrogate(self.location, self.scale * growth[:, None, None], degrees)

    def sample(self, rng: np.random.Generator) -> GaussianParameters:
        """Draw Σ by Bartlett's decomposition of its inverse, then μ given Σ."""
        self._demand_proper()
        n_states, n_features = self.location.shape
        bartlett = np.tril(rng.standard_normal((n_states, n_features, n_features)), -1)
        diagonal = np.arange(n_features)
        bartlett[:, diagonal, diagonal] = np.sqrt(rng.chisquare(self.degrees[:, None] - diagonal))
        # Σ⁻¹ = L⁻ᵀ A Aᵀ L⁻¹ with Ψ = L Lᵀ, hence Σ = G Gᵀ with G = L A⁻ᵀ.
        root = solve(bartlett, cholesky("scale", self.scale).transpose(0, 2, 1)).transpose(0, 2, 1)
        noise = rng.standard_normal((n_states, n_features)) / np.sqrt(self.strength)[:, None]
        covariances = symmetric(root @ root.transpose(0, 2, 1))
        return GaussianParameters(self.location + apply(root, noise), covariances)

    def kl(self, prior: NormalInverseWishart) -> float:
        self._demand_proper()
        prior._demand_proper()
        n_features = self.n_features
        precision = self.degrees[:, None, None] * np.linalg.inv(self.scale)
        distance = self.location - prior.location
        ratio = prior.strength / self.strength
        of_means = n_features * (ratio - 1.0 - np.log(ratio))
        of_means += prior.strength * np.einsum("ki,kij,kj->k", distance, precision, distance)
        of_covariances = self._log_norm() - prior._log_norm()
        of_covariances -= (self.degrees - prior.degrees) * self._expected_log_determinant()
        of_covariances += np.einsum("kij,kji->k", prior.scale, precision) - n_features * self.degrees
        return float(0.5 * (of_means + of_covariances).sum())

    def _log_norm(self) -> Array:
        """Return twice the log of the inverse-Wishart density's constant factor, (K,)."""
        half = 0.5 * self.degrees
        norm = self.degrees * (_log_determinant(self.scale) - self.n_features * np.log(2.0))
        return np.asarray(norm - 2.0 * multigammaln(half, self.n_features))

    def _expected_log_determinant(self) -> Array:
        """Return E[log |Σ|], (K,)."""
        halves = 0.5 * (self.degrees[:, None] - np.arange(self.n_features))
        return np.asarray(_log_determinant(self.scale) - digamma(halves).sum(axis=1) - self.n_features * np.log(2.0))

    def log_partition(self) -> Array:
        return np.asarray(-0.5 * (self._log_norm() + self.n_features * np.log(self.strength)))

    def log_density(self, parameters: GaussianParameters) -> float:
        power = self.degrees + self.n_features + 2.0
        precision = np.linalg.inv(parameters.covariances)
        distance = parameters.means - self.location
        log_density = power * _log_determinant(parameters.covariances)
        log_density += np.einsum("kij,kji->k", self.scale, precision)
        log_density += self.strength * np.einsum("ki,kij,kj->k", distance, precision, distance)
        return float(-0.5 * log_density.sum()) + 0.0

    def steps(self, sums: GaussianSums, kind: str, values: Values) -> EmissionSteps | None:
        from subchain.emissions.steps.normal import normal_steps

        return normal_steps(self, sums, kind, values)

    def counts(self, sums: GaussianSums, values: Values) -> EmissionCounts:
        from subchain.emissions.collapsed.gaussian import gaussian_counts

        self._demand_proper()
        return gaussian_counts(self, sums, values)

    def _demand_proper(self) -> None:
        improper = (self.strength <= 0.0) | (self.degrees <= self.n_features - 1.0)
        if improper.any():
            state = int(improper.argmax())
            raise InferenceError(
                f"the distribution of the Gaussian parameters of state {state} is improper (mean_strength "
                f"{self.strength[state]:.3g}, degrees {self.degrees[state]:.3g}); variational and collapsed inference "
                "need a proper prior: set mean_strength or degrees, or leave all hyperparameters at their defaults."
            )


class Gaussian(RealEmission):
    """Real vectors with a mean and a full covariance per state; nan where a coordinate is missing.

    Use it for up to a few dozen correlated columns; `DiagonalGaussian` has fewer parameters. The prior is
    normal-inverse-Wishart: Σ ~ IW(degrees, scale), mean ~ N(mean, Σ / mean_strength). Defaults are scaled by the data;
    EM with no hyperparameter set maximises the likelihood. Integers are treated as real numbers, −1 included.

    Parameters
    ----------
    mean : float, (D,) or (K, D), optional
        Prior mean of the means; by default the mean of the data.
    mean_strength : float or (K,), optional
        Weight of the prior mean, as a number of observations; 0.01 by default.
    degrees : float or (K,), optional
        Degrees of freedom of the inverse-Wishart distribution, more than D − 1; D + 2 by default.
    scale : float, (D,), (D, D) or (K, D, D), optional
        Scale matrix of the inverse-Wishart distribution; a number or a vector stands for a diagonal matrix. By default
        such that the expected covariance is 0.75 times that of the data.
    columns : names or indices, optional
        Columns that hold the vector.
    frozen : bool or list of states
        Whether to keep the parameters of the start (`init=` a model), of all states or of those in a list.

    Examples
    --------
    >>> from subchain.emissions import Gaussian
    >>> parameters = Gaussian.from_parameters([[0.0, 0.0], [3.0, 1.0]], [[[1.0, 0.5], [0.5, 1.0]]] * 2)
    >>> parameters.log_likelihood([[3.0, 1.0]]).round(3).T
    array([[-6.361, -1.694]])
    """

    name = "gaussian"
    parameters_type = GaussianParameters
    hyperparameters = ("mean", "mean_strength", "degrees", "scale")

    def __init__(
        self,
        mean: Any = None,
        mean_strength: Any = None,
        degrees: Any = None,
        scale: Any = None,
        columns: Any = None,
        frozen: Any = False,
    ) -> None:
        self.mean = mean
        self.mean_strength = mean_strength
        self.degrees = degrees
        self.scale = scale
        self.columns = columns
        self.frozen = frozen

    @staticmethod
    def from_parameters(means: ArrayLike, covariances: ArrayLike) -> GaussianParameters:
        """Build parameters from means (K, D) and covariances (K, D, D); for one column both may be (K,)."""
        centers = np.asarray(means, dtype=np.float64)
        matrices = np.asarray(covariances, dtype=np.float64)
        if centers.ndim == 1:
            centers = centers[:, None]
            matrices = matrices[:, None, None] if matrices.ndim == 1 else matrices
        if centers.ndim != 2 or matrices.shape != (*centers.shape, centers.shape[1]):
            raise InputError(
                f"means have shape {np.shape(means)} and covariances {np.shape(covariances)}; "
                "expected (K, D) and (K, D, D) for K states and D columns."
            )
        _check_covariances(centers, matrices)
        return GaussianParameters(centers.copy(), symmetric(matrices))

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> NormalInverseWishart:
        moments = data_moments(data)
        n_features = data.n_features
        if flat and self._untouched():
            return NormalInverseWishart(
                np.tile(moments.mean, (n_states, 1)),
                np.zeros(n_states),
                np.full(n_states, -(n_features + 2.0)),
                np.zeros((n_states, n_features, n_features)),
                *moments,
            )
        mean = moments.mean if self.mean is None else self.mean
        strength = 0.01 if self.mean_strength is None else positive("mean_strength", self.mean_strength)
        degrees = self._degrees(n_states, n_features)
        return NormalInverseWishart(
            mean_table(mean, n_states, n_features),
            spread_over("mean_strength", strength, (n_states,), f"a number or ({n_states},)"),
            degrees,
            self._scale(moments, degrees),
            *moments,
        )

    def _degrees(self, n_states: int, n_features: int) -> Array:
        given = n_features + 2.0 if self.degrees is None else self.degrees
        degrees = spread_over("degrees", given, (n_states,), f"a number or ({n_states},)")
        if (degrees <= n_features - 1.0).any():
            raise InputError(
                f"degrees must be more than {n_features - 1} for {n_features} columns; got {self.degrees!r}. "
                f"{n_features + 2} is the default."
            )
        return degrees

    def _scale(self, moments: Moments, degrees: Array) -> Array:
        n_features = len(moments.mean)
        shape = (len(degrees), n_features, n_features)
        if self.scale is None:
            surplus = np.maximum(degrees - n_features - 1.0, 1.0)
            return 0.75 * surplus[:, None, None] * moments.covariance
        expected = f"a number, ({n_features},), ({n_features}, {n_features}) or {shape}"
        given = self.scale
        if np.ndim(given) < 2:
            given = np.diag(spread_over("scale", given, (n_features,), expected))
        scale = spread_over("scale", given, shape, expected)
        _check_covariances(np.zeros(shape[:2]), scale, "scale")
        return scale


def _log_determinant(matrices: Array) -> Array:
    return np.asarray(np.linalg.slogdet(matrices)[1])


def _check_covariances(means: Array, covariances: Array, name: str = "covariances") -> None:
    if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
        raise InputError(f"means and {name} must be finite.")
    size = np.abs(covariances).max(axis=(1, 2))
    skew = np.abs(covariances - covariances.transpose(0, 2, 1)).max(axis=(1, 2))
    if (skew > 1e-8 * size).any():
        raise InputError(f"{name} of state {int((skew / size).argmax())} are not symmetric.")
    smallest = np.linalg.eigvalsh(symmetric(covariances))[:, 0]
    if (smallest <= 0.0).any():
        state = int(smallest.argmin())
        raise InputError(
            f"{name} of state {state} are not positive definite (smallest eigenvalue {smallest[state]:.3g}); "
            "add a small number to the diagonal."
        )
