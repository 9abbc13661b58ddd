"""Dwell times of decoded states against the geometric distribution that a hidden Markov model implies.

A state with self-transition probability a lasts longer than d positions with probability a^d. Decoding blurs this:
short visits are overlooked, and single positions split long ones. So the same decoding is applied to data that the
model simulates, and the data are compared with these.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.checks.deviation import LEVELS, is_far
from subchain.checks.reading import decoded, read
from subchain.checks.simulation import SIMULATIONS, Simulation
from subchain.checks.visits import Counts, Visits, survival
from subchain.models.hmm import HMM

Array = NDArray[np.float64]

#: Number of lengths at which curves are computed, and smallest number of ended visits for a comparison.
POINTS, FEWEST_VISITS = 40, 10


@dataclasses.dataclass(frozen=True)
class DwellTimes:
    """Dwell times of one state.

    Attributes
    ----------
    state : its number
    n_ended, n_cut : numbers of visits in the data that ended, and that the end of a sequence cut off
    mean : positions per ended visit in the data; inf if none ended
    longest : length of the longest visit
    stay : self-transition probability a of the model; the model's mean is 1 / (1 − a)
    lengths : (n,) lengths d, in positions
    observed : (n,) estimated share of the data's visits that last longer than d
    geometric : (n,) the same by the model, a^d
    low, high : (n,) bounds of the middle 95 per cent of simulations, decoded as the data; nan where they have no visits
    is_far : whether the data are far outside the simulations; None if there are too few visits to tell
    """

    state: int
    n_ended: int
    n_cut: int
    mean: float
    longest: int
    stay: float
    lengths: Counts
    observed: Array
    geometric: Array
    low: Array
    high: Array
    is_far: bool | None


def dwell_times(model: HMM, x: Any, n_simulations: int = SIMULATIONS) -> list[DwellTimes]:
    """Compare the dwell times of all states in data with those that the model implies.

    Use it to see whether states last as long as a Markov chain can describe: a state whose visits all have a similar
    length, or of which some last very long, is far outside the simulations.

    Parameters
    ----------
    model : HMM
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    n_simulations : int
        Number of data sets that are simulated from the fitted parameters.

    Returns
    -------
    list of DwellTimes
        One for each state, in the order of the states.

    Examples
    --------
    >>> from subchain import HMM, Poisson
    >>> from subchain.checks import dwell_times
    >>> truth = HMM.from_parameters([1, 0], [[0.9, 0.1], [0.2, 0.8]], Poisson.from_parameters([[1.0], [20.0]]))
    >>> counts = truth.sample(3000, random_state=0).observations
    >>> [found.is_far for found in dwell_times(truth, counts)]
    [False, False]
    """
    reading = read(model, x)
    return compared(reading.visits, np.arange(model.n_states_), reading.simulation, n_simulations)


def compared(visits: Visits, states: Counts, simulation: Simulation, n_simulations: int) -> list[DwellTimes]:
    """Return the dwell times of states; visits of `states[i]` are counted under i."""
    reader = simulation.reader()
    copies = [decoded(reader, data) for data in simulation.copies(n_simulations)]
    stay = np.diagonal(simulation.model.transition_)
    return [
        _compared(int(state), float(stay[state]), visits.of(slot), [copy.of(int(state)) for copy in copies])
        for slot, state in enumerate(states)
    ]


def _compared(
    state: int, stay: float, counts: tuple[Counts, ...], copies: list[tuple[Counts, Counts, Counts]]
) -> DwellTimes:
    lengths, ended, cut = counts
    longest = int(lengths[-1]) if len(lengths) else 0
    last = max(longest, 1)
    if stay < 1.0:  # far enough to see a geometric tail of one in a thousand
        last = max(last, min(int(np.ceil(np.log(1e-3) / np.log(max(stay, 1e-3)))), 4 * last))
    at = np.unique(np.geomspace(1, last, POINTS).round().astype(np.int64))
    simulated = np.array([survival(*copy, at) for copy in copies])
    low, high = _bounds(simulated)
    observed = survival(lengths, ended, cut, at)
    n_ended = int(ended.sum())
    return DwellTimes(
        state=state,
        n_ended=n_ended,
        n_cut=int(cut.sum()),
        mean=float(lengths @ (ended + cut)) / n_ended if n_ended else np.inf,
        longest=longest,
        stay=stay,
        lengths=at,
        observed=observed,
        geometric=np.power(stay, at.astype(np.float64)),
        low=low,
        high=high,
        is_far=_verdict(observed, simulated) if n_ended >= FEWEST_VISITS else None,
    )


def _bounds(simulated: Array) -> tuple[Array, Array]:
    """Return quantiles over the simulations (R, n), nan where fewer than half of them know an entry."""
    low, high = np.full((2, simulated.shape[1]), np.nan)
    for place in np.flatnonzero((~np.isnan(simulated)).mean(axis=0) >= 0.5):
        low[place], high[place] = np.nanquantile(simulated[:, place], LEVELS)
    return low, high


def _verdict(observed: Array, simulated: Array) -> bool | None:
    """Return whether the largest distance from the mean curve is far outside those of the simulations."""
    known = ~np.isnan(observed) & (~np.isnan(simulated)).all(axis=0)
    if not known.any():
        return None
    middle = simulated[:, known].mean(axis=0)
    return is_far(float(np.abs(observed[known] - middle).max()), np.abs(simulated[:, known] - middle).max(axis=1))
