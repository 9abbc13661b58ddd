"""What is trained: six problems of known size, each with data and one start that all contenders share.

A case is a size; a problem is the arrays that were drawn for it. Starts lie between the truth and a guess, so that no
package is stopped by an impossible start, and none is at its goal.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from subchain.datasets.chains import CategoricalChain, GaussianChain

Array = NDArray[np.float64]
SEED = 20_240_607


@dataclasses.dataclass(frozen=True)
class Case:
    """A size of problem; `width` is the number of symbols (categorical) or of columns (gaussian)."""

    name: str
    family: str
    n_states: int
    width: int
    n_sequences: int
    length: int

    @property
    def n_observations(self) -> int:
        return self.n_sequences * self.length

    @property
    def title(self) -> str:
        emission = f"categorical, W = {self.width:,}" if self.family == "categorical" else self._gaussian()
        chains = (
            f"one chain of {self.length:,}"
            if self.n_sequences == 1
            else f"{self.n_sequences:,} sequences of {self.length:,}"
        )
        return f"({self.name}) {emission}, K = {self.n_states}, {chains}"

    def _gaussian(self) -> str:
        return "Gaussian, scalars" if self.width == 1 else f"Gaussian, full covariance, D = {self.width}"

    def smaller(self, divisor: int) -> Case:
        """The same case on fewer sequences, or on a shorter chain if there is only one."""
        if self.n_sequences > 1:
            return dataclasses.replace(self, n_sequences=max(self.n_sequences // divisor, 1))
        return dataclasses.replace(self, length=max(self.length // divisor, 2))

    def of_size(self, n_observations: int) -> Case:
        """The same case with about so many observations."""
        if self.n_sequences > 1:
            return dataclasses.replace(self, n_sequences=max(n_observations // self.length, 1))
        return dataclasses.replace(self, length=max(n_observations, 2))

    def multiply_adds(self) -> int:
        """Multiply-adds that one observation needs in one iteration, the fewest that are known.

        Forward messages, backward messages and pair sums take K² each: the transition matrix is dense. On top comes
        what the family needs to weigh an observation, and to add it to the statistics.
        """
        return 3 * self.n_states**2 + self._likelihood() + self._statistics()

    def _likelihood(self) -> int:
        if self.family == "categorical":
            return self.n_states  # a row of the table, times the messages
        triangle = self.width * (self.width + 1) // 2
        return self.n_states * (triangle + self.width)  # Cholesky factor times the residual, then its square

    def _statistics(self) -> int:
        if self.family == "categorical":
            return self.n_states  # beliefs added to a row of the table
        triangle = self.width * (self.width + 1) // 2
        return self.n_states * (triangle + self.width + 1)  # second moments (symmetric), first moments, visits


CASES = {
    case.name: case
    for case in (
        Case("a", "categorical", n_states=12, width=10_000, n_sequences=1, length=1_000_000),
        Case("b", "categorical", n_states=12, width=10_000, n_sequences=50_000, length=20),
        Case("c", "gaussian", n_states=25, width=12, n_sequences=1, length=1_000_000),
        Case("d", "gaussian", n_states=8, width=2, n_sequences=1, length=3_000_000),
        Case("e", "categorical", n_states=500, width=256, n_sequences=5_000, length=50),
        Case("f", "gaussian", n_states=3, width=1, n_sequences=100, length=200),
    )
}


@dataclasses.dataclass(frozen=True)
class Problem:
    """Data and start of one case.

    Attributes
    ----------
    values : (N,) symbols, or (N, D) real numbers
    n_sequences : all sequences have the same length
    initial, transition : (K,), (K, K)
    emission : "probabilities" (K, W), or "means" (K, D) and "covariances" (K, D, D)
    """

    family: str
    values: NDArray[Any]
    n_sequences: int
    initial: Array
    transition: Array
    emission: dict[str, Array]

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def n_observations(self) -> int:
        return len(self.values)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.full(self.n_sequences, self.n_observations // self.n_sequences, dtype=np.int64)

    @property
    def batch(self) -> NDArray[Any]:
        """Values by sequence, position and column."""
        columns = self.values.reshape(self.n_observations, -1)
        return columns.reshape(self.n_sequences, -1, columns.shape[1])

    def part(self, share: float) -> Problem:
        """The first sequences, or the beginning of the only one; the values are a copy, the rest can be forgotten."""
        if self.n_sequences > 1:
            n_sequences = max(round(self.n_sequences * share), 1)
            n = n_sequences * (self.n_observations // self.n_sequences)
            return dataclasses.replace(self, values=self.values[:n].copy(), n_sequences=n_sequences)
        return dataclasses.replace(self, values=self.values[: math.ceil(self.n_observations * share)].copy())

    def save(self, path: Path) -> None:
        arrays: dict[str, Any] = {f"emission_{name}": table for name, table in self.emission.items()}
        for field in ("family", "values", "n_sequences", "initial", "transition"):
            arrays[field] = getattr(self, field)
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> Problem:
        with np.load(path) as file:
            emission = {key.removeprefix("emission_"): file[key] for key in file.files if key.startswith("emission_")}
            return cls(
                str(file["family"]),
                file["values"],
                int(file["n_sequences"]),
                file["initial"],
                file["transition"],
                emission,
            )


def draw(case: Case) -> Problem:
    """Draw the data of a case, and its start."""
    rng = np.random.default_rng(SEED)
    if case.family == "categorical":
        return _draw_categorical(case, rng)
    return _draw_gaussian(case, rng)


def _draw_categorical(case: Case, rng: np.random.Generator) -> Problem:
    from subchain.datasets import categorical_chain

    lengths = [case.length] * case.n_sequences
    chain = categorical_chain(
        lengths=lengths, n_states=case.n_states, n_symbols=case.width, stickiness=0.5, random_state=SEED
    )
    guess = rng.dirichlet(np.ones(case.width), case.n_states)
    return _problem(case, chain, rng, {"probabilities": 0.5 * chain.probabilities + 0.5 * guess})


def _draw_gaussian(case: Case, rng: np.random.Generator) -> Problem:
    from subchain.datasets import gaussian_chain

    lengths = [case.length] * case.n_sequences
    chain = gaussian_chain(
        lengths=lengths, n_states=case.n_states, n_features=case.width, stickiness=0.9, random_state=SEED
    )
    spread = np.sqrt(np.diagonal(chain.covariances, axis1=1, axis2=2))
    means = chain.means + 0.5 * spread * rng.standard_normal(chain.means.shape)
    return _problem(case, chain, rng, {"means": means, "covariances": 2.0 * chain.covariances})


def _problem(
    case: Case, chain: CategoricalChain | GaussianChain, rng: np.random.Generator, emission: dict[str, Array]
) -> Problem:
    n_states = case.n_states
    guess = rng.dirichlet(np.ones(n_states), n_states)
    return Problem(
        case.family,
        np.ascontiguousarray(chain.observations.values),
        case.n_sequences,
        np.full(n_states, 1.0 / n_states),
        0.5 * chain.transition + 0.5 * guess,
        emission,
    )
