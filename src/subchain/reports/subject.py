"""What a report is about: the model, the data as the model reads them, the states that are shown, what is found."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences, as_sequences_like
from subchain.data.sequences import require_observations
from subchain.errors import InputError
from subchain.models.hmm import HMM
from subchain.reports.kernels import HIDDEN
from subchain.reports.tracks import plan
from subchain.reports.walk import Picture, Walk
from subchain.tasks.intervals import Intervals, intervals
from subchain.tasks.overview import block_order, flow, used_states
from subchain.tasks.profiles import Numbers, Profile, Symbols, profile

Array = NDArray[np.float64]

#: States that a page shows at most: the most frequent ones, each with a byte of its own.
MOST_STATES = 200
#: Columns that are drawn along the data: of numbers as lines, of zeros and ones as strips.
MOST_LINES, MOST_STRIPS = 4, 16
#: Positions of a block, at most; the number of states is what blocks are wide.
BLOCK = 1 << 16
#: Symbols of a state that are shown: where there are few states, and where there are more than so many.
TOP_SYMBOLS, FEWER_SYMBOLS, MANY_STATES = 8, 4, 100
#: Seed of the draws that intervals are made from: the same model gives the same page.
SEED = 0


@dataclasses.dataclass
class Subject:
    """A model, data, and what the model finds in them.

    Attributes
    ----------
    model : HMM
    data : the data, with the codes and columns that the model knows
    knowledge : what is known of the states, by the names that `predict` has for it
    """

    model: HMM
    data: Sequences
    knowledge: dict[str, Any]

    @classmethod
    def read(cls, model: Any, x: Any, knowledge: dict[str, Any]) -> Subject:
        """Check that this is a fitted model and that the data suit it."""
        if not isinstance(model, HMM):
            raise InputError(f"a report needs a fitted HMM, not {type(model).__name__}.")
        model._point()
        data = as_sequences_like(x, model.vocabularies_, model.columns_, model.grouped_by_)
        return cls(model, require_observations(data), knowledge)

    @cached_property
    def trained_visits(self) -> Array:
        """Expected number of training positions in each state, (K,)."""
        statistics = self.model.statistics_
        return np.asarray(statistics.initial + statistics.pairs.sum(axis=0))

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """Numbers of the states that are shown, rising: those in use, the most frequent if these are too many."""
        used = used_states(self.trained_visits)
        by_visits = used[np.argsort(-self.trained_visits[used], kind="stable")]
        return np.sort(by_visits[:MOST_STATES])

    @cached_property
    def profile(self) -> Profile:
        """What the states emit."""
        vocabularies = self.model.vocabularies_ or self.data.vocabularies
        columns = self.model.columns_ or self.data.columns
        return profile(self.model.emission_, self.model.family_, vocabularies, columns)

    @cached_property
    def drawn(self) -> list[Numbers]:
        """Columns of numbers that are drawn along the data."""
        numbers = [part for part in self.profile if isinstance(part, Numbers) and part.column < self.data.n_features]
        lines = [part for part in numbers if not part.is_chance]
        return lines[:MOST_LINES] + [part for part in numbers if part.is_chance][:MOST_STRIPS]

    @cached_property
    def symbols(self) -> Symbols | None:
        """The column of symbols whose values are shown position by position."""
        return next((part for part in self.profile if isinstance(part, Symbols)), None)

    @cached_property
    def picture(self) -> Picture:
        """What one walk over the data finds."""
        slot = np.full(self.model.n_states_, HIDDEN, dtype=np.uint8)
        slot[self.shown] = np.arange(len(self.shown))
        tracks = plan(self.data, len(self.shown) + 1 + 3 * len(self.drawn))
        blocks = self.model.predict_proba_blocks(self.data, BLOCK, **self.knowledge)
        return Walk(self.data, tracks, slot, self.drawn).along(blocks)

    @cached_property
    def occupancy(self) -> Array:
        """Share of the data's positions in each shown state, (S,)."""
        return np.asarray(self.picture.whole.shares.sum(axis=0) / self.data.n_observations)

    @cached_property
    def transition(self) -> Array:
        """Moves between shown states, (S, S); rows lack what goes to states that are not shown."""
        return self.model.transition_[np.ix_(self.shown, self.shown)]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The shown states in an order in which blocks show, (S,)."""
        return block_order(flow(self.transition, self.occupancy))

    @property
    def n_symbols(self) -> int:
        """How many symbols of a state are shown."""
        return TOP_SYMBOLS if len(self.shown) <= MANY_STATES else FEWER_SYMBOLS

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each shown state the entries of its expectation that its card shows, (S, n): top symbols, all numbers."""
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
        """Credible intervals of all moves between shown states and of what the cards show."""
        everywhere = np.zeros((self.model.n_states_, self.places.shape[1]), dtype=np.int64)
        everywhere[self.shown] = self.places
        found = intervals(self.model.posterior_, everywhere, self.model.samples_, np.random.default_rng(SEED))
        if found is None:
            return None
        moves, emission = found.transition, found.emission
        return dataclasses.replace(
            found,
            transition=None if moves is None else moves[:, self.shown[:, None], self.shown],
            emission=None if emission is None else emission[:, self.shown],
        )
