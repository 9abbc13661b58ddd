"""Gibbs sampling of words: categorical emissions, in compiled sweeps that keep their counts from one to the next.

Counts are whole numbers, so that those that were carried along and those that are counted anew are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory
from subchain.emissions.base import Frozen
from subchain.emissions.categorical import CategoricalParameters, CategoricalSums, DirichletTable, as_symbols
from subchain.inference.run.chains import ChainProblem
from subchain.inference.sampling.joint import empty_rows, log_joint_of_symbols
from subchain.inference.sampling.walkers import Moved, Setting, States, Walker
from subchain.numerics.vectors import WIDTH
from subchain.propagation.collapsed.draw_paths import Symbols, sweep_sequences
from subchain.propagation.collapsed.draw_states import Counts, count_paths, sweep_states
from subchain.propagation.collapsed.rows import count_moves
from subchain.structures.chain.model import HMMPoint

Array = NDArray[np.float64]


def has_words(problem: ChainProblem) -> bool:
    """Whether the observations are symbols whose table is learned as a whole, or fixed."""
    emission, values = problem.prior.emission, problem.structure.data.values
    is_table = type(emission) is DirichletTable
    is_fixed = isinstance(emission, Frozen) and type(emission.parameters) is CategoricalParameters
    return (is_table or is_fixed) and (values.ndim == 1 or values.shape[1] == 1)


def has_plain_rows(problem: ChainProblem) -> bool:
    """Whether a row of the moves is learned as a whole, apart from moves that cannot happen, or fixed as a whole."""
    rows = empty_rows(problem.prior.chain)
    learned = rows.concentration[:-1].any(axis=1)
    return not (rows.fixed[:-1].any() and learned.any())


class Words(Walker):
    """What both samplers of words have in common."""

    def __init__(self, setting: Setting, number: int, states: States) -> None:
        super().__init__(setting, number, states)
        self.symbols = as_symbols(np.asarray(self.data.values)).astype(np.int32)
        emission: Any = self.prior.emission
        self.learns = type(emission) is DirichletTable
        table = emission.concentration if self.learns else emission.parameters.weights
        self.table: Array = np.ascontiguousarray(table)
        self.shared = self.learns and bool((self.table == self.table[:1]).all())

    def begin(self, point: HMMPoint) -> None:
        super().begin(point)
        self.count()

    def restore(self, memory: Memory) -> None:
        super().restore(memory)
        self.count()

    @abstractmethod
    def count(self) -> None:
        """Count everything anew."""

    @abstractmethod
    def counted(self) -> Array:
        """Counts of symbols in their first W rows and K columns."""

    def sums(self) -> Any:
        if not self.learns:
            return super().sums()
        n_symbols, n_states = self.table.shape
        return CategoricalSums(self.counted()[:n_symbols, :n_states].copy())

    def log_joint_of_emissions(self) -> float:
        if not self.learns:
            return super().log_joint_of_emissions()
        return log_joint_of_symbols(cast(DirichletTable, self.prior.emission), self.counted())


class WordStates(Words):
    """One word's state at a time."""

    def count(self) -> None:
        rows = empty_rows(self.prior.chain)
        n_symbols, n_states = self.table.shape
        width = -(-n_states // WIDTH) * WIDTH
        moves, back, symbols = (np.zeros((size + 1, width)) for size in (n_states, n_states, n_symbols))
        back[-1] = symbols[-1] = 1.0
        prior_moves, prior_back = np.zeros_like(moves), np.zeros_like(back)
        prior_moves[:, :n_states] = np.where(rows.concentration > 0.0, rows.concentration, rows.fixed)
        prior_back[:-1, :n_states] = prior_moves[:-1, :n_states].T
        prior_symbols = np.zeros((2 if self.shared else n_symbols + 1, width))
        prior_symbols[:-1, :n_states] = self.table[: len(prior_symbols) - 1]
        gains = np.array([rows.concentration[-1].any(), rows.concentration[:-1].any(), self.learns], dtype=np.float64)
        totals, prior_totals = np.zeros((2, width)), np.ones((2, width))
        prior_totals[0, :n_states] = rows.concentration[:-1].sum(axis=1) if gains[1] else 1.0
        prior_totals[1, :n_states] = self.table.sum(axis=0) if gains[2] else 1.0
        inverse_moves, inverse_symbols = np.ones((2, width)), np.ones((2, width))
        inverse_moves[0], inverse_symbols[0] = 1.0 / prior_totals
        self.counts = Counts(
            moves, back, symbols, prior_moves, prior_back, prior_symbols, totals, prior_totals, inverse_moves,
            inverse_symbols, gains,
        )  # fmt: skip
        count_paths(self.counts, self.states, self.symbols, self.data.offsets)

    def counted(self) -> Array:
        return self.counts.symbols

    def sweep(self, sweep: int, temperature: float) -> Moved:
        return self.sweeps(sweep, np.array([temperature]))

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        changed = sweep_states(
            self.counts, self.states, self.symbols, self.data.offsets, self.setting.choices, 1.0 / temperatures,
            self.key, first,
        )  # fmt: skip
        return Moved(changed / max(len(self.states), 1))


class WordSequences(Words):
    """One sentence at a time."""

    def count(self) -> None:
        self.rows = empty_rows(self.prior.chain)
        count_moves(self.rows, self.states, self.data.offsets, 1.0)
        counts = np.zeros_like(self.table)
        seen = self.symbols >= 0
        if self.learns:
            np.add.at(counts, (self.symbols[seen], self.states[seen]), 1.0)
        concentration = self.table[:1] if self.shared else self.table
        prior_totals = self.table.sum(axis=0) if self.learns else np.ones(self.table.shape[1])
        self.words = Symbols(counts, counts.sum(axis=0), concentration, prior_totals, np.array([float(self.learns)]))

    def counted(self) -> Array:
        return self.words.counts

    def sweep(self, sweep: int, temperature: float) -> Moved:
        return self.sweeps(sweep, np.array([temperature]))

    def sweeps(self, first: int, temperatures: Array) -> Moved:
        changed, accepted = sweep_sequences(
            self.rows, self.words, self.states, self.symbols, self.data.offsets, self.setting.choices,
            1.0 / temperatures, self.key, first,
        )  # fmt: skip
        n_sequences = np.count_nonzero(self.data.lengths)
        return Moved(changed / max(len(self.states), 1), accepted / max(n_sequences, 1))
