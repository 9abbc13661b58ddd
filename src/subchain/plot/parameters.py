"""Plots of what a model has learned: transitions, occupancy, emissions, and the course of its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from subchain.errors import InputError
from subchain.plot.drawing import axes_or_new, names_of, require_fitted, shortened, state_numbers, styles_of, used_by
from subchain.tasks.colours import COLOURS
from subchain.tasks.emission_table import TOP, EmissionTable, emission_table
from subchain.tasks.overview import block_order, flow
from subchain.tasks.profiles import Numbers, Symbols, profile, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from subchain.models.hmm import HMM

#: Maximum number of entries of a heat map that are labelled.
WRITTEN = 400
#: Longest label of a column or a state.
LONGEST = 20
#: Maximum number of characters of all labels under an axis side by side; with more they are turned.
MOST_ABREAST = 40
#: Number of characters that fit into a bar of probability one.
ROOM = 60


def transition(model: HMM, ax: Axes | None = None) -> Axes:
    """Plot the transition matrix of the states in use, from rows to columns, ordered so that blocks are visible.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
    >>> plot.transition(model).get_title()
    'Transition probabilities'
    """
    used = used_by(model)
    order = used[block_order(flow(model.transition_[np.ix_(used, used)], model.state_occupancy_[used]))]
    ax = axes_or_new(ax, figsize=(5.5, 5.0), layout="constrained")
    image = ax.imshow(np.sqrt(model.transition_[np.ix_(order, order)]), cmap="cividis", vmin=0.0, vmax=1.0)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    levels = np.array([0.0, 0.01, 0.1, 0.25, 0.5, 1.0])
    bar.set_ticks(np.sqrt(levels).tolist(), labels=[f"{level:g}" for level in levels])
    size = 8 if len(order) <= 40 else 4
    names = [shortened(name, LONGEST) for name in names_of(model, order)]
    is_crowded = len(order) * max(map(len, names)) > MOST_ABREAST
    ax.set_xticks(range(len(order)), names, rotation=90 if is_crowded else 0, fontsize=size)
    ax.set_yticks(range(len(order)), names, fontsize=size)
    ax.set(title="Transition probabilities", xlabel="to", ylabel="from")
    return ax


def convergence(model: HMM, ax: Axes | None = None) -> Axes:
    """Plot the objective by iteration, the held-out score on a second axis, and events as dotted lines.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
    >>> plot.convergence(model).get_xlabel()
    'iteration'
    """
    require_fitted(model)
    trace = model.trace_
    if not len(trace):
        raise InputError("this model was not fitted, so there is no run to plot; call fit first.")
    ax = axes_or_new(ax, figsize=(6.5, 4.0), layout="constrained")
    iterations = np.arange(1, len(trace) + 1)
    chains = {name: values for name, values in trace.measures.items() if name.startswith("log_joint.")}
    lines = chains or {"objective": trace.objective}
    for name, values in lines.items():
        ax.plot(iterations[: len(values)], values, label=name.replace("log_joint.", "chain "), lw=1.5)
    for iteration in sorted({event.iteration for event in trace.events}):
        ax.axvline(iteration, color="0.6", ls=":", lw=1)
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel="iteration", ylabel="log joint" if chains else "objective", title=f"Run: {model.status_}")
    if trace.validation:
        beside = ax.twinx()
        beside.plot(iterations[: len(trace.validation)], trace.validation, color=COLOURS[5], ls="--", label="held out")
        beside.set_ylabel("held-out log likelihood per observation", color=COLOURS[5])
    if len(lines) > 1:
        ax.legend(frameon=False)
    return ax


def occupancy(model: HMM, ax: Axes | None = None) -> Axes:
    """Plot the fraction of training positions in each state, with the mean dwell time.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
    >>> len(plot.occupancy(model).patches)
    2
    """
    used, styles = used_by(model), styles_of(model)
    ax = axes_or_new(ax, figsize=(6.0, 1.3 + 0.3 * len(used)), layout="constrained")
    shares, lasting = model.state_occupancy_[used], model.dwell_times_[used]
    for place, (state, share) in enumerate(zip(used, shares, strict=True)):
        ax.barh(place, share, edgecolor="white", **styles[state])
    for place, (share, time) in enumerate(zip(shares, lasting, strict=True)):
        is_long = share > 0.5 * shares.max()  # then the label fits inside the bar, and may not fit to its right
        box = {"facecolor": "white", "alpha": 0.8 if is_long else 0.0, "pad": 1.0, "lw": 0}
        lasts = f"lasts {time:.3g}" if np.isfinite(time) else "never left"
        ax.annotate(
            lasts, (share, place), (-4 if is_long else 4, 0), textcoords="offset points", va="center",
            ha="right" if is_long else "left", fontsize=8, color="black" if is_long else "0.4", bbox=box,
        )  # fmt: skip
    ax.set_yticks(range(len(used)), names_of(model, used))
    ax.set_ylim(len(used) - 0.4, -0.6)
    ax.set(xlabel="share of positions", ylabel="state", title="Occupancy")
    return ax


def states(model: HMM, column: int | str = 0, ax: Axes | None = None) -> Axes:
    """Plot the emissions of the states in one column: the most probable symbols, or mean and standard deviation.

    Parameters
    ----------
    model : HMM
    column : int or str
        Number or name of the column.
    ax : axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> model = HMM(2, "poisson", random_state=0).fit(np.array([1, 0, 2, 9, 8, 9] * 50))
    >>> plot.states(model).get_xlabel()
    'column 0'
    """
    parts = profile(model.emission_, model.family_, model.vocabularies_, model.columns_)
    part = _chosen(parts, column)
    used, styles = used_by(model), styles_of(model)
    ax = axes_or_new(ax, figsize=(6.5, 1.3 + 0.38 * len(used)), layout="constrained")
    for place, state in enumerate(used):
        (_draw_symbols if isinstance(part, Symbols) else _draw_number)(ax, part, place, int(state), styles[state])
    ax.set_yticks(range(len(used)), names_of(model, used))
    ax.set_ylim(len(used) - 0.5, -0.5)
    ax.set(ylabel="state", title="Emissions", xlabel="probability" if isinstance(part, Symbols) else part.name)
    return ax


def emissions(model: HMM, ax: Axes | None = None, states: Sequence[int | str] | None = None) -> Axes:
    """Plot the emissions of the states in all columns as a heat map with one row per state.

    If all columns are probabilities (columns of 0 and 1, or the most probable symbols), colours are probabilities.
    Otherwise each column has its own scale: colours are differences of a state's mean from the mean of all data, in
    standard deviations of the data. Labels in the map are the means and probabilities themselves.

    Parameters
    ----------
    model : HMM
    ax : axes, optional
    states : list of int or str, optional
        Numbers or names of the states to show, in this order; all states in use if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, plot
    >>> x = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]] * 50)
    >>> model = HMM(2, "bernoulli", random_state=0).fit(x)
    >>> plot.emissions(model).images[0].get_array().shape
    (2, 3)
    """
    shown_states = used_by(model) if states is None else state_numbers(model, states)
    parts = profile(model.emission_, model.family_, model.vocabularies_, model.columns_)
    table = emission_table(parts, shown_states, model.state_occupancy_)
    labels = [shortened(label, LONGEST) for label in table.labels]
    size = (2.5 + 0.5 * len(labels), 1.8 + 0.3 * len(shown_states))
    ax = axes_or_new(ax, figsize=(min(size[0], 14.0), min(size[1], 12.0)), layout="constrained")
    _draw_heat(ax, table)
    ax.set_xticks(range(len(labels)), labels, rotation=60 if max(map(len, labels)) > 2 else 0, fontsize=8)
    for label in ax.get_xticklabels():
        label.set(ha="right" if label.get_rotation() else "center", rotation_mode="anchor")
    ax.set_yticks(range(len(shown_states)), names_of(model, shown_states))
    ax.set(ylabel="state", title="Emissions")
    return ax


def _draw_heat(ax: Axes, table: EmissionTable) -> None:
    """Draw a heat map with a colour bar, and label its entries if there are at most WRITTEN."""
    from matplotlib.colors import Normalize, PowerNorm

    top = max(float(np.abs(table.colours).max()), 1e-12)
    if table.are_chances:  # a square root scale makes the small probabilities of symbols visible
        colours, scale = "cividis", PowerNorm(0.5, 0.0, 1.0) if table.has_symbols else Normalize(0.0, 1.0)
    else:
        colours, scale = "PuOr_r", Normalize(-top, top)
    image = ax.imshow(table.colours, cmap=colours, norm=scale, aspect="auto")
    what = "probability" if table.are_chances else "standard deviations\nfrom the mean"
    ax.figure.colorbar(image, ax=ax, label=what)
    if table.values.size > WRITTEN:
        return
    for (row, column), number in np.ndenumerate(table.values):
        red, green, blue, _ = image.cmap(image.norm(table.colours[row, column]))
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        text = _short(number) if table.are_chances else _rounded(number, float(table.spreads[row, column]))
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if is_dark else "black")


def _short(chance: float) -> str:
    """Return a probability as two decimals, such as .47; empty below 0.005."""
    return "" if chance < 0.005 else f"{chance:.2f}".lstrip("0")


def _rounded(mean: float, spread: float) -> str:
    """Return a mean with the decimals of two significant digits of its standard deviation."""
    if not spread > 0.0:
        return f"{mean:.3g}"
    digits = int(1 - np.floor(np.log10(spread)))
    return f"{round(mean, digits) + 0.0:,.{max(0, digits)}f}" if digits <= 4 else f"{mean:.3g}"


def _chosen(parts: list[Symbols | Numbers], column: int | str) -> Symbols | Numbers:
    names = [part.name for part in parts]
    if isinstance(column, str) and column in names:
        return parts[names.index(column)]
    if isinstance(column, (int, np.integer)) and 0 <= column < len(parts):
        return parts[column]
    raise InputError(f"column {column!r} does not exist; the model has {len(parts)} columns: {', '.join(names)}.")


def _draw_symbols(ax: Axes, part: Any, place: int, state: int, style: dict[str, Any]) -> None:
    """Draw the most probable symbols of a state side by side, with widths proportional to their probabilities."""
    left = 0.0
    for rank, symbol in enumerate(part.top(state, TOP)):
        chance = float(part.chances[state, symbol])
        ax.barh(place, chance, left=left, edgecolor="white", alpha=1.0 - 0.11 * rank, **style)
        label = shortened(shown(part.labels[symbol]), max(3, int(chance * ROOM)))
        if chance > 0.04 and len(label) <= chance * ROOM + 1:  # else it would reach into its neighbours
            box = {"facecolor": "white", "alpha": 0.8, "pad": 1.0, "lw": 0}
            ax.text(left + chance / 2, place, label, ha="center", va="center", fontsize=8, color="black", bbox=box)
        left += chance
    ax.set_xlim(0.0, 1.0)


def _draw_number(ax: Axes, part: Any, place: int, state: int, style: dict[str, Any]) -> None:
    spread = None if part.spreads is None else part.spreads[state]
    ax.errorbar(part.means[state], place, xerr=spread, fmt="o", color=style["color"], capsize=3)
