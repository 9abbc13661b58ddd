"""Foti et al. (2014), figure 1: the error of the transition matrix against the length of subchains; growing buffers.

Both synthetic sets, 400 observations an update, 100 updates, k-means starts. Beside the paper's noise also one that
makes buffers matter: with covariance 300 · I an observation alone does not tell the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from experiments.experiment import Claim, Experiment, Row, as_published
from subchain import HMM, SVI, VI, Gaussian, GrowBuffer
from subchain.datasets import diagonally_dominant, reversed_cycles

OBSERVATIONS, UPDATES = 400, 100
LENGTHS = (3, 11, 51, 201)
#: An error below this means that all states were found.
FOUND = 0.2


class Set(NamedTuple):
    """A synthetic chain and its name."""

    name: str
    chain: Any


class ReversedCycles(Experiment):
    """Transition errors over lengths, with and without growing buffers, beside batch inference."""

    name = "reversed_cycles"
    title = "Error of the transition matrix against the length of subchains (Foti et al. 2014, figure 1)"

    def __init__(self, quick: bool = False, seeds: int = 10, **settings: Any) -> None:
        super().__init__(quick, max(seeds, 10), **settings)
        if quick:
            self.seeds = 3

    def _sets(self) -> Iterator[Set]:
        yield Set("diagonally dominant", diagonally_dominant(random_state=0))
        yield Set("reversed cycles", reversed_cycles(random_state=0))
        yield Set("reversed cycles, noise 300", reversed_cycles(covariance=300.0, random_state=0))

    def rows(self) -> Iterable[Row]:
        for name, chain in self._sets():
            for seed in range(self.seeds):
                yield self._row(name, chain, "batch", 0, VI(max_iter=200), seed)
                for length in LENGTHS:
                    for boundary in ("stationary", GrowBuffer(1e-6)):
                        inference = SVI(
                            length=length, batch=OBSERVATIONS // length, boundary=boundary, forgetting=0.5,
                            starts="anywhere", max_updates=UPDATES,
                        )  # fmt: skip
                        kind = "no buffer" if boundary == "stationary" else "growing buffer"
                        yield self._row(name, chain, kind, length, inference, seed)

    def _row(self, name: str, chain: Any, boundary: str, length: int, inference: Any, seed: int) -> Row:
        emission = Gaussian(mean_strength=1.0, degrees=10.0)
        model = HMM(8, emission, inference=as_published(inference), init="kmeans", random_state=seed, progress=False)
        model.fit(chain.observations)
        growth = model.trace_.measures.get("growth")
        row = {
            "set": name, "boundary": boundary, "length": length, "seed": seed,
            "error": transition_error(model, chain), "seconds": model.trace_.seconds[-1],
        }  # fmt: skip
        return row if growth is None else row | {"growth": float(np.mean(growth))}

    def claims(self, rows: list[Row]) -> list[Claim]:
        def errors(name: str, boundary: str, length: int) -> list[float]:
            wanted = (name, boundary, length)
            return [row["error"] for row in rows if (row["set"], row["boundary"], row["length"]) == wanted]

        noisy = "reversed cycles, noise 300"
        without, growing = (float(np.median(errors(noisy, kind, 3))) for kind in ("no buffer", "growing buffer"))
        plain = [float(np.median(errors("reversed cycles", "no buffer", length))) for length in LENGTHS]
        short, long = (float(np.median(errors("diagonally dominant", "no buffer", n))) for n in (3, 201))
        growths = [row["growth"] for row in rows if row["set"] == "reversed cycles" and "growth" in row]
        return [
            Claim(
                "with noise, growing buffers leave at most 0.6 of the error of length 3",
                growing <= 0.6 * without,
                f"median {growing:.3f} against {without:.3f}",
                published="a noticeable improvement for short subchains (without this noise)",
            ),
            Claim(
                "diagonally dominant: short subchains are at least as good as long ones",
                short <= long + 0.01,
                f"medians {short:.3f} and {long:.3f}",
                published="short subchains, many of them, do better",
            ),
            Claim(
                "reversed cycles: length 3 fails without a buffer, as published",
                plain[0] > FOUND,
                f"medians over lengths {', '.join(f'{value:.3f}' for value in plain)}",
                published="length 3 does significantly worse than long subchains",
                doubted=True,  # the released code adds a transition from each subchain's last state to its first
            ),
            Claim(
                "buffers grow by less than ten",
                max(growths) < 10.0,
                f"at most {max(growths):.1f} a side",
                published="about 8 observations",
            ),
        ]

    def draw(self, rows: list[Row], axes: Any) -> None:
        for number, name in enumerate(dict.fromkeys(row["set"] for row in rows)):
            color = f"C{number}"
            for boundary, style in (("no buffer", "-"), ("growing buffer", "--")):
                medians = [
                    np.median([r["error"] for r in rows if (r["set"], r["boundary"], r["length"]) == wanted])
                    for wanted in ((name, boundary, length) for length in LENGTHS)
                ]
                axes.plot(LENGTHS, medians, style, color=color, marker="o", label=f"{name}, {boundary}")
            batch = np.median([row["error"] for row in rows if row["set"] == name and row["boundary"] == "batch"])
            axes.axhline(batch, color=color, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("length of subchains (dotted lines: batch)")
        axes.set_ylabel("median error of the transition matrix")
        axes.legend(fontsize=7)


def transition_error(model: HMM, chain: Any) -> float:
    """Distance of a model's transition matrix from the true one, states matched by the positions they share."""
    states = np.asarray(model.predict(chain.observations))
    overlap = np.zeros((8, 8))
    np.add.at(overlap, (states, chain.states), 1.0)
    _, matched = linear_sum_assignment(-overlap.T)
    found = model.transition_[np.ix_(matched, matched)]
    return float(np.linalg.norm(found - chain.transition))
