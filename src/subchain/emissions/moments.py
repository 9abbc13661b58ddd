"""Code shared by the Gaussian families: moments of the data, centred sums, and checks.

Priors are scaled by the mean and covariance of the data, estimated from a bounded sample of rows. Second moments are
summed about an origin near the data's mean: about zero, cancellation would destroy all digits where the mean is large
and the variance small. Sums about different origins are shifted to a common one before they are added.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import real_numbers
from subchain.core.ranges import LARGEST, REAL
from subchain.core.records import Sums, array
from subchain.data.sequences import Sequences
from subchain.emissions.base import Emission, Likelihood, Table, Values
from subchain.emissions.checks import as_matrix, first_where, real_columns, suits_kernels, where_is
from subchain.emissions.scaling import exponentiate_in_place
from subchain.errors import InferenceError, InputError

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2.0 * np.pi))

#: Number of entries read to estimate the mean and covariance of the data, and rows per contiguous read.
SAMPLE_VALUES = 1 << 22
SAMPLE_CHUNK = 1024

#: Smallest variance of a state in any direction, as a fraction of the data's variances.
FLOOR = 1e-6

#: A state with a smaller expected count gets the moments of all data.
EMPTY = 1e-8

#: Squares of distances from the mean that are all below this one could underflow.
LEAST_DISTANCE = 1e-140


class Moments(NamedTuple):
    """Mean (D,) and covariance (D, D) of the data; the covariance is positive definite for any data."""

    mean: Array
    covariance: Array

    @property
    def variances(self) -> Array:
        return np.diagonal(self.covariance).copy()


def sample_columns(data: Sequences) -> Array:
    """Return all rows of small data, or evenly spaced contiguous runs of rows of large data, as columns (D, n)."""
    n_rows = max(SAMPLE_VALUES // data.n_features, 2 * SAMPLE_CHUNK)
    if data.n_observations <= n_rows:
        return np.array(as_matrix(np.asarray(data.values)).T, dtype=np.float64, order="C")
    starts = np.linspace(0, data.n_observations - SAMPLE_CHUNK, n_rows // SAMPLE_CHUNK).astype(np.int64)
    chunks = [as_matrix(np.asarray(data.values[start : start + SAMPLE_CHUNK])).T for start in starts]
    return np.ascontiguousarray(np.concatenate(chunks, axis=1), dtype=np.float64)


def data_moments(data: Sequences) -> Moments:
    """Estimate the mean and covariance of the data, each coordinate from the rows in which it is known.

    A constant coordinate gets a small variance. Directions without variance (linearly dependent coordinates) get a
    small fraction of their coordinates' variances.
    """
    columns = sample_columns(data)
    missing = np.isnan(columns)
    counts = np.maximum(columns.shape[1] - missing.sum(axis=1), 1)
    has_missing = bool(missing.any())
    base = _first_known(columns, missing)
    columns -= base[:, None]  # makes the variance of a constant column exactly zero
    if has_missing:
        columns[missing] = 0.0
    center = columns.sum(axis=1) / counts
    columns -= center[:, None]
    if has_missing:
        columns[missing] = 0.0
    mean = base + center
    _check_distances(columns, data)
    scatter = columns @ columns.T
    variances = np.diagonal(scatter) / counts
    variances = np.where(variances > 0.0, variances, FLOOR * np.maximum(1.0, mean**2))
    # Correlations use the mean in place of missing values, which keeps them positive semidefinite; variances use known
    # values only, so that they are not shrunk.
    norms = np.sqrt(np.maximum(np.diagonal(scatter), np.finfo(np.float64).tiny))
    correlations = scatter / norms[:, None] / norms
    np.fill_diagonal(correlations, 1.0)
    deviations = np.sqrt(variances)
    covariance = correlations * np.outer(deviations, deviations)
    return Moments(mean, lift_eigenvalues(covariance[None], FLOOR * variances)[0])


def _first_known(columns: Array, missing: NDArray[np.bool_]) -> Array:
    """The first known entry of each column (D,), 0 where there is none."""
    if columns.shape[1] == 0:
        return np.zeros(len(columns))
    return np.nan_to_num(columns[np.arange(len(columns)), missing.argmin(axis=1)])


def _check_distances(columns: Array, data: Sequences) -> None:
    """Raise an `InputError` if the squares of a column's distances from its mean, (D, n), underflow."""
    farthest = np.maximum(columns.max(axis=1, initial=0.0), -columns.min(axis=1, initial=0.0))
    for column in np.flatnonzero((farthest > 0.0) & (farthest < LEAST_DISTANCE)):
        name = repr(int(column) if data.columns is None else data.columns[column])
        raise InputError(
            f"column {name} of the data varies by no more than {farthest[column]:.0e}, and squares of such numbers "
            "underflow. Rescale it to a range near 1."
        )


def lift_eigenvalues(covariances: Array, floor: Array) -> Array:
    """Raise the eigenvalues of covariances (K, D, D), relative to diag(floor) with `floor` (D,), to at least one.

    The result has the greatest likelihood among all covariances that are at least diag(floor), so that EM with this
    constraint never decreases its objective.
    """
    unit = np.sqrt(floor)
    whitened = covariances / unit[:, None] / unit
    low = np.linalg.eigvalsh(whitened)[:, 0] < 1.0
    if not low.any():
        return covariances
    values, vectors = np.linalg.eigh(whitened[low])
    lifted = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    result = covariances.copy()
    result[low] = symmetric(lifted) * unit[:, None] * unit
    return result


def symmetric(matrices: Array) -> Array:
    """Return the symmetric part of (K, D, D) matrices."""
    return 0.5 * (matrices + matrices.transpose(0, 2, 1))


def solve(matrices: Array, right: Array) -> Array:
    """Solve (K, D, D) systems with (K, D, R) right-hand sides."""
    return np.asarray(np.linalg.solve(matrices, right), dtype=np.float64)


def cholesky(name: str, matrices: Array) -> Array:
    """Return lower Cholesky factors of (K, D, D) matrices; an error names the state that is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(np.nan_to_num(matrices))[:, 0]
        state = int(smallest.argmin())
        raise InferenceError(
            f"the {name} of state {state} is not positive definite (its smallest eigenvalue is {smallest[state]:.3g}); "
            "the state has too few observations for its prior: give the prior a larger scale or more degrees."
        ) from None


def patterns(missing: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Group n observations by their pattern of missing coordinates, `missing` (D, n).

    Yields the known coordinates (D,) of each pattern and the indices of its observations.
    """
    packed = np.ascontiguousarray(np.packbits(missing, axis=0).T)
    keys = packed.view(f"S{packed.shape[1]}").ravel()
    _, firsts, group = np.unique(keys, return_index=True, return_inverse=True)
    members = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    for first, rows in zip(firsts, members, strict=True):
        yield ~missing[:, first], rows


@dataclasses.dataclass
class CenteredSums(Sums):
    """Expected counts and first and second moments about `origin` (D,); `origin` is not added or scaled."""

    weight: Array
    first: Array
    second: Array
    origin: Array = array("D", REAL, is_constant=True)

    def about(self, origin: Array) -> Self:
        """Return the same sums about another origin."""
        raise NotImplementedError

    def _combine(self, other: Self, sign: float) -> Self:
        return super()._combine(other.about(self.origin), sign)

    def keep_states(self, keep: NDArray[np.bool_], other: Self) -> Self:
        return super().keep_states(keep, other.about(self.origin))

    def absorb(self, other: Self) -> None:
        super().absorb(other.about(self.origin))

    def magnitudes(self) -> dict[str, float]:
        found = super().magnitudes()  # distances from the origin cancel, their squares do not
        return found | {"first": max(found["first"], math.sqrt(found["weight"]) * math.sqrt(found["second"]))}


def contiguous_rows(values: Values, n_features: int) -> NDArray[Any] | None:
    """Return observations as rows (N, D) of numbers for compiled passes; None where these would need a copy."""
    rows = as_matrix(np.asarray(values))
    fits = rows.shape[1] == n_features and rows.dtype.kind == "f" and suits_kernels(rows)
    return rows if fits else None


class VectorLikelihood(Likelihood):
    """Likelihood of real vectors with locations `means` (K, D), computed in log space."""

    means: Array

    @property
    def origin(self) -> Array:
        """Mean of the states' locations, (D,): distances and sums are taken about it, to avoid cancellation."""
        cached: Array | None = self.__dict__.get("_origin_cache")
        if cached is None:
            cached = self.__dict__["_origin_cache"] = self.means.sum(axis=0) / len(self.means)
        return cached

    @abstractmethod
    def _log_likelihood_into(self, values: Values, out: Table) -> None:
        """Write log likelihoods into `out` (K, n)."""

    @property
    def n_states(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return int(self.means.shape[1])

    def log_likelihood(self, values: Values) -> Table:
        out = np.empty((self.n_states, len(values)))
        self._log_likelihood_into(values, out)
        return out

    def scaled(self, values: Values, out: Table) -> Array:
        self._log_likelihood_into(values, out)
        return exponentiate_in_place(out)


class RealEmission(Emission):
    """Base of the families of real vectors; hyperparameters that are None are derived from the data."""

    #: Names of the settings that are hyperparameters.
    hyperparameters: ClassVar[tuple[str, ...]]

    def _untouched(self) -> bool:
        """Return whether the user has set no hyperparameter."""
        return all(getattr(self, name) is None for name in self.hyperparameters)

    def check(self, data: Sequences) -> None:
        """Raise an `InputError` unless all entries are finite numbers whose squares are representable, or nan."""
        family = type(self).__name__
        real_columns(data, family)
        if max(map(abs, data.value_range())) > LARGEST and data.n_observations:
            position = first_where(data, lambda block: np.abs(block) > LARGEST)
            if position >= 0:
                raise InputError(
                    f"{family} data hold a value beyond ±{LARGEST:g} at {where_is(data, position)}; its square would "
                    "overflow. Rescale the data."
                )

    def features(self, data: Sequences, index: NDArray[np.int64]) -> Array:
        """Return standardised rows, with missing coordinates at the mean."""
        moments = data_moments(data)
        rows = as_matrix(np.asarray(data.values[index])).astype(np.float64)
        return np.nan_to_num((rows - moments.mean) / np.sqrt(moments.variances), nan=0.0)


def spread_over(name: str, given: Any, shape: tuple[int, ...], meaning: str) -> Array:
    """Broadcast a hyperparameter to `shape`; `meaning` lists the accepted shapes for the error message."""
    value = real_numbers(name, given)
    try:
        result = np.broadcast_to(value, shape).copy()
    except ValueError:
        raise InputError(f"{name} has shape {value.shape}; expected {meaning}.") from None
    if not np.isfinite(result).all():
        raise InputError(f"{name} must be finite, not {given!r}.")
    return result


def mean_table(given: Any, n_states: int, n_features: int) -> Array:
    """Broadcast the prior mean, given as a number, (D,) or (K, D), to (K, D)."""
    expected = f"a number, ({n_features},) or ({n_states}, {n_features})"
    return spread_over("mean", given, (n_states, n_features), expected)
