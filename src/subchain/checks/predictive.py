"""Predictive check: do data that the model simulates look like the data?

Statistics of the data are compared with those of data sets simulated from the fitted parameters (Gelman, Meng and
Stern, 1996, with the posterior concentrated at the fitted parameters). The model has seen the data, so that the check
finds what the model cannot describe, and does not find overfitting.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.checks.deviation import LEVELS, deviation, is_far
from subchain.checks.reading import read
from subchain.checks.simulation import SIMULATIONS, Simulation
from subchain.checks.statistics import column_of, statistics
from subchain.data import Sequences
from subchain.models.hmm import HMM
from subchain.tasks.profiles import Numbers, Symbols

Array = NDArray[np.float64]

#: Number of bins of a histogram, and largest number of symbols.
BINS, SYMBOLS = 30, 20
#: Share of the data beyond the inner edges of the first and the last bin, which hold everything outside.
OUTSIDE = 0.002


@dataclasses.dataclass(frozen=True)
class Statistic:
    """One statistic of the data, and of the simulations.

    Attributes
    ----------
    column : name of the column; empty if it is one of all columns
    name : what it is
    observed : its value for the data
    simulated : (R,) its values for the simulations
    """

    column: str
    name: str
    observed: float
    simulated: Array

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the middle 95 per cent of the simulations."""
        low, high = np.quantile(self.simulated, LEVELS)
        return float(low), float(high)

    @property
    def deviation(self) -> float:
        """Distance of the data from the mean of the simulations, in their standard deviations."""
        return deviation(self.observed, self.simulated)

    @property
    def is_far(self) -> bool:
        """Whether the data are beyond all simulations by more than half of their range."""
        return is_far(self.observed, self.simulated)


@dataclasses.dataclass(frozen=True)
class Distribution:
    """Shares of the values of one column, in the data and in the simulations.

    Attributes
    ----------
    column : name of the column
    labels : (n,) symbols; empty for numbers
    edges : (n + 1,) edges of the bins of numbers, the first and the last of which hold all that is outside; empty for
        symbols
    observed : (n,) shares in the data
    low, high : (n,) bounds of the middle 95 per cent of the simulations
    """

    column: str
    labels: tuple[str, ...]
    edges: Array
    observed: Array
    low: Array
    high: Array


@dataclasses.dataclass(frozen=True)
class PredictiveCheck:
    """Result of a predictive check.

    Attributes
    ----------
    statistics : list of Statistic
    distributions : list of Distribution, one for each column
    n_simulations : number of simulated data sets
    n_positions : number of positions of each, and of the excerpt of the data that they are compared with
    is_whole : whether that excerpt is all of the data
    """

    statistics: list[Statistic]
    distributions: list[Distribution]
    n_simulations: int
    n_positions: int
    is_whole: bool

    @property
    def far(self) -> list[Statistic]:
        """The statistics of the data that are far outside the simulations, the farthest first."""
        return sorted((one for one in self.statistics if one.is_far), key=lambda one: -abs(one.deviation))


def predictive_check(model: HMM, x: Any, n_simulations: int = SIMULATIONS) -> PredictiveCheck:
    """Compare data with data sets that are simulated from the fitted parameters.

    Use it to find what a model cannot describe: tails that are too heavy for its emissions, dependence between
    neighbours beyond its states, correlations between columns. Of data with more than 20,000 positions, or with fewer
    for models with many states, evenly spaced pieces are compared.

    Parameters
    ----------
    model : HMM
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    n_simulations : int
        Number of data sets that are simulated.

    Returns
    -------
    PredictiveCheck

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM
    >>> from subchain.checks import predictive_check
    >>> x = np.random.default_rng(0).standard_t(2, 3000)
    >>> model = HMM(1, "gaussian", random_state=0).fit(x)
    >>> predictive_check(model, x).far[0].name
    'kurtosis'
    """
    return check(read(model, x).simulation, n_simulations)


def check(simulation: Simulation, n_simulations: int) -> PredictiveCheck:
    """Compare an excerpt of data with simulated copies of it."""
    excerpt, profile, reader = simulation.excerpt, simulation.profile, simulation.reader()
    bins = [_Bins.of(excerpt, part) for part in profile]
    found, scores, shares = [], [], []
    for data in (excerpt, *simulation.copies(n_simulations)):
        found.append(list(statistics(data, profile)))
        scores.append(_score(reader, data))
        shares.append([each.shares(data) for each in bins])
    values = np.array([[one.value for one in each] for each in found]).reshape(len(found), -1)
    compared = [Statistic("", "log likelihood per observation", scores[0], np.array(scores[1:]))]
    compared += [
        Statistic(one.column, one.name, float(values[0, place]), values[1:, place])
        for place, one in enumerate(found[0])
        if np.isfinite(values[:, place]).all()
    ]
    drawn = [each.compared(np.array([one[place] for one in shares])) for place, each in enumerate(bins)]
    return PredictiveCheck(compared, drawn, n_simulations, excerpt.n_observations, simulation.is_whole)


def _score(model: HMM, data: Sequences) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(model.score(data)) / data.n_observations


@dataclasses.dataclass(frozen=True)
class _Bins:
    """Bins of one column: inner edges of numbers, or codes of the most frequent symbols."""

    part: Symbols | Numbers
    codes: NDArray[np.int64]
    edges: Array

    @classmethod
    def of(cls, data: Sequences, part: Symbols | Numbers) -> _Bins:
        known = column_of(data, part)
        known = known[~np.isnan(known)]
        if isinstance(part, Symbols):
            codes, counts = np.unique(known.astype(np.int64), return_counts=True)
            return cls(part, codes[np.argsort(-counts, kind="stable")[:SYMBOLS]], np.zeros(0))
        if not len(known):
            return cls(part, np.zeros(0, dtype=np.int64), np.array([0.0, 1.0]))
        low, high = np.quantile(known, [OUTSIDE, 1.0 - OUTSIDE])
        if data.values.dtype.kind in "iu" or np.array_equal(known, known.round()):
            width = max(1.0, np.ceil((high - low + 1.0) / BINS))
            edges = np.arange(low - 0.5, high + width, width)
        else:
            edges = np.linspace(low, high, BINS + 1) if high > low else np.array([low - 0.5, low + 0.5])
        return cls(part, np.zeros(0, dtype=np.int64), edges)

    def shares(self, data: Sequences) -> Array:
        known = column_of(data, self.part)
        known = known[~np.isnan(known)]
        total = max(len(known), 1)
        if isinstance(self.part, Symbols):
            return np.array([np.count_nonzero(known == code) for code in self.codes]) / total
        inside = np.clip(known, self.edges[0], np.nextafter(self.edges[-1], -np.inf))
        return np.histogram(inside, self.edges)[0] / total

    def compared(self, shares: Array) -> Distribution:
        """Return the distribution of the data, the first row of `shares`, and of the simulations, the others."""
        labels = tuple(self.part.labels[code] for code in self.codes) if isinstance(self.part, Symbols) else ()
        low, high = np.quantile(shares[1:], LEVELS, axis=0)
        return Distribution(self.part.name, labels, self.edges, shares[0], low, high)
