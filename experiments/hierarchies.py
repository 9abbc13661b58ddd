"""Methods for models with an unknown number of states: one table of them, and the code that runs and draws them.

A method is a prior over transitions and the algorithm that learns it. Experiments take what they compare,
and add finite models, whose number of states is given, as methods of their own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from experiments.experiment import Row
from subchain import CVI, HDP, HMM, SCVI, SVI, VI, Beam, Dirichlet
from subchain.data import Sequences
from subchain.inference import Algorithm
from subchain.transitions import TransitionPrior

#: What is written behind the name of a method that looks for merges and splits.
SEARCH = " + search"
MEAN_FIELD = "direct, mean field"


class Method(NamedTuple):
    """A prior over transitions, and how it is learned."""

    transition: TransitionPrior
    inference: Algorithm


class Concentrations(NamedTuple):
    """How closely rows follow the top level, and how many states are expected: σ and γ of the papers."""

    rows: Any
    top: Any

    def prior(self, construction: str, search: bool) -> HDP:
        """The hierarchical prior."""
        return HDP(self.rows, self.top, construction, merges=search, splits=search)


class Learned(NamedTuple):
    """A fitted model, and the seconds that its fit took: on the clock, and of the processor."""

    model: HMM
    seconds: float
    processor: float

    def times(self) -> dict[str, float]:
        """Columns of a table."""
        return {"seconds": self.seconds, "processor": self.processor}


# ---- methods ---------------------------------------------------------------------------------------------------------


def batch_methods(concentrations: Concentrations, iterations: int) -> dict[str, Method]:
    """All deterministic methods that look at all the data, with and without search."""
    algorithms: dict[str, tuple[str, Algorithm]] = {
        "collapsed": ("collapsed", CVI(max_iter=iterations)),
        "direct": ("direct", VI(max_iter=iterations)),
        "sticks": ("sticks", VI(max_iter=iterations)),
        MEAN_FIELD: ("direct", VI(cluster="state", max_iter=iterations)),
    }
    return {
        name + (SEARCH if search else ""): Method(concentrations.prior(construction, search), algorithm)
        for name, (construction, algorithm) in algorithms.items()
        for search in (False, True)
    }


def stochastic_methods(concentrations: Concentrations, **settings: Any) -> dict[str, Method]:
    """All deterministic methods that look at a part of the data at a time, with and without search."""
    algorithms: dict[str, tuple[str, SVI | SCVI]] = {
        "collapsed": ("collapsed", SCVI(**settings)),
        "direct": ("direct", SVI(**settings)),
        "sticks": ("sticks", SVI(**settings)),
    }
    return {
        name + (SEARCH if search else ""): Method(concentrations.prior(construction, search), algorithm)
        for name, (construction, algorithm) in algorithms.items()
        for search in (False, True)
    }


def finite(concentration: float, n_states: int, algorithm: Algorithm) -> Method:
    """A model with a given number of states, among which a concentration is divided."""
    return Method(Dirichlet(concentration / n_states), algorithm)


def beam(concentrations: Concentrations, sweeps: int, time_limit: float | None = None) -> Method:
    """One chain of the sampler, every sweep kept."""
    sampler = Beam(n_samples=sweeps, burn_in=0, n_chains=1, time_limit=time_limit)
    return Method(concentrations.prior("auto", False), sampler)


# ---- runs ------------------------------------------------------------------------------------------------------------


def learn(
    method: Method, data: Sequences, n_states: int, emission: Any, seed: int, init: str = "exponential",
    n_init: int = 1, validation: Any = None,
) -> Learned:  # fmt: skip
    """Fit; warnings of runs that end early, or use all states, are part of an experiment."""
    model = HMM(
        n_states, emission, method.transition, method.inference, n_init, init, random_state=seed, progress=False
    )
    began = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data, validation=validation)
    return Learned(model, time.perf_counter() - began[0], time.process_time() - began[1])


def states_of_draws(model: HMM, coverage: float) -> list[int]:
    """The number of states of each draw of a sampler's only chain."""
    assert model.samples_ is not None
    shares = np.nan_to_num(np.asarray(model.samples_["occupancy"])[0])
    held = np.cumsum(np.sort(shares, axis=1)[:, ::-1], axis=1)
    return (1 + (held < coverage * (1.0 - 1e-12) * held[:, -1:]).sum(axis=1)).tolist()


def states_of(model: HMM, coverage: float) -> float:
    """The number of states in use; of a sampler the median over the second half of its draws."""
    if model.samples_ is None:
        return float(model.effective_states(coverage))
    draws = states_of_draws(model, coverage)
    return float(np.median(draws[len(draws) // 2 :]))


def score_of(model: HMM, data: Sequences) -> float:
    """Log likelihood of held-out data, an observation."""
    return float(model.score(data)) / data.n_observations


# ---- tables and figures ----------------------------------------------------------------------------------------------


def chosen(rows: Iterable[Row], **where: Any) -> list[Row]:
    """The rows that agree with `where`."""
    return [row for row in rows if all(row.get(key) == wanted for key, wanted in where.items())]


def names_of(rows: Iterable[Row], column: str) -> list[Any]:
    """What stands in a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows if column in row))


def shared_color(names: list[str]) -> dict[str, str]:
    """Colours of methods; with and without search they have the same."""
    plain = dict.fromkeys(name.removesuffix(SEARCH) for name in names)
    palette = {name: f"C{number}" for number, name in enumerate(plain)}
    return {name: palette[name.removesuffix(SEARCH)] for name in names}


def panels(
    axes: Any, rows: int, columns: int, size: tuple[float, float] = (3.4, 4.2), share: bool = False
) -> list[Any]:
    """So many panels in the place of one, each of so many inches; with a common vertical axis if they share it."""
    figure = axes.figure
    figure.set_size_inches(size[0] * columns, size[1] * rows)
    grid = figure.add_gridspec(rows, columns)
    axes.set_subplotspec(grid[0, 0])
    others = [
        figure.add_subplot(grid[divmod(number, columns)], sharey=axes if share else None)
        for number in range(1, rows * columns)
    ]
    return [axes, *others]
