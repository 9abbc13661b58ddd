"""Elliptical likelihoods, functions of the squared distance (x−m)ᵀ S⁻¹ (x−m): Gaussian forms and the Student t.

They are evaluated by whitening with the inverse Cholesky factor of S. Missing coordinates (nan) are integrated out
exactly; in the sums their first and second moments are replaced by the conditional ones given the known coordinates.
Observations are grouped by their pattern of missing coordinates; each group is complete data of fewer dimensions.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.ranges import COUNTS, SCATTERS
from subchain.core.records import array
from subchain.emissions.base import Table, Values
from subchain.emissions.moments import (
    LOG_2PI,
    CenteredSums,
    VectorLikelihood,
    cholesky,
    contiguous_rows,
    patterns,
    solve,
    symmetric,
)
from subchain.emissions.normal_kernels import centered, even, quadratic, weighted_moments
from subchain.numerics.special import log_rising

if TYPE_CHECKING:
    from subchain.emissions.compiled.normal import FullNormal

Array = NDArray[np.float64]

#: Number of missing patterns whose marginal likelihoods are cached.
REMEMBERED = 256


@cache
def triangle(n: int) -> NDArray[np.bool_]:
    """Return the mask of the lower triangle of an (n, n) matrix; not to be changed."""
    return np.tri(n, dtype=np.bool_)


def apply(matrices: Array, vectors: Array) -> Array:
    """Multiply (K, I, J) matrices by (K, J) vectors."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


@dataclasses.dataclass
class GaussianSums(CenteredSums):
    """Expected count (K,), sum (K, D) and sum of outer products (K, D, D) of the observations minus `origin`."""

    weight: Array = array("K", COUNTS)
    first: Array = array("KD")
    second: Array = array("KDD", SCATTERS)

    def about(self, origin: Array) -> Self:
        shift = self.origin - origin
        if not shift.any():
            return self
        cross = self.first[:, :, None] * shift
        return dataclasses.replace(
            self,
            first=self.first + self.weight[:, None] * shift,
            second=self.second + cross + cross.transpose(0, 2, 1) + self.weight[:, None, None] * np.outer(shift, shift),
            origin=origin,
        )


class Whitening(NamedTuple):
    """Arguments of the kernel for (x−m)ᵀ S⁻¹ (x−m) = |F x − F m|², where F is the inverse Cholesky factor of S.

    With P = even(D): `factors` F is (K, P, P), `offsets` F m is (K, P), `log_determinants` log |S| is (K,).
    """

    factors: Array
    offsets: Array
    log_determinants: Array


class Partial(NamedTuple):
    """Likelihood of the known coordinates under one missing pattern, and the regression of the missing ones on them.

    With D₁ known and D₀ missing coordinates: `gain` is (K, D₀, D₁), `conditional` the conditional spread (K, D₀, D₀).
    """

    marginal: EllipticalLikelihood
    gain: Array
    conditional: Array


class EllipticalLikelihood(VectorLikelihood):
    """Likelihood that is a function of (x−m)ᵀ S⁻¹ (x−m) in each state; subclasses define the function."""

    @property
    @abstractmethod
    def spreads(self) -> Array:
        """S, (K, D, D)."""

    @abstractmethod
    def _evaluate(self, x: Array, out: Table) -> None:
        """Write the log likelihood of complete observations `x`, (even(D), n) minus origin, into `out` (K, n)."""

    @abstractmethod
    def _marginal(self, known: NDArray[np.bool_], log_ratio: Array) -> EllipticalLikelihood:
        """Return the likelihood of the known coordinates; `log_ratio` (K,) is log |S_known| − log |S|."""

    @abstractmethod
    def _conditional_weight(self, weight: Array, first: Array, second: Array, origin: Array) -> Array:
        """Return Σ_t γ_t(k) · c_t, (K,), where c_t · (conditional spread) is the covariance of the missing coordinates.

        The method is called on the marginal likelihood of the known coordinates, with their sums about `origin`.
        """

    @property
    def _whitening(self) -> Whitening:
        cached: Whitening | None = self.__dict__.get("_whitening_cache")
        if cached is None:
            lower = cholesky("covariance", self.spreads)
            n_features, padded = self.n_features, even(self.n_features)
            factors = np.zeros((self.n_states, padded, padded))
            np.copyto(factors[:, :n_features, :n_features], np.linalg.inv(lower), where=triangle(n_features))
            offsets = np.zeros((self.n_states, padded))
            offsets[:, :n_features] = apply(factors[:, :n_features, :n_features], self.means - self.origin)
            diagonal = np.diagonal(lower, axis1=1, axis2=2)
            cached = Whitening(factors, offsets, 2.0 * np.log(diagonal).sum(axis=1))
            self.__dict__["_whitening_cache"] = cached
        return cached

    # ---- likelihoods -------------------------------------------------------------------------------------------------

    def _log_likelihood_into(self, values: Values, out: Table) -> None:
        x, any_missing = centered(values, self.origin)
        if not any_missing:
            self._evaluate(x, out)
            return
        for known, rows, part in self._grouped(x):
            if not known.any():
                out[:, rows] = 0.0
                continue
            table = np.empty((self.n_states, len(rows)))
            self._partial(known).marginal._evaluate(part, table)
            out[:, rows] = table

    def _grouped(self, x: Array) -> list[tuple[NDArray[np.bool_], NDArray[np.int64], Array]]:
        """List the known coordinates, the member positions and the (padded) known values of each missing pattern."""
        groups = []
        for known, rows in patterns(np.isnan(x[: self.n_features])):
            part = np.zeros((even(int(known.sum())), len(rows)))
            part[: known.sum()] = x[: self.n_features][known][:, rows]
            groups.append((known, rows, part))
        return groups

    def _partial(self, known: NDArray[np.bool_]) -> Partial:
        if known.all():
            return Partial(self, np.zeros((self.n_states, 0, self.n_features)), np.zeros((self.n_states, 0, 0)))
        cache: dict[bytes, Partial] = self.__dict__.setdefault("_partial_cache", {})
        key = known.tobytes()
        partial = cache.get(key)
        if partial is None:
            partial = self._make_partial(known)
            if len(cache) < REMEMBERED:
                cache[key] = partial
        return partial

    def _make_partial(self, known: NDArray[np.bool_]) -> Partial:
        within = self.spreads[:, known][:, :, known]
        across = self.spreads[:, known][:, :, ~known]
        lower = cholesky("covariance", within)
        log_determinants = 2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        gain = solve(within, across).transpose(0, 2, 1)
        conditional = symmetric(self.spreads[:, ~known][:, :, ~known] - gain @ across)
        marginal = self._marginal(known, log_determinants - self._whitening.log_determinants)
        return Partial(marginal, gain, conditional)

    # ---- statistics --------------------------------------------------------------------------------------------------

    def zeros(self) -> GaussianSums:
        n_states, n_features = self.means.shape
        return GaussianSums(
            np.zeros(n_states),
            np.zeros((n_states, n_features)),
            np.zeros((n_states, n_features, n_features)),
            self.origin,
        )

    def accumulate(self, values: Values, marginals: Table, sums: GaussianSums) -> None:
        x, any_missing = centered(values, sums.origin)
        if not any_missing:
            self._add(sums, *weighted_moments(x, marginals, self.n_features))
            return
        for known, rows, part in self._grouped(x):
            if known.any():
                moments = weighted_moments(part, marginals[:, rows], int(known.sum()))
                self._add(sums, *(moments if known.all() else self._completed(known, sums.origin, *moments)))

    @staticmethod
    def _add(sums: GaussianSums, weight: Array, first: Array, second: Array) -> None:
        sums.weight += weight
        sums.first += first
        sums.second += second

    def _completed(
        self, known: NDArray[np.bool_], origin: Array, weight: Array, first: Array, second: Array
    ) -> tuple[Array, Array, Array]:
        """Return the expected sums of all coordinates given the sums of the known ones.

        Given the known coordinates y, the missing ones have mean B y + b, so E[x | y] = A y + a with A = (1, B) and
        a = (0, b), and the sums are mapped accordingly. The covariance of the missing coordinates is added to the
        second moments.
        """
        marginal, gain, conditional = self._partial(known)
        center = self.means - origin
        complete = np.zeros((self.n_states, self.n_features, int(known.sum())))
        complete[:, known] = np.eye(int(known.sum()))
        complete[:, ~known] = gain
        constant = np.zeros_like(center)
        constant[:, ~known] = center[:, ~known] - apply(gain, center[:, known])

        mapped = apply(complete, first)
        cross = mapped[:, :, None] * constant[:, None, :]
        total = complete @ second @ complete.transpose(0, 2, 1)
        total += cross + cross.transpose(0, 2, 1)
        total += weight[:, None, None] * constant[:, :, None] * constant[:, None, :]

        factor = marginal._conditional_weight(weight, first, second, origin[known])
        total[np.ix_(np.arange(self.n_states), ~known, ~known)] += factor[:, None, None] * conditional
        return weight, mapped + weight[:, None] * constant, symmetric(total)


class GaussianForm(EllipticalLikelihood):
    """Likelihood exp{c − ½ (x−m)ᵀ S⁻¹ (x−m)}."""

    @property
    @abstractmethod
    def log_constants(self) -> Array:
        """c, (K,)."""

    def _evaluate(self, x: Array, out: Table) -> None:
        whitening = self._whitening
        quadratic(x, whitening.factors, whitening.offsets, self.log_constants, out)

    def compiled(self, values: Values) -> FullNormal | None:
        from subchain.emissions.compiled.normal import FullNormal

        rows = contiguous_rows(values, self.n_features)
        if rows is None:
            return None
        whitening = self._whitening
        return FullNormal(rows, self.origin, whitening.factors, whitening.offsets, self.log_constants)

    def _marginal(self, known: NDArray[np.bool_], log_ratio: Array) -> GaussianForm:
        """Integrate over the missing coordinates, which adds ½ log 2π for each and −½ log_ratio to the constant."""
        constants = self.log_constants + 0.5 * (LOG_2PI * int((~known).sum()) - log_ratio)
        spreads = self.spreads[:, known][:, :, known]
        return GaussianSurrogate(self.means[:, known], spreads, constants)

    def _conditional_weight(self, weight: Array, first: Array, second: Array, origin: Array) -> Array:
        return weight


class GaussianSurrogate(GaussianForm):
    """Gaussian form with given means (K, D), spreads (K, D, D) and log constants (K,); in general not normalised."""

    def __init__(self, means: Array, spreads: Array, log_constants: Array) -> None:
        self.means = means
        self._spreads = spreads
        self._log_constants = log_constants

    @property
    def spreads(self) -> Array:
        return self._spreads

    @property
    def log_constants(self) -> Array:
        return self._log_constants


class StudentSurrogate(EllipticalLikelihood):
    """Multivariate Student t with `degrees` (K,) degrees of freedom."""

    def __init__(self, means: Array, spreads: Array, degrees: Array) -> None:
        self.means = means
        self.degrees = degrees
        self._spreads = spreads

    @property
    def spreads(self) -> Array:
        return self._spreads

    def _evaluate(self, x: Array, out: Table) -> None:
        whitening = self._whitening
        # With factors divided by √degrees the kernel computes −½ (1 + distance / degrees).
        unit = 1.0 / np.sqrt(self.degrees)
        halves = np.full(self.n_states, -0.5)
        quadratic(x, whitening.factors * unit[:, None, None], whitening.offsets * unit[:, None], halves, out)
        power = 0.5 * (self.degrees + self.n_features)
        half = np.asarray(0.5 * self.n_features)
        constants = log_rising(0.5 * self.degrees, half) - 0.5 * whitening.log_determinants
        constants -= 0.5 * self.n_features * np.log(self.degrees * np.pi)
        out *= -2.0
        np.log(out, out=out)
        out *= -power[:, None]
        out += constants[:, None]

    def _marginal(self, known: NDArray[np.bool_], log_ratio: Array) -> StudentSurrogate:
        spreads = self.spreads[:, known][:, :, known]
        return StudentSurrogate(self.means[:, known], spreads, self.degrees)

    def _conditional_weight(self, weight: Array, first: Array, second: Array, origin: Array) -> Array:
        """Return Σ γ (ν + distance) / (ν + D₁ − 2), the covariance factor of the conditional t summed over rows."""
        center = self.means - origin
        cross = first[:, :, None] * center[:, None, :]
        scatter = second - cross - cross.transpose(0, 2, 1)
        scatter += weight[:, None, None] * center[:, :, None] * center[:, None, :]
        distance = np.einsum("kij,kji->k", np.linalg.inv(self.spreads), scatter)
        degrees = self.degrees + self.n_features
        divisor = np.where(degrees > 2.0, degrees - 2.0, degrees)  # up to 2 degrees there is no covariance: use spread
        return np.asarray((self.degrees * weight + distance) / divisor)
