"""Wang (2016), figures 5.4 to 5.6: q(C > 0) of transitions along the iterations of collapsed inference on text.

The first 10,000 characters of *Alice* in 100 sequences, and the first 450 sentences of the Wall Street Journal, where
they are at hand. The hierarchical model of the thesis is learned from random marginals; after some of the iterations
the error of each approximation is measured, (5.68). Marginals are those under the posterior predictive of all counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import block, penn_sample
from subchain import CVI, HDP, HMM, Categorical
from subchain.data import Sequences
from subchain.datasets import load_alice
from subchain.engines import CpuEngine, Part
from subchain.errors import InputError

Array = NDArray[np.float64]

#: Settings of the thesis: 100 sequences of 100 characters; sentences of the journal.
CHUNK, CHUNKS, SENTENCES = 100, 100, 450
TOP, ROWS = 5.0, 3.0
SAMPLES = (100, 1_000, 10_000)
ITERATIONS = (1, 2, 5, 10, 20, 50, 100, 150, 200, 300, 400)
#: Below this a transition is taken not to happen.
ABSENT = 0.01


class Corpus(NamedTuple):
    """Sequences of symbols, and the concentration of each symbol."""

    name: str
    data: Sequences
    emission: float


class OccurrenceInText(Experiment):
    """Errors over iterations, and heat maps of the probabilities at the first and the last."""

    name = "occurrence_in_text"
    title = "Whether a transition happens, in text (Wang 2016, figures 5.4 to 5.6)"

    def __init__(self, *settings: Any, **more: Any) -> None:
        super().__init__(*settings, **more)
        self.maps: dict[tuple[str, int, int], Array] = {}

    @property
    def _iterations(self) -> tuple[int, ...]:
        return (1, 100, 300) if self.quick else ITERATIONS

    def _corpora(self) -> Iterator[Corpus]:
        characters = load_alice(sequences="chain").observations
        offsets = np.arange(CHUNKS + 1) * CHUNK
        yield Corpus("Alice", Sequences(characters.values[: offsets[-1]], offsets), 1.0 / 27)
        try:
            yield Corpus("WSJ", block(penn_sample(), 1, SENTENCES).words, 0.1)
        except InputError as error:
            self.tell(f"without the Wall Street Journal: {error}")

    def rows(self) -> Iterable[Row]:
        for corpus in self._corpora():
            for n_states in (10, 50):
                for seed in range(self.seeds):
                    for iterations in self._iterations:
                        yield from self._row(corpus, n_states, iterations, seed)

    def _row(self, corpus: Corpus, n_states: int, iterations: int, seed: int) -> Iterator[Row]:
        surrogate, engine = learned(corpus, n_states, iterations, seed).posterior_.predictive().surrogate(), CpuEngine()
        truth = engine.occurrence(surrogate, Part(corpus.data), "exact").probability
        self.maps.setdefault((corpus.name, n_states, iterations), truth)
        samples = SAMPLES[:2] if self.quick else SAMPLES
        methods = [("pairs", 0), ("mean_field", 0), *(("sampling", number) for number in samples)]
        for method, number in methods:
            found = engine.occurrence(surrogate, Part(corpus.data), method, number, seed).probability
            errors = np.abs(found - truth)
            yield {
                "corpus": corpus.name, "states": n_states, "seed": seed, "iteration": iterations,
                "method": f"{method} {number}" if number else method, "error": float(errors.mean()),
                "largest": float(errors.max()), "probability": float(truth.mean()),
                "absent": float((truth < ABSENT).mean()),
            }  # fmt: skip

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for corpus, n_states in dict.fromkeys((row["corpus"], row["states"]) for row in rows):
            where = {"corpus": corpus, "states": n_states}
            title, last = f"{corpus}, K = {n_states}", self._iterations[-1]
            worst = max(mean_of(rows, "error", method="pairs", iteration=n, **where) for n in self._iterations)
            text = f"{title}: pairs are off by less than 0.001 throughout"
            claims.append(Claim(text, worst < 1e-3, f"{worst:.1e}", published="below 0.001 throughout"))
            end = {
                name: mean_of(rows, "error", method=name, iteration=last, **where)
                for name in dict.fromkeys(row["method"] for row in rows)
            }
            told = ", ".join(f"{name} {error:.1e}" for name, error in end.items())
            best = min(end, key=lambda name: end[name])
            text = f"{title}: pairs are the best in the end"
            claims.append(Claim(text, best == "pairs", told, published="the best of all"))
            far = end["mean_field"] > 10 * end["pairs"]
            claims.append(Claim(f"{title}: mean field is far off in the end", far, told, published="quite bad"))
        first = "at first every transition happens", "probability", 1, (0.99, 1.0), "almost 1"
        claims.append(self._share(rows, "Alice", 10, *first, doubted=False))
        claims.append(
            self._share(
                rows, "Alice", 50, "in the end about half of the transitions never happen", "absent",
                self._iterations[-1], (0.35, 0.65), "about half", self.quick,
            )
        )  # fmt: skip
        return claims

    @staticmethod
    def _share(
        rows: list[Row], corpus: str, n_states: int, text: str, value: str, iteration: int,
        within: tuple[float, float], published: str, doubted: bool,
    ) -> Claim:  # fmt: skip
        found = mean_of(rows, value, corpus=corpus, states=n_states, iteration=iteration)
        holds = within[0] <= found <= within[1]
        return Claim(f"{corpus}, K = {n_states}: {text}", holds, f"{found:.3f}", doubted, published)

    def draw(self, rows: list[Row], axes: Any) -> None:
        figure = axes.figure
        cases = list(dict.fromkeys((row["corpus"], row["states"]) for row in rows))
        figure.set_size_inches(3.6 * len(cases), 9.0)
        grid = figure.add_gridspec(4, len(cases), height_ratios=(0.01, 1, 1, 1))
        axes.set_subplotspec(grid[0, :])  # for the title alone
        axes.set_axis_off()
        for column, (corpus, n_states) in enumerate(cases):
            panel = figure.add_subplot(grid[1, column])
            for name in dict.fromkeys(row["method"] for row in rows):
                errors = [
                    mean_of(rows, "error", corpus=corpus, states=n_states, method=name, iteration=iteration)
                    for iteration in self._iterations
                ]
                panel.plot(self._iterations, errors, marker=".", label=name)
            panel.set_yscale("log")
            panel.set_ylim(bottom=1e-7)
            panel.set_xlabel(f"iteration ({corpus}, K = {n_states})")
            panel.set_ylabel("mean error of q(C > 0)")
            panel.legend(fontsize=6)
            for row, iteration in ((2, self._iterations[0]), (3, self._iterations[-1])):
                heat = figure.add_subplot(grid[row, column])
                heat.imshow(self.maps[corpus, n_states, iteration], cmap="Greys", vmin=0.0, vmax=1.0)
                heat.set_xlabel(f"q(C > 0), iteration {iteration}", fontsize=7)


def learned(corpus: Corpus, n_states: int, iterations: int, seed: int) -> HMM:
    """The model of the thesis after so many iterations: no merges, no splits, random marginals to begin with."""
    transition = HDP(concentration=ROWS, top_concentration=TOP, construction="collapsed", merges=False, splits=False)
    emission = Categorical(corpus.emission, n_categories=int(corpus.data.values.max()) + 1)
    inference = CVI(cluster="sequence", max_iter=iterations, tolerance=0.0)
    model = HMM(n_states, emission, transition, inference, init="posteriors", random_state=seed, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # iterations and states are as many as in the thesis
        return model.fit(corpus.data)
