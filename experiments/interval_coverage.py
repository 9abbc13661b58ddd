"""How often credible intervals cover the truth where states overlap.

Two or three sticky Gaussian states, 1.5 to 3 standard deviations apart, in one chain of 1,000 positions. Every seed has
its own data. A model is fitted by `VI` from a start at the truth, so that only the width of intervals is judged, and
intervals of 90 per cent are computed by every method of `HMM.intervals`. A row has the share of each kind of parameter
that they cover.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from experiments.experiment import Claim, Experiment, Row, mean_of
from subchain import HMM, VI, Gaussian
from subchain.datasets import sample_chain

LEVEL = 0.9
LENGTH = 1000
METHODS = ("posterior", "gibbs")
KINDS = ("means", "variances", "transitions")
#: Shares that intervals of 90 per cent should cover.
AT_LEAST, AT_MOST = 0.85, 0.95


class Setting(NamedTuple):
    """States with unit variance: their means, and the probability of staying in each."""

    name: str
    means: tuple[float, ...]
    stay: float


SETTINGS = (
    Setting("2 states, 3 apart", (0.0, 3.0), 0.95),
    Setting("2 states, 2 apart", (0.0, 2.0), 0.95),
    Setting("2 states, 1.5 apart", (0.0, 1.5), 0.95),
    Setting("3 states, 2 apart", (0.0, 2.0, 4.0), 0.95),
)


class IntervalCoverage(Experiment):
    """Coverage of 90 per cent intervals of means, variances and transition probabilities."""

    name = "interval_coverage"
    title = "Coverage of credible intervals of overlapping states"

    def __init__(self, quick: bool = False, seeds: int = 100, **settings: Any) -> None:
        super().__init__(quick, max(seeds, 100), **settings)

    def rows(self) -> Iterable[Row]:
        for setting in SETTINGS[1:2] if self.quick else SETTINGS:
            for seed in range(self.seeds):
                yield from _covered(setting, seed, 50 if self.quick else 400)

    def summary(self, rows: list[Row]) -> list[str]:
        lines = ["| states | method | means | variances | transitions |", "|---|---|---|---|---|"]
        for setting in SETTINGS:
            for method in METHODS:
                found = [mean_of(rows, kind, setting=setting.name, method=method) for kind in KINDS]
                if not np.isnan(found).any():
                    shares = " | ".join(f"{share:.0%}" for share in found)
                    lines.append(f"| {setting.name} | {method} | {shares} |")
        return lines

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for setting in SETTINGS:
            found = {kind: mean_of(rows, kind, setting=setting.name, method="gibbs") for kind in KINDS}
            if not np.isnan(list(found.values())).any():
                share = float(np.mean(list(found.values())))
                shown = ", ".join(f"{kind} {value:.0%}" for kind, value in found.items())
                text = f"{setting.name}: gibbs covers {AT_LEAST:.0%} to {AT_MOST:.0%}, all kinds together"
                claims.append(Claim(text, self.quick or AT_LEAST <= share <= AT_MOST, shown))
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        names = [setting.name for setting in SETTINGS if any(row["setting"] == setting.name for row in rows)]
        for place, method in enumerate(METHODS):
            found = [np.mean([mean_of(rows, kind, setting=name, method=method) for kind in KINDS]) for name in names]
            axes.bar(np.arange(len(names)) + 0.4 * place, found, 0.38, label=method)
        axes.axhline(LEVEL, color="black", linewidth=0.8)
        axes.set_xticks(np.arange(len(names)) + 0.2, names)
        axes.set_ylabel("share of parameters covered")
        axes.legend()


def _covered(setting: Setting, seed: int, n_draws: int) -> Iterable[Row]:
    """Yield a row for each method: the share of parameters of each kind that its intervals cover."""
    n_states, rng = len(setting.means), np.random.default_rng(seed)
    leave = (1.0 - setting.stay) / (n_states - 1)
    transition = np.full((n_states, n_states), leave) + (setting.stay - leave) * np.eye(n_states)
    initial, means = np.full(n_states, 1.0 / n_states), np.array(setting.means)[:, None]
    states = sample_chain(initial, transition, LENGTH, rng)
    x = means[states] + rng.normal(size=(LENGTH, 1))
    emission = Gaussian.from_parameters(means, np.ones((n_states, 1, 1)))
    truth = HMM.from_parameters(initial, transition, emission)
    model = HMM(n_states, "gaussian", inference=VI(max_iter=2000), init=truth).fit(x)
    for method in METHODS:
        found = model.intervals(x, method=method, level=LEVEL, n_draws=n_draws, random_state=seed)
        covered = {
            "means": _share(found.emission["means"], means),
            "variances": _share(found.emission["covariances"], np.ones((n_states, 1, 1))),
            "transitions": _share(found.transition, transition),
        }
        yield {"setting": setting.name, "method": method, "seed": seed} | covered


def _share(bounds: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of entries of the truth between lower and upper bounds, (2, …)."""
    return float(np.mean((bounds[0] <= truth) & (truth <= bounds[1])))
