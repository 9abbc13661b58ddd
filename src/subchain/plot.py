"""Plots of fitted models; each function returns matplotlib axes.

Pass `ax` to draw into an existing figure. Colours are those of the report and suit all kinds of colour vision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import as_sequences_like
from subchain.data.sequences import require_observations
from subchain.errors import InputError, not_fitted, unknown_name
from subchain.tasks.colours import COLOURS, ranks
from subchain.tasks.overview import block_order, flow, used_states
from subchain.tasks.profiles import Numbers, Symbols, profile, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from subchain.models.hmm import HMM

Array = NDArray[np.float64]

__all__ = ["convergence", "emissions", "occupancy", "segmentation", "states", "transition"]

#: Hatches that distinguish states of the same colour.
HATCHES = ("", "//", "..", "\\\\", "--", "xx")
#: Maximum numbers of symbols per state, and of bins of a segmentation.
TOP, COLUMNS = 6, 1_000
#: Approximate maximum number of symbols in a heat map, and maximum number of entries that are labelled.
SYMBOLS, WRITTEN = 40, 400


def _axes(ax: Axes | None, **figure: Any) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError("plots need matplotlib, which is not installed; run pip install matplotlib.") from None
    return pyplot.subplots(**figure)[1]


def _require_fitted(model: HMM) -> None:
    if not model.__sklearn_is_fitted__():
        raise not_fitted(type(model).__name__)


def _used(model: HMM) -> NDArray[np.int64]:
    """Return the states that hold at least one training position, (S,)."""
    _require_fitted(model)
    statistics = model.statistics_
    return used_states(statistics.visits)


def _names(model: HMM, states: NDArray[np.int64]) -> list[str]:
    return [model.state_names_[state] for state in states]


def _styles(model: HMM) -> list[dict[str, Any]]:
    """Return colour and hatch of every state."""
    return [
        {"color": COLOURS[rank % len(COLOURS)], "hatch": HATCHES[rank // len(COLOURS) % len(HATCHES)]}
        for rank in ranks(model.state_occupancy_)
    ]


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
    used = _used(model)
    order = used[block_order(flow(model.transition_[np.ix_(used, used)], model.state_occupancy_[used]))]
    ax = _axes(ax, figsize=(5.5, 5.0), layout="constrained")
    image = ax.imshow(np.sqrt(model.transition_[np.ix_(order, order)]), cmap="cividis", vmin=0.0, vmax=1.0)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    levels = np.array([0.0, 0.01, 0.1, 0.25, 0.5, 1.0])
    bar.set_ticks(np.sqrt(levels).tolist(), labels=[f"{level:g}" for level in levels])
    size = 8 if len(order) <= 40 else 4
    ax.set_xticks(range(len(order)), _names(model, order), rotation=90 if len(order) > 12 else 0, fontsize=size)
    ax.set_yticks(range(len(order)), _names(model, order), fontsize=size)
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
    _require_fitted(model)
    trace = model.trace_
    if not len(trace):
        raise InputError("this model was not fitted, so there is no run to plot; call fit first.")
    ax = _axes(ax, figsize=(6.5, 4.0), layout="constrained")
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
    used, styles = _used(model), _styles(model)
    ax = _axes(ax, figsize=(6.0, 0.6 + 0.3 * len(used)), layout="constrained")
    shares, lasting = model.state_occupancy_[used], model.dwell_times_[used]
    for place, (state, share) in enumerate(zip(used, shares, strict=True)):
        ax.barh(place, share, edgecolor="white", **styles[state])
    for place, (share, time) in enumerate(zip(shares, lasting, strict=True)):
        is_long = share > 0.5 * shares.max()  # then the label fits inside the bar, and may not fit to its right
        box = {"facecolor": "white", "alpha": 0.8 if is_long else 0.0, "pad": 1.0, "lw": 0}
        ax.annotate(
            f"lasts {time:.3g}", (share, place), (-4 if is_long else 4, 0), textcoords="offset points", va="center",
            ha="right" if is_long else "left", fontsize=8, color="black" if is_long else "0.4", bbox=box,
        )  # fmt: skip
    ax.set_yticks(range(len(used)), _names(model, used))
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
    used, styles = _used(model), _styles(model)
    ax = _axes(ax, figsize=(6.5, 0.8 + 0.38 * len(used)), layout="constrained")
    for place, state in enumerate(used):
        (_draw_symbols if isinstance(part, Symbols) else _draw_number)(ax, part, place, int(state), styles[state])
    ax.set_yticks(range(len(used)), _names(model, used))
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
    shown_states = _used(model) if states is None else _state_numbers(model, states)
    parts = profile(model.emission_, model.family_, model.vocabularies_, model.columns_)
    labels, means, spreads = _columns(parts, shown_states)
    are_chances = all(isinstance(part, Symbols) or part.is_chance for part in parts)
    has_symbols = any(isinstance(part, Symbols) for part in parts)
    table = means if are_chances else _standardised(means, spreads, model.state_occupancy_)
    size = (2.0 + 0.5 * len(labels), 1.4 + 0.3 * len(shown_states))
    ax = _axes(ax, figsize=(min(size[0], 14.0), min(size[1], 12.0)), layout="constrained")
    _draw_heat(ax, table[shown_states], means[shown_states], are_chances, has_symbols)
    ax.set_xticks(range(len(labels)), labels, rotation=60 if max(map(len, labels)) > 2 else 0, fontsize=8)
    for label in ax.get_xticklabels():
        label.set(ha="right" if label.get_rotation() else "center", rotation_mode="anchor")
    ax.set_yticks(range(len(shown_states)), _names(model, shown_states))
    ax.set(ylabel="state", title="Emissions")
    return ax


def _state_numbers(model: HMM, states: Sequence[int | str]) -> NDArray[np.int64]:
    """Return the numbers of states given by number or name."""
    names, found = model.state_names_, []
    for state in states:
        if isinstance(state, str):
            if state not in names:
                raise unknown_name("state", state, names)
            found.append(names.index(state))
        elif 0 <= state < len(names):
            found.append(int(state))
        else:
            raise InputError(f"state {state!r} does not exist; there are {len(names)} states, 0 to {len(names) - 1}.")
    if not found:
        raise InputError("no state was chosen; name at least one, or leave states out.")
    return np.array(found, dtype=np.int64)


def _columns(parts: list[Symbols | Numbers], states: NDArray[np.int64]) -> tuple[list[str], Array, Array]:
    """Return labels (D,), means and standard deviations (K, D) of the columns of numbers and of the shown symbols."""
    labels, means, spreads = [], [], []
    for part in parts:
        if isinstance(part, Symbols):
            before = f"{part.name}: " if len(parts) > 1 else ""
            symbols = _top_symbols(part, states)
            labels += [before + shown(part.labels[symbol]) for symbol in symbols]
            means += list(part.chances[:, symbols].T)
            spreads += list(np.sqrt(part.chances * (1.0 - part.chances))[:, symbols].T)
            continue
        labels.append(part.name)
        means.append(part.means)
        own = np.sqrt(part.means * (1.0 - part.means)) if part.is_chance else part.spreads
        spreads.append(np.zeros_like(part.means) if own is None else own)
    return labels, np.array(means).T, np.array(spreads).T


def _top_symbols(part: Symbols, states: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the most probable symbols of some states, those of the first state first."""
    each = max(1, min(TOP, SYMBOLS // len(states)))
    top = np.concatenate([part.top(int(state), each) for state in states])
    symbols = top[np.sort(np.unique(top, return_index=True)[1])]
    return symbols[np.argsort(part.chances[np.ix_(states, symbols)].argmax(axis=0), kind="stable")]


def _standardised(means: Array, spreads: Array, occupancy: Array) -> Array:
    """Return the difference of each state's mean from the overall mean, in overall standard deviations, (K, D)."""
    away = means - occupancy @ means
    scale = np.sqrt(occupancy @ (spreads**2 + away**2))
    return np.divide(away, scale, out=np.zeros_like(away), where=scale > 0.0)


def _draw_heat(ax: Axes, table: Array, numbers: Array, are_chances: bool, has_symbols: bool) -> None:
    """Draw a heat map with a colour bar, and label its entries if there are at most WRITTEN."""
    from matplotlib.colors import Normalize, PowerNorm

    top = max(float(np.abs(table).max()), 1e-12)
    if are_chances:  # a square root scale makes the small probabilities of symbols visible
        colours, scale = "cividis", PowerNorm(0.5, 0.0, 1.0) if has_symbols else Normalize(0.0, 1.0)
    else:
        colours, scale = "PuOr_r", Normalize(-top, top)
    image = ax.imshow(table, cmap=colours, norm=scale, aspect="auto")
    what = "probability" if are_chances else "standard deviations from the mean"
    ax.figure.colorbar(image, ax=ax, label=what)
    if table.size > WRITTEN:
        return
    for (row, column), number in np.ndenumerate(numbers):
        red, green, blue, _ = image.cmap(image.norm(table[row, column]))
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        text = _short(number) if are_chances else f"{number:.3g}"
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if is_dark else "black")


def _short(chance: float) -> str:
    """Return a probability as two decimals, such as .47; empty below 0.005."""
    return "" if chance < 0.005 else f"{chance:.2f}".lstrip("0")


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
        if chance > 0.04:
            box = {"facecolor": "white", "alpha": 0.8, "pad": 1.0, "lw": 0}
            label = shown(part.labels[symbol])
            ax.text(left + chance / 2, place, label, ha="center", va="center", fontsize=8, color="black", bbox=box)
        left += chance
    ax.set_xlim(0.0, 1.0)


def _draw_number(ax: Axes, part: Any, place: int, state: int, style: dict[str, Any]) -> None:
    spread = None if part.spreads is None else part.spreads[state]
    ax.errorbar(part.means[state], place, xerr=spread, fmt="o", color=style["color"], capsize=3)


def segmentation(
    model: HMM, x: Any, sequence: int = 0, start: int = 0, stop: int | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the posterior marginals of the states along a sequence.

    Long sequences are processed in blocks, and marginals are averaged in a thousand bins.

    Parameters
    ----------
    model : HMM
    x : array, list of arrays, (X, lengths), Sequences, path, or table
    sequence : int
        Number of the sequence.
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
    _require_fitted(model)
    data = require_observations(as_sequences_like(x, model.vocabularies_, model.columns_, model.grouped_by_))
    if not 0 <= sequence < data.n_sequences:
        raise InputError(f"sequence {sequence} does not exist; there are {data.n_sequences} sequences.")
    length = int(data.lengths[sequence])
    first, last, _ = slice(start, stop).indices(length)
    if first >= last:
        raise InputError(f"a sequence of length {length} has no positions from {start} to {stop}; give start < stop.")
    used, styles = _used(model), _styles(model)
    order = used[block_order(flow(model.transition_[np.ix_(used, used)], model.state_occupancy_[used]))]
    shares, edges = _shares(model, data[[sequence]], first, last)
    ax = _axes(ax, figsize=(10.0, 2.6), layout="constrained")
    ax.stackplot(
        edges,
        *np.vstack([shares, shares[-1:]]).T[order],
        step="post",
        colors=[styles[state]["color"] for state in order],
        hatch=[styles[state]["hatch"] for state in order],
        labels=_names(model, order),
        edgecolor="white",
        lw=0,
    )
    ax.set(xlim=(first, last), ylim=(0.0, 1.0), xlabel="position", ylabel="share of states", title="Segmentation")
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
