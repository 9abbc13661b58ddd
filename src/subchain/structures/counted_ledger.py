"""What ledgers share whose clusters are visited by compiled code: counts and shares are plain arrays with names.

A subclass says how arrays of counts are made from statistics and back, and calls its kernels.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Memory, Point, Posterior
from subchain.core.ranges import FINITE, SUM_TOLERANCE, Range, stored
from subchain.core.records import Record
from subchain.core.statistics import Statistics
from subchain.errors import FileFormatError, InputError
from subchain.structures.passes import Passes

Index = NDArray[np.int64]
Arrays = dict[str, NDArray[np.floating]]


class CountedLedger(Passes, ABC):
    """A ledger over arrays; see `base.Ledger`.

    Parameters
    ----------
    prior : the distribution before the data
    shares : by name, what clusters have put into the counts
    holds : by name, the range of each array of shares
    hidden : what the clusters hide, for messages
    size, n_marginals : as in `base.Ledger`
    at_once : clusters between two checks for an interruption

    Attributes
    ----------
    counts : by name, the counts with those of the prior
    """

    is_compiled, needs_others = True, True
    log_scale = 0.0

    def __init__(
        self, prior: Posterior, shares: Arrays, holds: dict[str, Range], *,
        size: int, n_marginals: int, hidden: str, at_once: int,
    ) -> None:  # fmt: skip
        self.current_prior = prior
        self.shares = shares
        self.holds = holds
        super().__init__(size)
        self.n_marginals = n_marginals
        self.hidden, self.at_once = hidden, at_once
        self.counts: Arrays

    # ---- what subclasses say -----------------------------------------------------------------------------------------

    @abstractmethod
    def counted(self, statistics: Statistics | None) -> Arrays:
        """Return the counts of the prior and of statistics."""

    @abstractmethod
    def add_up(self) -> None:
        """Sum all shares anew."""

    @abstractmethod
    def visit(self, clusters: Index, *, excludes: bool, puts_back: bool) -> None:
        """Update clusters, see `base.Ledger.visit`; add log normalisers, and entropies if wanted, to `since`."""

    @property
    @abstractmethod
    def statistics(self) -> Statistics:
        """The counts without those of the prior."""

    # ---- a run -------------------------------------------------------------------------------------------------------

    def adopt(self, prior: Posterior) -> None:
        self.current_prior = prior

    def begin(self, statistics: Statistics) -> None:
        self.counts = self.counted(statistics)
        self.visit(np.arange(self.size), excludes=False, puts_back=False)
        self.since = np.zeros(2)
        self.add_up()

    def draw(self, kind: str, seed: int) -> None:
        raise InputError(f"init={kind!r} draws hidden states of a chain; {self.hidden} have none.")

    def visit_next(self, order: Index, *, excludes: bool, puts_back: bool) -> None:
        some = order[self.cursor : self.cursor + self.at_once]
        self.visit(some, excludes=excludes, puts_back=puts_back)
        self.cursor += len(some)

    @contextlib.contextmanager
    def writing(self, in_place: bool) -> Iterator[None]:
        before = {} if in_place else {name: array.copy() for name, array in self.shares.items()}
        try:
            yield
        except KeyboardInterrupt:
            self.shares |= before
            raise

    def trying(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def update_hyperparameters(self) -> None:
        """Do nothing: no hyperparameters are learned."""

    @abstractmethod
    def expected_log_joint(self) -> float | None:
        """See `base.Ledger.expected_log_joint`."""

    def check_sum(self, statistics: Statistics) -> None:
        kept = self.counts
        self.add_up()
        mine, self.counts = self.statistics, kept
        if not all(
            statistics.part(name).is_close(mine.part(name), SUM_TOLERANCE) for name in self.current_prior.parts()
        ):
            raise FileFormatError("the statistics are not the sum of the shares of all clusters")

    # ---- results -----------------------------------------------------------------------------------------------------

    def marginals(self) -> None:
        """Return None: what is hidden is in `shares`."""

    @property
    def checked(self) -> list[Record]:
        return [self.statistics]

    @property
    def reported(self) -> Statistics:
        return self.statistics

    @property
    def point(self) -> Point:
        return self.current_prior.update(self.statistics).mean()

    @property
    def prior(self) -> Posterior | None:
        return None

    @property
    def memory(self) -> Memory:
        """Shares, and counts, which have a rounding of their own."""
        return {
            **{f"shares.{name}": array.copy() for name, array in self.shares.items()},
            **{f"counts.{name}": array.copy() for name, array in self.counts.items()},
            **self.pass_memory(),
        }

    def restore(self, memory: Memory, statistics: Statistics) -> None:
        self.restore_passes(memory)
        for name, array in self.shares.items():
            array[:] = stored(memory, f"shares.{name}", self.holds[name], array.shape)
        self.counts = self.counted(statistics)
        for name, array in self.counts.items():
            array[:] = stored(memory, f"counts.{name}", FINITE, array.shape)
