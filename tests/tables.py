"""Engine cases from tables: data whose every position has log likelihoods of its own, chosen by the test.

Observation i is the number i, and the family looks its row up; the family's sums are then the marginals themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import naive
import numpy as np
from chains import random_rows
from numpy.typing import NDArray

from subchain.core.records import Sums, states_on
from subchain.data import Evidence, Sequences
from subchain.emissions.base import Likelihood, Table
from subchain.engines import Engine, Part, Surrogate
from subchain.engines.cpu.messages import Messages
from subchain.engines.results import FilteredBlock
from subchain.transitions.layout import Layout, windows
from subchain.transitions.operators import Banded

Array = NDArray[np.float64]


@dataclasses.dataclass
class TableSums(Sums):
    """Marginals of each row, (N, K)."""

    marginals: Array = states_on(1)


@dataclasses.dataclass
class TableLikelihood(Likelihood):
    """Log likelihoods (N, K), looked up by number; −1 is missing."""

    logs: Array

    @property
    def n_states(self) -> int:
        return self.logs.shape[1]

    def log_likelihood(self, values: NDArray[Any]) -> Table:
        return np.where(values[:, None] < 0, 0.0, self.logs[values]).T.copy()

    def zeros(self) -> TableSums:
        return TableSums(np.zeros_like(self.logs))

    def accumulate(self, values: NDArray[Any], marginals: Table, sums: TableSums) -> None:
        np.add.at(sums.marginals, values[values >= 0], marginals.T[values >= 0])


@dataclasses.dataclass
class Case:
    """A model, sequences, and what the judge says about them."""

    logs: Array
    initial: Array
    transition: Array
    lengths: Sequence[int]
    missing: NDArray[np.int64] | None = None
    evidence: Evidence | None = None
    is_banded: bool = False

    @property
    def surrogate(self) -> Surrogate:
        moves = band(self.transition) if self.is_banded else self.transition
        return Surrogate(self.initial, moves, TableLikelihood(self.logs))

    @property
    def data(self) -> Sequences:
        values = np.arange(len(self.logs))
        if self.missing is not None:
            values[self.missing] = -1
        return Sequences(values, np.cumsum([0, *self.lengths]))

    @property
    def part(self) -> Part:
        return Part(self.data, self.evidence)

    @property
    def messages(self) -> Messages:
        return messages(self.surrogate, self.part)

    def chains(self) -> list[tuple[Array, Array, Array]]:
        """The sequences in the form that `naive` takes, without the empty ones."""
        data, logs = self.data, self.logs.copy()
        if self.missing is not None:
            logs[self.missing] = 0.0
        if self.evidence is not None:
            logs += self.evidence.log_weights(np.arange(len(logs)), data.values).T
        return [(part, self.initial, self.transition) for part in data.split(logs) if len(part)]

    def marginals(self) -> list[naive.Marginals]:
        """The judge's marginals about each sequence that is not empty."""
        return [naive.marginals(*chain) for chain in self.chains()]


def band(transition: Array) -> Banded:
    """The entries of a matrix that are not zero, as a band."""
    rows, columns = np.nonzero(transition)
    layout = Layout(*windows(rows, columns, len(transition)))
    return Banded(layout, layout.gather(transition))


def random_case(
    lengths: Sequence[int], n_states: int, transition: Array | None = None, spread: float = 1.0, seed: int = 0
) -> Case:
    """Random likelihoods, raised to the power of `spread`, over a random or a given transition matrix."""
    rng = np.random.default_rng(seed)
    logs = spread * np.log(rng.random((sum(lengths), n_states)))
    moves = random_rows(rng, n_states, n_states)
    return Case(logs, random_rows(rng, n_states), moves if transition is None else transition, lengths)


# ---- answers that a pass writes into arrays --------------------------------------------------------------------------


def messages(surrogate: Surrogate, part: Part) -> Messages:
    """The processor's messages in double precision."""
    return Messages(surrogate, part)


def smooth(engine: Engine, surrogate: Surrogate, part: Part, out: NDArray[Any]) -> Array:
    return engine.smooth(surrogate, part, lambda block: block.write(out)).checked()


def filter(engine: Engine, surrogate: Surrogate, part: Part, out: NDArray[Any]) -> Array:
    return engine.filter(surrogate, part, lambda block: block.write(out)).checked()


def best_states(engine: Engine, surrogate: Surrogate, part: Part, out: NDArray[Any]) -> Array:
    return engine.smooth(surrogate, part, lambda block: block.write_best(out)).checked()


def log_increments(engine: Engine, surrogate: Surrogate, part: Part, out: NDArray[Any]) -> Array:
    def keep(block: FilteredBlock) -> None:
        out[block.positions] = block.increments

    return engine.filter(surrogate, part, keep).checked()


def of_states(engine: Engine, surrogate: Surrogate, part: Part, states: NDArray[Any], out: NDArray[Any]) -> Array:
    return engine.smooth(surrogate, part, lambda block: block.write_of(states, out)).checked()
