"""Subject of a report: the model, the data in the model's codes, the shown states, and results computed on demand."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.checks.dwelling import DwellTimes, compared
from subchain.checks.predictive import PredictiveCheck, check
from subchain.checks.reading import emitted_columns
from subchain.checks.simulation import SIMULATIONS, Simulation, excerpt_size, pieces
from subchain.data import Sequences, as_sequences_like
from subchain.data.sequences import require_observations
from subchain.errors import InputError
from subchain.models.hmm import HMM
from subchain.reports.kernels import HIDDEN
from subchain.reports.scan import DataSummary, Scan
from subchain.reports.tracks import plan
from subchain.tasks.intervals import Intervals, intervals
from subchain.tasks.overview import block_order, flow, used_states
from subchain.tasks.profiles import Numbers, Profile, Symbols

Array = NDArray[np.float64]

#: Maximum number of states on a page, the most frequent ones; a state is encoded in one byte.
MOST_STATES = 200
#: Maximum numbers of columns drawn along the data: numbers as lines, zeros and ones as strips.
MOST_LINES, MOST_STRIPS = 4, 16
#: Maximum number of positions per block of marginals.
BLOCK = 1 << 16
#: Number of symbols shown per state, up to MANY_STATES states and beyond.
TOP_SYMBOLS, FEWER_SYMBOLS, MANY_STATES = 8, 4, 100
#: Seed of the draws for credible intervals, so that the same model gives the same page.
SEED = 0


@dataclasses.dataclass
class Subject:
    """Model and data of a report, with results that are computed when needed.

    Attributes
    ----------
    model : HMM
    data : the data, in the codes and columns of the model
    evidence : the arguments `allowed`, `states` and `evidence` of `HMM.predict`
    """

    model: HMM
    data: Sequences
    evidence: dict[str, Any]

    @classmethod
    def read(cls, model: Any, x: Any, evidence: dict[str, Any]) -> Subject:
        """Return the subject, after a check that the model is fitted and the data fit it."""
        if not isinstance(model, HMM):
            raise InputError(f"a report needs a fitted HMM, not {type(model).__name__}.")
        model._point()
        data = as_sequences_like(x, model.vocabularies_, model.columns_, model.grouped_by_)
        return cls(model, require_observations(data), evidence)

    @cached_property
    def trained_visits(self) -> Array:
        """Expected number of training positions in each state, (K,)."""
        statistics = self.model.statistics_
        return statistics.visits

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """Numbers of the S shown states, increasing: the states in use, at most the MOST_STATES most frequent ones."""
        used = used_states(self.trained_visits)
        by_visits = used[np.argsort(-self.trained_visits[used], kind="stable")]
        return np.sort(by_visits[:MOST_STATES])

    @cached_property
    def profile(self) -> Profile:
        """Emissions of the states, column by column."""
        return emitted_columns(self.model, self.data)

    @cached_property
    def drawn(self) -> list[Numbers]:
        """Columns of numbers that are drawn along the data."""
        numbers = [part for part in self.profile if isinstance(part, Numbers) and part.column < self.data.n_features]
        lines = [part for part in numbers if not part.is_chance]
        return lines[:MOST_LINES] + [part for part in numbers if part.is_chance][:MOST_STRIPS]

    @cached_property
    def symbols(self) -> Symbols | None:
        """The first column of symbols, whose values are shown at single positions; None if there is none."""
        return next((part for part in self.profile if isinstance(part, Symbols)), None)

    @cached_property
    def summary(self) -> DataSummary:
        """Results of one scan over the data."""
        slot = np.full(self.model.n_states_, HIDDEN, dtype=np.uint8)
        slot[self.shown] = np.arange(len(self.shown))
        tracks = plan(self.data, len(self.shown) + 1 + 3 * len(self.drawn))
        blocks = self.model.predict_proba_blocks(self.data, BLOCK, **self.evidence)
        return Scan(self.data, tracks, slot, self.drawn, self.pieces).run(blocks)

    @cached_property
    def pieces(self) -> NDArray[np.int64]:
        """First and last + 1 flat positions of the pieces of the data that simulations are compared with, (P, 2)."""
        return pieces(self.data, excerpt_size(self.model.n_states_))

    @cached_property
    def simulation(self) -> Simulation:
        """Source of data that are simulated from the model, of the shape of an excerpt."""
        return Simulation.of(self.model, self.data, self.summary.starts, self.pieces, self.profile)

    @cached_property
    def dwell_times(self) -> list[DwellTimes]:
        """Dwell times of the shown states, compared with simulations."""
        return compared(self.summary.visits, self.shown, self.simulation, SIMULATIONS)

    @cached_property
    def check(self) -> PredictiveCheck:
        """Statistics of the data, compared with simulations."""
        return check(self.simulation, SIMULATIONS)

    @cached_property
    def changes(self) -> NDArray[np.int64]:
        """Numbers of changes between the most probable states of neighbouring positions, (S, S), row to column."""
        n_shown = len(self.shown)
        return self.summary.visits.changes[:n_shown, :n_shown]

    @property
    def is_training(self) -> bool | None:
        """Whether these are the training data, judged by their number of positions; None if nothing was fitted."""
        if not len(self.model.trace_) and not self.model.n_batches_:
            return None
        return round(self.model.statistics_.n_observations) == self.data.n_observations

    @property
    def names(self) -> list[str]:
        """Names of the shown states."""
        return [self.model.state_names_[state] for state in self.shown]

    @cached_property
    def occupancy(self) -> Array:
        """Fraction of the data's positions in each shown state, (S,)."""
        return np.asarray(self.summary.whole.shares.sum(axis=0) / self.data.n_observations)

    @cached_property
    def transition(self) -> Array:
        """Transition probabilities between shown states, (S, S); rows do not sum to 1 if states are hidden."""
        return self.model.transition_[np.ix_(self.shown, self.shown)]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Permutation of the shown states that makes block structure visible, (S,)."""
        return block_order(flow(self.transition, self.occupancy))

    @property
    def n_symbols(self) -> int:
        """Number of symbols shown per state."""
        return TOP_SYMBOLS if len(self.shown) <= MANY_STATES else FEWER_SYMBOLS

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Indices of the expected emissions on each state's card, (S, n): its top symbols and all numbers."""
        found = []
        for state in self.shown:
            entries = [
                part.place.start + part.top(state, self.n_symbols) if isinstance(part, Symbols) else [part.place.start]
                for part in self.profile
            ]
            found.append(np.concatenate(entries))
        return np.array(found, dtype=np.int64)

    @cached_property
    def intervals(self) -> Intervals | None:
        """Credible intervals of the transitions between shown states and of the emissions on the cards."""
        everywhere = np.zeros((self.model.n_states_, self.places.shape[1]), dtype=np.int64)
        everywhere[self.shown] = self.places
        found = intervals(self.model.posterior_, everywhere, self.model.samples_, np.random.default_rng(SEED))
        if found is None:
            return None
        transition, emission = found.transition, found.emission
        return dataclasses.replace(
            found,
            transition=None if transition is None else transition[:, self.shown[:, None], self.shown],
            emission=None if emission is None else emission[:, self.shown],
        )
