"""Wang (2016), figures 5.2 and 5.3: how surely a transition happens in simulated marginals, and how well that is
approximated.

Marginals over chains of 100 positions are drawn at random, q(z_t | z_{t−1}) in proportion to uniform numbers. The error
is the mean difference of q(C > 0) from the exact value over all transitions, (5.68), as chains are added, until no
transition is in doubt. Then: how many positions it takes until all transitions have happened almost surely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Claim, Experiment, Row, mean_of
from subchain.propagation.occurrence.methods import exact, mean_field, pairs, sampling

Array = NDArray[np.float64]

CHAIN = 100
SAMPLES = (100, 1_000, 10_000)
#: A transition happens almost surely if its −log q(C = 0) is above the first; beyond the second no error can be seen.
ALMOST_SURE, SETTLED = -np.log(1e-3), 25.0
#: States up to which the exact value is computed to find out how many positions it takes.
FEW = 40


class OccurrenceSimulated(Experiment):
    """Errors over total lengths, and lengths over numbers of states."""

    name = "occurrence_simulated"
    title = "Whether a transition happens, in simulated chains (Wang 2016, figures 5.2 and 5.3)"

    @property
    def _states(self) -> tuple[int, ...]:
        return (10, 20) if self.quick else (10, 50)

    def rows(self) -> Iterable[Row]:
        samples = SAMPLES[:2] if self.quick else SAMPLES
        for n_states in self._states:
            for seed in range(self.seeds):
                yield from errors_by_length(n_states, samples, 10_000 if self.quick else 1_000_000, seed)
        for n_states in (10, 20, 40) if self.quick else (10, 20, 40, 80, 160):
            for seed in range(self.seeds):
                method = "exact" if n_states <= FEW else "pairs"
                length = length_until_sure(n_states, np.random.default_rng([seed, n_states]))
                yield {"part": "sure", "states": n_states, "seed": seed, "method": method, "length": length}

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for n_states in self._states:
            worst = {name: max(self._course(rows, n_states, name).values()) for name in self._names(rows)}
            title = f"K = {n_states}: the largest error of pairs"
            told = ", ".join(f"{name} {error:.4f}" for name, error in worst.items())
            claims.append(Claim(f"{title} is below 0.01", worst["pairs"] < 0.01, told))
            for number in (100, 10_000):
                other = f"sampling {number}"
                if other in worst:
                    # of single chains, ten thousand draws know more than independent pairs
                    doubted = number == 10_000
                    holds = worst["pairs"] < worst[other]
                    text = f"{title} is below that of {number} samples"
                    claims.append(Claim(text, holds, told, doubted, "better than 10,000 samples"))
        few, many = (
            {name: max(self._course(rows, n, name).values()) for name in ("pairs", "mean_field")} for n in self._states
        )
        claims.append(
            Claim(
                "errors of pairs and mean field fall with the number of states",
                all(many[name] < few[name] for name in few),
                ", ".join(f"{name} {few[name]:.4f}, {many[name]:.4f}" for name in few),
                published="they fall as K grows",
            )
        )
        states, lengths = self._lengths(rows)
        slope = float(np.polyfit(np.log(states), np.log(lengths), 1)[0])
        claims.append(
            Claim(
                "the length that makes all transitions sure grows about as the number of transitions",
                1.8 < slope < 2.6,
                f"as K to the power {slope:.2f}: " + ", ".join(f"{length:.0f}" for length in lengths),
            )
        )
        return claims

    @staticmethod
    def _names(rows: list[Row]) -> list[str]:
        return list(dict.fromkeys(row["method"] for row in rows if row["part"] == "error"))

    @staticmethod
    def _course(rows: list[Row], n_states: int, method: str) -> dict[int, float]:
        """Mean error at each length."""
        where = {"part": "error", "states": n_states, "method": method}
        lengths = sorted({row["length"] for row in rows if row["part"] == "error" and row["states"] == n_states})
        return {length: mean_of(rows, "error", length=length, **where) for length in lengths}

    @staticmethod
    def _lengths(rows: list[Row]) -> tuple[list[int], list[float]]:
        states = sorted({row["states"] for row in rows if row["part"] == "sure"})
        return states, [mean_of(rows, "length", part="sure", states=n) for n in states]

    def draw(self, rows: list[Row], axes: Any) -> None:
        for n_states, style in zip(self._states, ("-", "--"), strict=True):
            for number, name in enumerate(self._names(rows)):
                course = self._course(rows, n_states, name)
                axes.plot(
                    list(course), list(course.values()), style, marker=".", color=f"C{number}",
                    label=f"{name}, K = {n_states}",
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=1e-9)
        axes.set_xlabel("positions")
        axes.set_ylabel("mean error of q(C > 0)")
        axes.legend(fontsize=6, loc="lower left")
        inset = axes.inset_axes((0.72, 0.62, 0.26, 0.34))
        inset.loglog(*self._lengths(rows), "k.-")
        inset.set_xlabel("K", fontsize=6)
        inset.set_ylabel("positions until sure", fontsize=6)
        inset.tick_params(which="both", labelsize=5)


def simulated_chain(n_states: int, length: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A random first marginal (K,) and random conditional marginals (T − 1, K, K)."""
    first, transitions = rng.random(n_states), rng.random((length - 1, n_states, n_states))
    return first / first.sum(), transitions / transitions.sum(axis=2, keepdims=True)


def errors_by_length(n_states: int, samples: Iterable[int], longest: int, seed: int) -> Iterator[Row]:
    """Errors of all methods at 10, 100, … positions; from 100 on in chains of 100, each length containing the last."""
    rng, drawing = np.random.default_rng([seed, n_states]), np.random.default_rng([seed, n_states, 1])
    truth, found, total = np.zeros((n_states, n_states)), dict[str, Array](), 10
    while total <= longest:
        if total <= CHAIN:
            truth, found, seen = np.zeros((n_states, n_states)), {}, 0
        while seen < total:
            chain = simulated_chain(n_states, min(total, CHAIN), rng)
            truth = truth + exact(*chain)
            answers = {"pairs": pairs(*chain), "mean_field": mean_field(*chain)} | {
                f"sampling {number}": sampling(*chain, number, drawing) for number in samples
            }
            found = {name: found.get(name, 0.0) + answer for name, answer in answers.items()}
            seen += min(total, CHAIN)
        for name, absent in found.items():
            error = np.abs(np.exp(-truth) - np.exp(-absent)).mean()
            yield {
                "part": "error", "states": n_states, "seed": seed, "method": name, "length": total,
                "error": float(error),
            }  # fmt: skip
        if truth.min() > SETTLED:
            return
        total *= 10


def length_until_sure(n_states: int, rng: np.random.Generator) -> int:
    """Positions, in chains of 100, after which all transitions have happened almost surely."""
    method = exact if n_states <= FEW else pairs
    absent, length = np.zeros((n_states, n_states)), 0
    while absent.min() <= ALMOST_SURE:
        absent += method(*simulated_chain(n_states, CHAIN, rng))
        length += CHAIN
    return length
