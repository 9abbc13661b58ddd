"""Plots of a model and data: states along a sequence, pairs of columns, dwell times, and a predictive check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.checks.deviation import LEVELS
from subchain.checks.dwelling import DwellTimes
from subchain.checks.dwelling import dwell_times as compared_dwell_times
from subchain.checks.predictive import Statistic
from subchain.checks.predictive import predictive_check as checked
from subchain.data import Sequences, as_sequences_like
from subchain.data.missing import is_missing
from subchain.data.sequences import require_observations
from subchain.errors import InputError, unknown_name
from subchain.plot.drawing import axes_or_new, names_of, require_fitted, state_numbers, styles_of, used_by
from subchain.tasks.emission_table import covariances, pair_order
from subchain.tasks.overview import block_order, flow
from subchain.tasks.profiles import Numbers, Profile, profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from subchain.models.hmm import HMM

Array = NDArray[np.float64]

#: Maximum number of bins of a segmentation, and of points of a scatter plot.
COLUMNS, POINTS = 1_000, 2_000
#: Maximum number of statistics of a predictive check, the largest drawn deviation, and the colour of those far outside.
MOST_STATISTICS, EDGE, FAR = 24, 8.0, "#d62728"


def segmentation(
    model: HMM, x: Any, sequence: int | str = 0, start: int = 0, stop: int | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the posterior marginals of the states along a sequence.

    Long sequences are processed in blocks, and marginals are averaged in a thousand bins.

    Parameters
    ----------
    model : HMM
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    sequence : int or str
        Number or name of the sequence.
    start, stop : int
        First position, and last position + 1, to plot.
    ax : axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
    >>> plot.segmentation(HMM(2, "categorical", random_state=0).fit(x), x, stop=60).get_xlabel()
    'position'
    """
    require_fitted(model)
    data = require_observations(as_sequences_like(x, model.vocabularies_, model.columns_, model.grouped_by_))
    number = _sequence_number(data, sequence)
    length = int(data.lengths[number])
    first, last, _ = slice(start, stop).indices(length)
    if first >= last:
        raise InputError(f"a sequence of length {length} has no positions from {start} to {stop}; give start < stop.")
    used, styles = used_by(model), styles_of(model)
    order = used[block_order(flow(model.transition_[np.ix_(used, used)], model.state_occupancy_[used]))]
    shares, edges = _shares(model, data[[number]], first, last)
    ax = axes_or_new(ax, figsize=(10.0, 2.6), layout="constrained")
    ax.stackplot(
        edges,
        *np.vstack([shares, shares[-1:]]).T[order],
        step="post",
        colors=[styles[state]["color"] for state in order],
        hatch=[styles[state]["hatch"] for state in order],
        labels=names_of(model, order),
        edgecolor="white",
        lw=0,
    )
    ax.set(xlim=(first, last), ylim=(0.0, 1.0), xlabel="position", ylabel="share of states")
    ax.set_title("Segmentation" if data.names is None else f"Segmentation of {data.names[number]}")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8, ncols=1 + len(order) // 9)
    return ax


def _shares(model: HMM, data: Any, first: int, last: int) -> tuple[Array, Array]:
    """Return mean marginals in at most COLUMNS bins of positions first … last − 1, (n_bins, K), and the bins' edges."""
    n_bins = min(COLUMNS, last - first)
    edges = first + np.arange(n_bins + 1) * (last - first) // n_bins
    sums = np.zeros((n_bins, model.n_states_))
    for start, marginals in model.predict_proba_blocks(data):
        low, high = max(start, first), min(start + len(marginals), last)
        if low >= high:
            continue
        bins = np.searchsorted(edges, np.arange(low, high), side="right") - 1
        begins = np.flatnonzero(np.diff(bins, prepend=-1))
        sums[bins[begins]] += np.add.reduceat(marginals[low - start : high - start], begins, axis=0)
    return sums / np.diff(edges)[:, None], edges.astype(np.float64)


def _sequence_number(data: Sequences, sequence: int | str) -> int:
    """Return the number of a sequence that is given by number or name."""
    names = [] if data.names is None else list(data.names)
    if isinstance(sequence, str):
        if sequence not in names:
            if not names:
                raise InputError(f"there is no sequence {sequence!r}: the sequences have no names; give a number.")
            raise unknown_name("sequence", sequence, [str(name) for name in names])
        return names.index(sequence)
    if not 0 <= sequence < data.n_sequences:
        raise InputError(f"sequence {sequence} does not exist; there are {data.n_sequences} sequences.")
    return int(sequence)


def pairs(model: HMM, x: Any, columns: tuple[int | str, int | str] | None = None, ax: Axes | None = None) -> Axes:
    """Plot two columns of the data, coloured by state, with an ellipse that holds 90 per cent of each state.

    At most two thousand evenly spaced positions are drawn. Ellipses are those of Gaussian emissions with the means and
    covariances of the states.

    Parameters
    ----------
    model : HMM
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    columns : two of int or str, optional
        Numbers or names of the columns; by default the two that separate the states best.
    ax : axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> x = np.random.default_rng(0).normal(size=(300, 3)) + np.repeat([0, 5, 0], 100)[:, None]
    >>> plot.pairs(HMM(2, "gaussian", random_state=0).fit(x), x, columns=(0, 2)).get_xlabel()
    'column 0'
    """
    require_fitted(model)
    data = require_observations(as_sequences_like(x, model.vocabularies_, model.columns_, model.grouped_by_))
    parts = profile(model.emission_, model.family_, model.vocabularies_, model.columns_ or data.columns)
    used, styles = used_by(model), styles_of(model)
    places = _two_columns(parts, columns, used, model.state_occupancy_)
    ax = axes_or_new(ax, figsize=(6.5, 5.0), layout="constrained")
    at = np.arange(min(POINTS, data.n_observations)) * data.n_observations // min(POINTS, data.n_observations)
    table = data.values.reshape(data.n_observations, -1)[at][:, [parts[place].column for place in places]]
    points = np.where(is_missing(table), np.nan, table)
    best = np.concatenate([marginals.argmax(axis=1) for marginals in _at(model, data, at)])
    spread = covariances(model.emission_, parts)
    for state in used:
        means = model.emission_.expectation()[state, [parts[place].place.start for place in places]]
        colour, name = styles[state]["color"], model.state_names_[state]
        mine = points[best == state]
        ax.scatter(mine[:, 0], mine[:, 1], s=5, color=colour, alpha=0.5, lw=0)
        ax.plot(*_ellipse(means, spread[state][np.ix_(places, places)]), color=colour, lw=2, label=name)
    across, up = (parts[place].name for place in places)
    ax.set(xlabel=across, ylabel=up, title="Data and states (ellipses hold 90 %)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8, ncols=1 + len(used) // 17)
    return ax


def _at(model: HMM, data: Sequences, at: NDArray[np.int64]) -> Any:
    """Yield the marginals of increasing flat positions, block by block."""
    for start, marginals in model.predict_proba_blocks(data):
        low, high = np.searchsorted(at, [start, start + len(marginals)])
        yield marginals[at[low:high] - start]


def _two_columns(
    parts: Profile, columns: tuple[int | str, int | str] | None, used: NDArray[np.int64], occupancy: Array
) -> list[int]:
    """Return the places of two columns of numbers in the profile."""
    numeric = [place for place, part in enumerate(parts) if isinstance(part, Numbers)]
    names = [parts[place].name for place in numeric]
    if len(numeric) < 2:
        raise InputError(f"a plot of pairs needs two columns of numbers, but the model has {len(numeric)}.")
    if columns is None:
        return sorted(pair_order(parts, numeric, used, occupancy)[:2])
    if len(columns) != 2:
        raise InputError(f"columns must be two numbers or names, not {columns!r}.")
    found = []
    for column in columns:
        if isinstance(column, str) and column in names:
            found.append(numeric[names.index(column)])
        elif isinstance(column, (int, np.integer)) and column in numeric:
            found.append(int(column))
        else:
            raise InputError(f"column {column!r} is none of the columns of numbers: {', '.join(names)}.")
    return found


def _ellipse(mean: Array, covariance: Array) -> Array:
    """Return points of the ellipse that holds 90 per cent of a Gaussian in two dimensions, (2, 100)."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.sqrt(-2.0 * np.log(0.1)) * np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(mean[:, None] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle))


def dwell_times(model: HMM, x: Any, state: int | str, ax: Axes | None = None) -> Axes:
    """Plot how long a state lasts in data, against the geometric distribution that the model implies.

    The curve is the share of visits that last longer than a number of positions, in the decoded states. The band holds
    the middle 95 per cent of 50 simulations from the fitted parameters, decoded in the same way. The dashed line is the
    geometric distribution.

    Parameters
    ----------
    model : HMM
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    state : int or str
        Number or name of the state.
    ax : axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> x = np.random.default_rng(0).normal(size=600) + np.repeat([0, 8] * 30, 10)
    >>> plot.dwell_times(HMM(2, "gaussian", random_state=0).fit(x), x, state=0).get_title()
    'Dwell times of 0: far outside the simulations'
    """
    require_fitted(model)
    number = state_numbers(model, [state])[0]
    found = compared_dwell_times(model, x)[number]
    ax = axes_or_new(ax, figsize=(6.0, 4.0), layout="constrained")
    colour = styles_of(model)[number]["color"]
    ax.fill_between(found.lengths, found.low, found.high, color="0.8", label="simulated, middle 95 %", lw=0)
    ax.plot(found.lengths, found.geometric, color="black", ls="--", lw=1, label="geometric, by the model")
    ax.plot(found.lengths, found.observed, color=colour, lw=2, label=f"data, {found.n_ended + found.n_cut} visits")
    least = max(1e-4, 0.3 / max(found.n_ended, 1))
    ax.set(yscale="log", ylim=(min(least, 0.1), 1.1), xlim=(0, None))
    ax.set(xlabel="positions", ylabel="share of visits that last longer")
    ax.set_title(f"Dwell times of {model.state_names_[number]}{_verdict(found)}")
    ax.legend(frameon=False, fontsize=8)
    return ax


def _verdict(found: DwellTimes) -> str:
    return {True: ": far outside the simulations", False: "", None: ": too few visits to compare"}[found.is_far]


def predictive_check(model: HMM, x: Any, ax: Axes | None = None) -> Axes:
    """Plot statistics of the data among those of data that are simulated from the fitted parameters.

    A dot is the data, the bar the middle 95 per cent of 50 simulations, both in standard deviations from the mean of
    the simulations. Statistics that are far outside, beyond all simulations by more than half of their range, are red:
    the model cannot describe them.

    Parameters
    ----------
    model : HMM
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    ax : axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> x = np.random.default_rng(0).standard_t(2, 3000)
    >>> plot.predictive_check(HMM(1, "gaussian", random_state=0).fit(x), x).get_title()
    'Predictive check: 3 of 7 statistics are far outside'
    """
    require_fitted(model)
    found = checked(model, x)
    ranked = sorted(found.statistics, key=lambda one: -abs(one.deviation))[:MOST_STATISTICS]
    ax = axes_or_new(ax, figsize=(8.0, 1.4 + 0.25 * len(ranked)), layout="constrained")
    for place, one in enumerate(ranked):
        low, high = _standardised_bounds(one)
        ax.barh(place, high - low, left=low, height=0.5, color="0.8")
        ax.plot(np.clip(one.deviation, -EDGE, EDGE), place, "o", color=FAR if one.is_far else "black", ms=5)
    labels = [f"{one.name} of {one.column}" if one.column else one.name for one in ranked]
    ax.set_yticks(range(len(ranked)), labels, fontsize=8)
    ax.set(xlim=(-EDGE - 0.5, EDGE + 0.5), ylim=(len(ranked) - 0.4, -0.6))
    ax.set_xlabel("standard deviations from the mean of the simulations")
    ax.set_title(f"Predictive check: {len(found.far)} of {len(found.statistics)} statistics are far outside")
    return ax


def _standardised_bounds(one: Statistic) -> tuple[float, float]:
    """Return the middle 95 per cent of the simulations, in standard deviations from their mean."""
    low, high = np.quantile(one.simulated, LEVELS) - one.simulated.mean()
    spread = float(one.simulated.std()) or 1.0
    return float(low / spread), float(high / spread)
