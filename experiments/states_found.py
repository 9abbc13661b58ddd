"""Zhang, Gultekin & Paisley (2016), figure 2, and Wang (2016), figure 5.7: are the right number of states found?

Two chains of four states, in 100 sequences of 100 and, as in the first paper, in one of 1,000, and a regular grammar of
seven. Every seed has its own data. A number of states alone proves little, because wrong states may be as many as right
ones; so the fit is told too: the log likelihood of fresh data, a symbol, less that of the true model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.hierarchies import (
    SEARCH,
    Concentrations,
    Method,
    batch_methods,
    beam,
    chosen,
    learn,
    names_of,
    panels,
    score_of,
    shared_color,
    states_of,
    states_of_draws,
)
from experiments.tagging import table
from subchain import HMM, Categorical
from subchain.datasets import CategoricalChain, four_state, regular_grammar

SETTINGS = Concentrations(1.0, 1.0)
#: A count of states is exact at this coverage; the first paper's is the second.
COVERAGE, WIDER = 0.99, 0.995
#: Fresh data of seed s are drawn from seed s + FRESH.
FRESH = 100_000
ITERATIONS, SWEEPS = 300, 3000
#: Iterations that the number of states is shown at, for so many seeds, and sweeps between two points of a sampler.
POINTS, FOLLOWED, THIN = (1, 5, 10, 20, 50, 100, 200, 300), 3, 50


class Set(NamedTuple):
    """Data with a known number of states.

    Attributes
    ----------
    draw : from a seed to the data
    fresh : from a seed to data that models are judged by
    truncation : number of states that runs begin with
    close : how far below the truth the fit of a good model may be
    """

    name: str
    draw: Callable[[int], CategoricalChain]
    fresh: Callable[[int], CategoricalChain]
    n_states: int
    truncation: int
    close: float


def _four(kind: str, n_sequences: int, length: int) -> Callable[[int], CategoricalChain]:
    return lambda seed: four_state(kind, n_sequences=n_sequences, length=length, random_state=seed)


SETS = (
    *(Set(kind, _four(kind, 100, 100), _four(kind, 100, 100), 4, 10, 0.01) for kind in ("positive", "negative")),
    # a thousand symbols are too few for more
    *(Set(f"{kind}, 1 x 1000", _four(kind, 1, 1000), _four(kind, 10, 1000), 4, 10, 0.1)
      for kind in ("positive", "negative")),
    Set("grammar", lambda seed: regular_grammar(random_state=seed), lambda seed: regular_grammar(random_state=seed),
        7, 12, 0.01),
)  # fmt: skip


class StatesFound(Experiment):
    """Numbers of states and fits of all methods, with and without search, from two starts."""

    name = "states_found"
    title = "Numbers of states found (Zhang et al. 2016, figure 2; Wang 2016, figure 5.7)"

    def __init__(self, quick: bool = False, seeds: int = 20, **settings: Any) -> None:
        super().__init__(quick, max(seeds, 20), **settings)

    def _methods(self) -> dict[str, Method]:
        known = batch_methods(SETTINGS, 20 if self.quick else ITERATIONS)
        return known | {"beam": beam(SETTINGS, 40 if self.quick else SWEEPS)}

    def rows(self) -> Iterable[Row]:
        methods = self._methods()
        for data in SETS[:1] if self.quick else SETS:
            for name, method in methods.items():
                for seed in range(self.seeds):
                    yield from self._runs(data, name, method, seed)
                for seed in range(min(self.seeds, FOLLOWED)):
                    yield from followed(data, name, method, POINTS[:3] if self.quick else POINTS, seed)

    def _runs(self, data: Set, name: str, method: Method, seed: int) -> Iterator[Row]:
        where = {"part": "end", "set": data.name, "method": name, "seed": seed}
        init = _start(name)
        yield where | {"init": init, "starts": 1} | found(data, method, seed, init)
        if self.quick or not name.endswith(SEARCH):
            return
        yield where | {"init": "context", "starts": 1} | found(data, method, seed, "context")
        if data.name == "grammar":
            yield where | {"init": "exponential", "starts": 3} | found(data, method, seed, "exponential", 3)

    # ---- what the rows say -------------------------------------------------------------------------------------------

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for data in SETS:
            for name in names_of(rows, "method"):
                runs = chosen(rows, part="end", set=data.name, method=name, init="exponential", starts=1)
                claims += _enough(data, name, runs, 1, self.quick)
                best = chosen(rows, part="end", set=data.name, method=name, init="exponential", starts=3)
                claims += _enough(data, name, best, 3, self.quick)
        return claims + self._of_papers(rows)

    def _of_papers(self, rows: list[Row]) -> list[Claim]:
        """What the papers say of their own methods, which have no search."""
        claims = []
        for name, value, title, published in (
            (
                "sticks", "states 99.5", "1 x 1000: sticks come to four states within 100 iterations",
                "in about 3 s; beam sampling needs 2,000 sweeps, 40 s",
            ),
            (
                "collapsed", "states", "collapsed inference comes to exactly four states",
                "after 300 iterations, 27 s; beam sampling needs 2,500 sweeps, 180 s",
            ),
        ):  # fmt: skip
            sets = [data.name for data in SETS[:4] if ("1000" in data.name) == (name == "sticks")]
            means = {
                data: mean_of(rows, value, part="end", set=data, method=name, init="exponential", starts=1)
                for data in sets
            }
            if not np.isnan(list(means.values())).any():
                shown = ", ".join(f"{data} {mean:.2f}" for data, mean in means.items())
                holds = all(mean == 4.0 for mean in means.values())
                claims.append(Claim(title, holds, shown, True, published))
        where = {"part": "end", "init": "exponential", "starts": 1}
        mean = mean_of(rows, "states", method="collapsed", set="grammar", **where)
        if not np.isnan(mean):
            text = "the grammar has a little fewer than seven states for collapsed inference"
            claims.append(Claim(text, 6.0 <= mean <= 7.0, f"{mean:.2f}", True, "6.6 on the average"))
        for data in SETS:
            draws = chosen(rows, part="end", set=data.name, method="beam")
            ours = chosen(rows, set=data.name, method=f"collapsed{SEARCH}", **where)
            if draws:
                right = sum(row["right"] for row in draws)
                slow, fast = (float(np.median([row["seconds"] for row in runs])) for runs in (draws, ours))
                shown = f"{right} of {len(draws)}, median {slow:.1f} s against {fast:.2f} s"
                text = f"{data.name}: beam draws have {data.n_states} states too, and take longer"
                published = "a little more than seven" if data.n_states == 7 else "four, or close to it"
                claims.append(Claim(text, 2 * right > len(draws) and slow > fast, shown, True, published))
        return claims

    def summary(self, rows: list[Row]) -> list[str]:
        written = []
        heads = ("method", "start", "right and fitting", "right", "fitting", "states", "states 99.5 %", "short of the "
                 "truth", "s a run, median", "of the processor")  # fmt: skip
        for data in SETS:
            runs = chosen(rows, part="end", set=data.name)
            if runs:
                cases = dict.fromkeys((row["method"], row["init"], row["starts"]) for row in runs)
                lines = (_line(case, runs) for case in cases)
                written += [f"{data.name}: {data.n_states} states, truncation {data.truncation}", *table(heads, lines)]
        return written

    def draw(self, rows: list[Row], axes: Any) -> None:
        sets = [data for data in SETS if chosen(rows, part="course", set=data.name)]
        colors = shared_color(names_of(rows, "method"))
        for data, panel in zip(sets, panels(axes, 1, len(sets), share=True), strict=True):
            for name in names_of(rows, "method"):
                course = chosen(rows, part="course", set=data.name, method=name)
                points = sorted({row["iteration"] for row in course})
                means = [mean_of(course, "states", iteration=point) for point in points]
                style = "--" if name.endswith(SEARCH) else ":" if name == "beam" else "-"
                panel.plot(points, means, style, color=colors[name], label=name)
            panel.axhline(data.n_states, color="k", linewidth=0.6)
            panel.set_xscale("log")
            panel.set_xlabel(f"{data.name}: iterations, or sweeps", fontsize=8)
        axes.set_ylabel("states that cover 99 %")
        axes.legend(fontsize=6)


def _start(name: str) -> str:
    """Samplers begin with random states, as in the papers."""
    return "states" if name == "beam" else "exponential"


def found(data: Set, method: Method, seed: int, init: str, n_init: int = 1) -> dict[str, Any]:
    """What one run of a method comes to."""
    chain, fresh = data.draw(seed), data.fresh(seed + FRESH)
    emission = Categorical(1.0, n_categories=chain.probabilities.shape[1])
    learned = learn(method, chain.observations, data.truncation, emission, seed, init, n_init)
    model = learned.model
    truth = HMM.from_parameters(chain.initial, chain.transition, Categorical.from_parameters(chain.probabilities))
    short = score_of(model, fresh.observations) - score_of(truth, fresh.observations)
    states = states_of(model, COVERAGE)
    return {
        "states": states, "states 99.5": states_of(model, WIDER), "short": short, "right": states == data.n_states,
        "fits": short > -data.close, "both": states == data.n_states and short > -data.close,
        "iterations": len(model.trace_),
    } | learned.times()  # fmt: skip


def followed(data: Set, name: str, method: Method, points: Iterable[int], seed: int) -> Iterator[Row]:
    """The number of states along a run, which is begun anew for every point, except a sampler's."""
    observations = data.draw(seed).observations
    emission = Categorical(1.0, n_categories=int(observations.values.max()) + 1)
    where = {"part": "course", "set": data.name, "method": name, "seed": seed}
    if name == "beam":
        sampled = learn(method, observations, data.truncation, emission, seed, _start(name)).model
        draws = states_of_draws(sampled, COVERAGE)
        for sweep in range(0, len(draws), THIN):
            yield where | {"iteration": sweep + 1, "states": float(np.mean(draws[sweep : sweep + THIN]))}
        return
    for iterations in points:
        shorter = method._replace(inference=copy.deepcopy(method.inference).set_params(max_iter=iterations))
        model = learn(shorter, observations, data.truncation, emission, seed).model
        yield where | {"iteration": iterations, "states": states_of(model, COVERAGE)}


def _enough(data: Set, name: str, runs: list[Row], starts: int, quick: bool) -> list[Claim]:
    """Whether as many runs are right as the method is expected to manage."""
    wanted = _wanted(data.name, name, starts)
    if wanted is None or not runs:
        return []
    number = sum(row["both"] for row in runs)
    text = f"{data.name}: {name}{', best of three' if starts == 3 else ''} finds the states and the fit in {wanted:.0%}"
    return [Claim(text, number >= wanted * len(runs), f"{number} of {len(runs)}", doubted=quick)]


def _wanted(data: str, name: str, starts: int) -> float | None:
    """The share of right runs that is expected; None where nothing is."""
    if data in ("positive", "negative"):
        return {f"collapsed{SEARCH}": 0.95, f"direct{SEARCH}": 0.95, f"sticks{SEARCH}": 0.75}.get(name)
    if data == "grammar" and name == f"collapsed{SEARCH}":
        return 0.6 if starts == 1 else 0.9
    return None


def _line(case: tuple[str, str, int], rows: list[Row]) -> Iterator[str]:
    name, init, starts = case
    runs = chosen(rows, method=name, init=init, starts=starts)
    yield from (name, init if starts == 1 else f"{init}, best of {starts}")
    yield from (f"{sum(row[value] for row in runs)}/{len(runs)}" for value in ("both", "right", "fits"))
    yield from (f"{mean_of(runs, 'states'):.2f}", f"{mean_of(runs, 'states 99.5'):.2f}")
    yield f"{mean_of(runs, 'short'):.4f}"
    yield from (f"{np.median([row[value] for row in runs]):.2f}" for value in ("seconds", "processor"))
