"""Local optima: how often one run, and the best of five, finds simulated regimes whose number is known.

Six sticky Gaussian regimes, 8,000 points, in three settings that differ in how far the regimes are apart, how wide they
are and how long they last. A fit is good if its log likelihood is at most 20 nats below that of the true parameters.
The means and widths of every set are drawn anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Claim, Experiment, Row
from experiments.tagging import table
from subchain import EM, HMM, VI, Gaussian

Array = NDArray[np.float64]

N_STATES, LENGTH = 6, 8000
#: Nats below the truth at which a fit is still good.
CLOSE = 20.0
SETS = 20


class Setting(NamedTuple):
    """How data are drawn: dimensions, probability of staying, and the spread of the means."""

    name: str
    dimensions: int
    stay: float
    spread: float


SETTINGS = (
    Setting("scalars, long regimes", 1, 0.98, 3.0),
    Setting("pairs, long regimes", 2, 0.98, 2.0),
    Setting("pairs, short and close regimes", 2, 0.95, 1.0),
)
#: Settings of fits by name: kind of start, search, number of runs.
METHODS: dict[str, dict[str, Any]] = {
    "k-means, no search": {"init": "kmeans", "search": False, "n_init": 1},
    "k-means, no search, best of five": {"init": "kmeans", "search": False, "n_init": 5},
    "no search": {"search": False, "n_init": 1},
    "default": {"n_init": 1},
    "default, best of five": {"n_init": 5},
}


def draw(setting: Setting, seed: int) -> tuple[Array, HMM]:
    """Return data and the model that they are drawn from."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0.0, setting.spread, (N_STATES, setting.dimensions))
    widths = np.exp(rng.normal(-0.3, 0.6, (N_STATES, setting.dimensions)))
    moves = np.full((N_STATES, N_STATES), (1.0 - setting.stay) / (N_STATES - 1))
    np.fill_diagonal(moves, setting.stay)
    emission = Gaussian.from_parameters(means, [np.diag(width**2) for width in widths])
    truth = HMM.from_parameters(np.full(N_STATES, 1.0 / N_STATES), moves, emission)
    return truth.sample(LENGTH, random_state=seed).observations, truth


class LocalOptima(Experiment):
    """Shares of good fits."""

    name = "local_optima"
    title = "Local optima: regimes found from one run and from five"

    def rows(self) -> Iterable[Row]:
        for setting in SETTINGS[:1] if self.quick else SETTINGS:
            for seed in range(2 if self.quick else SETS):
                x, truth = draw(setting, seed)
                bar = truth.score(x)
                for algorithm in (EM, VI):
                    for name, given in METHODS.items():
                        yield {
                            "setting": setting.name, "seed": seed, "algorithm": algorithm.name, "method": name,
                        } | _fit(algorithm, given, x, seed, bar)  # fmt: skip

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for (setting, algorithm, method), runs in _groups(rows).items():
            least = {"default": 0.8, "default, best of five": 0.9}.get(method)
            if least is not None:
                text = f"{setting}: {algorithm.upper()}, {method}, is good in at least {least:.0%} of the sets"
                evidence = f"{_good(runs)} of {len(runs)}"
                claims.append(Claim(text, _good(runs) >= least * len(runs), evidence, doubted=self.quick))
        return claims

    def summary(self, rows: list[Row]) -> list[str]:
        found = []
        for (setting, algorithm, method), runs in _groups(rows).items():
            gap, seconds = (f"{np.mean([row[name] for row in runs]):.2f}" for name in ("gap", "seconds"))
            found.append((setting, algorithm, method, f"{_good(runs)} of {len(runs)}", gap, seconds))
        return table(("setting", "algorithm", "method", "good", "nats above the truth", "seconds"), found)

    def draw(self, rows: list[Row], axes: Any) -> None:
        groups = _groups(rows)
        names = list(METHODS)
        for number, algorithm in enumerate(("em", "vi")):
            for where, method in enumerate(names):
                shares = [_good(runs) / len(runs) for key, runs in groups.items() if key[1:] == (algorithm, method)]
                axes.bar(where + 0.4 * number - 0.2, np.mean(shares), 0.36, color=f"C{number}")
        axes.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names], fontsize=8)
        axes.set_ylabel("share of good fits")
        axes.legend([axes.patches[0], axes.patches[len(names)]], ["EM", "VI"])


def _groups(rows: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["setting"], row["algorithm"], row["method"]), []).append(row)
    return found


def _good(runs: list[Row]) -> int:
    return sum(row["gap"] >= -CLOSE for row in runs)


def _fit(algorithm: Any, given: dict[str, Any], x: Array, seed: int, bar: float) -> Row:
    settings = dict(given)
    inference = algorithm(search=settings.pop("search", True))
    began = time.process_time()
    model = HMM(N_STATES, "gaussian", inference=inference, random_state=seed, progress=False, **settings).fit(x)
    return {"gap": model.score(x) - bar, "seconds": time.process_time() - began, "start": model.trace_.start}
