"""Posterior draws of several Markov chains, with convergence diagnostics.

Arrays of draws have the shape (chain, draw, …). Two diagnostics (Vehtari et al. 2021, "Rank-normalization, folding, and
localization") measure convergence. R-hat compares the variance of all draws with the variance within chains, each chain
split in two: it is near 1 if the chains agree. The effective sample size is the number of independent draws that would
give the same precision, for the centre of the distribution (bulk) and for its tails.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from subchain.core.ranges import FINITE, FRACTIONS, POSITIVE, WHOLE_NUMBERS, Range, probabilities, stored
from subchain.errors import InputError, unknown_name

Array = NDArray[np.float64]

#: Variables that do not depend on the labels of the states.
INVARIANT = ("log_joint", "n_used", "n_states", "concentration", "top_concentration", "occupancy")
#: Names of the axes after chain and draw, for ArviZ.
DIMENSIONS = {
    "occupancy": ["rank"],
    "top": ["state"],
    "initial": ["state"],
    "transition": ["state", "next_state"],
}
#: Axes of each variable after chain and draw, K for states, and the range of its entries.
RANGES: dict[str, tuple[str, Range]] = {
    "log_joint": ("", FINITE),
    "n_used": ("", WHOLE_NUMBERS),
    "n_states": ("", WHOLE_NUMBERS),
    "concentration": ("", POSITIVE),
    "top_concentration": ("", POSITIVE),
    "occupancy": ("K", FRACTIONS),
    "top": ("K", FRACTIONS),
    "initial": ("K", probabilities()),
    "transition": ("KK", probabilities()),
    "states": ("?", Range(dtype=None, below="K")),
}
#: Minimum number of draws per chain for the diagnostics.
MIN_DRAWS = 4
#: Quantiles whose smaller effective sample size is that of the tails.
TAILS = (0.05, 0.95)


# ---- diagnostics of one variable -------------------------------------------------------------------------------------


def r_hat(draws: NDArray[Any]) -> float:
    """Return the rank-normalised split R-hat of a scalar variable, (chains, draws); near 1 if all chains agree.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> bool(r_hat(draws) < 1.01), bool(r_hat(draws + 3.0 * np.arange(4)[:, None]) > 1.5)
    (True, True)
    """
    halves = _split(_checked(draws))
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(folded)))


def ess_bulk(draws: NDArray[Any]) -> float:
    """Return the bulk effective sample size of a scalar variable, (chains, draws).

    Examples
    --------
    >>> 1500 < ess_bulk(np.random.default_rng(0).normal(size=(4, 500))) < 2500
    True
    """
    return _effective_size(_normal_scores(_split(_checked(draws))))


def ess_tail(draws: NDArray[Any]) -> float:
    """Return the tail effective sample size of a scalar variable, (chains, draws).

    It is the smaller one of the effective sample sizes for the 5 % and the 95 % quantile.
    """
    checked = _checked(draws)
    sizes = [_effective_size(_split(checked <= np.quantile(checked, level))) for level in TAILS]
    return float(min(sizes))


def _checked(draws: NDArray[Any]) -> Array:
    found = np.asarray(draws, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] < MIN_DRAWS:
        raise InputError(
            f"diagnostics need draws of shape (chains, draws) with at least {MIN_DRAWS} draws per chain, not of shape "
            f"{found.shape}; keep more draws."
        )
    return found


def _split(draws: NDArray[Any]) -> Array:
    """Split each chain into its first and its last half, (2 chains, draws // 2); an odd middle draw is dropped."""
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, -half:])).astype(np.float64)


def _normal_scores(draws: Array) -> Array:
    """Return the normal quantiles of the draws' ranks; ties get their mean rank."""
    _, place, counts = np.unique(draws, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - 0.5 * (counts - 1))[place].reshape(draws.shape)
    return np.asarray(ndtri((ranks - 0.375) / (draws.size + 0.25)))


def _plain_r_hat(draws: Array) -> float:
    """Return R-hat without ranks or splitting: √(total variance / variance within chains)."""
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = n * draws.mean(axis=1).var(ddof=1)
    if within <= 0.0:
        return 1.0 if between <= 0.0 else np.inf
    return float(np.sqrt((between / within + n - 1) / n))


def _effective_size(draws: Array) -> float:
    """Return the effective sample size, by Geyer's initial monotone sequence of the chains' mean autocorrelations."""
    n_chains, n = draws.shape
    if np.ptp(draws) < np.finfo(np.float64).resolution:
        return float(draws.size)
    covariance = _autocovariance(draws)
    mean_variance = covariance[:, 0].mean() * n / (n - 1.0)
    variance = mean_variance * (n - 1.0) / n
    if n_chains > 1:
        variance += draws.mean(axis=1).var(ddof=1)
    correlation = 1.0 - (mean_variance - covariance.mean(axis=0)) / variance
    correlation[0] = 1.0
    # sums of two successive autocorrelations are positive and decrease; after the first one that is not, all is noise
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)[: (n - 1) // 2]
    noise = np.flatnonzero(pairs[1:] <= 0.0)
    last = int(noise[0]) + 1 if len(noise) else max(len(pairs) - 1, 0)
    beyond = max(correlation[2 * last], 0.0) if len(noise) else correlation[2 * last]
    time = -1.0 + 2.0 * np.minimum.accumulate(pairs[:last]).sum() + beyond
    time = max(time, 1.0 / np.log10(draws.size))
    return float(draws.size / time)


def _autocovariance(draws: Array) -> Array:
    """Return the autocovariances of each chain at all lags, (chains, draws), divided by the number of draws."""
    n = draws.shape[1]
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), size, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n] / n)


# ---- all draws -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Summary:
    """Table with one row per scalar variable.

    Attributes
    ----------
    names : names of the n scalar variables, such as `occupancy[0]`
    columns : mean, sd, 5 % and 95 % quantiles, effective sample sizes and R-hat, each (n,)
    """

    names: list[str]
    columns: dict[str, Array]

    def __getitem__(self, column: str) -> Array:
        """Return the column of that name, (n,)."""
        if column not in self.columns:
            raise unknown_name("column of the summary", column, self.columns)
        return self.columns[column]

    def __repr__(self) -> str:
        width = max(map(len, self.names), default=0)
        lines = [" " * width + "".join(f"{name:>12}" for name in self.columns)]
        for row, name in enumerate(self.names):
            lines.append(f"{name:<{width}}" + "".join(f"{column[row]:>12.6g}" for column in self.columns.values()))
        return "\n".join(lines)


class Samples(Mapping[str, NDArray[Any]]):
    """Posterior draws by variable name, each an array (chains, draws, …).

    `log_joint`, `n_used` (number of states with at least one position) and `occupancy` (fraction of positions per
    state, largest first) do not depend on the labels of the states. `initial` (K,), `transition` (K, K) and the
    parameters of the emissions, such as `emission.means` (K, …), do; labels may differ between chains and switch within
    a chain. `states` (N,) are the sampled paths, if these were kept.

    If the number of states varies between draws, it is in `n_states`; arrays then have the size of the largest draw and
    are padded with nan, and labels of different draws are unrelated. `top` (K,) are the top-level weights of a
    hierarchical prior, `concentration` and `top_concentration` its learned concentrations.

    Examples
    --------
    >>> samples = Samples({"log_joint": np.random.default_rng(0).normal(size=(4, 500))})
    >>> samples.n_chains, samples.n_draws, bool(samples.summary()["r_hat"][0] < 1.01)
    (4, 500, True)
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = dict(arrays)
        shapes = {array.shape[:2] for array in self._arrays.values()}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise InputError(
                f"all arrays of samples need the same first two axes (chains, draws), not {sorted(shapes)}."
            )
        self.n_chains, self.n_draws = next(iter(shapes))

    @classmethod
    def from_file(cls, arrays: Mapping[str, NDArray[Any]], n_states: int | None) -> Samples:
        """Return the draws of a file; raise a `FileFormatError` if they are not within their ranges.

        `n_states` is the number of states if all draws have the same, None if it is not known.
        """
        found, varies = cls(arrays), "n_states" in arrays
        largest = arrays["initial"].shape[-1] if varies and "initial" in arrays else n_states
        for name, array in arrays.items():
            axes, holds = RANGES.get(name, ("K" + (array.ndim - 3) * "?", FINITE))
            shape = (found.n_chains, found.n_draws, *(largest if axis == "K" else None for axis in axes))
            below = largest if holds.below == "K" else None
            stored(arrays, name, dataclasses.replace(holds, allows_nan=varies, below=below), shape)
        return found

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise KeyError(str(unknown_name("variable", name, self._arrays)))
        return self._arrays[name]

    def __iter__(self) -> Any:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {array.shape[2:]}" for name, array in self._arrays.items())
        return f"Samples({self.n_chains} chains, {self.n_draws} draws: {shown})"

    def take(self, order: NDArray[np.int64]) -> Samples:
        """Return the draws with permuted states: state k of the result is state ``order[k]`` of these draws.

        If the number of states varies between draws (`n_states`), labels are unrelated and nothing is permuted.

        Examples
        --------
        >>> samples = Samples({"initial": np.array([[[0.9, 0.1]]]), "states": np.array([[[0, 1, 1]]])})
        >>> changed = samples.take(np.array([1, 0]))
        >>> changed["initial"][0, 0], changed["states"][0, 0]
        (array([0.1, 0.9]), array([1, 0, 0]))
        """
        if "n_states" in self:
            return self
        changed = dict(self._arrays)
        for name, array in self._arrays.items():
            if name == "states":
                changed[name] = np.argsort(order).astype(array.dtype)[array]
            elif name in ("initial", "transition", "top") or name.startswith("emission."):
                changed[name] = array[:, :, order]
        if "transition" in changed:
            changed["transition"] = changed["transition"][..., order]
        return Samples(changed)

    @cached_property
    def best_chain(self) -> int:
        """Index of the chain with the largest mean log joint."""
        return int(np.asarray(self["log_joint"]).mean(axis=1).argmax())

    def summary(self, names: Iterable[str] | None = None) -> Summary:
        """Return means, quantiles and diagnostics of every scalar variable.

        Parameters
        ----------
        names : the variables to include; by default those that do not depend on the labels of the states

        Examples
        --------
        >>> Samples({"n_used": np.array([[3, 3, 4, 3], [4, 3, 3, 3]])}).summary()["mean"]
        array([3.25])
        """
        chosen = [name for name in INVARIANT if name in self] if names is None else list(names)
        rows = [(label, draws) for name in chosen for label, draws in self._scalars(name)]
        columns = {
            "mean": [draws.mean() for _, draws in rows],
            "sd": [draws.std(ddof=1) for _, draws in rows],
            "5%": [np.quantile(draws, 0.05) for _, draws in rows],
            "95%": [np.quantile(draws, 0.95) for _, draws in rows],
            "ess_bulk": [ess_bulk(draws) for _, draws in rows],
            "ess_tail": [ess_tail(draws) for _, draws in rows],
            "r_hat": [r_hat(draws) for _, draws in rows],
        }
        return Summary([label for label, _ in rows], {name: np.array(column) for name, column in columns.items()})

    def _scalars(self, name: str) -> Iterable[tuple[str, Array]]:
        """Yield the label and the draws, (chains, draws), of each entry of a variable."""
        array = np.asarray(self[name], dtype=np.float64)
        for place in np.ndindex(array.shape[2:]):
            label = f"{name}[{', '.join(map(str, place))}]" if place else name
            yield label, array[(slice(None), slice(None), *place)]

    def to_arviz(self) -> Any:
        """Return the draws as an ArviZ `InferenceData` (ArviZ 0.x) or `DataTree` (1.x).

        Paths of states are left out: ArviZ would treat each position as a parameter.
        """
        try:
            arviz = importlib.import_module("arviz")
        except ImportError:
            raise InputError("ArviZ is not installed; run pip install arviz.") from None
        posterior = {name: array for name, array in self._arrays.items() if name != "states"}
        groups = {"posterior": posterior}
        if "log_joint" in posterior:
            groups["sample_stats"] = {"lp": posterior["log_joint"]}
        dims = {name: axes for name, axes in DIMENSIONS.items() if name in posterior}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(groups, dims=dims)
        return arviz.from_dict(**groups, dims=dims)
