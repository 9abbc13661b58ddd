"""Search at a fixed number of states: two states are merged, and the one that becomes free splits a third.

In a poor local optimum two states often share the work of one, while another does the work of two. At a fixed number of
states a merge and a split have to be tried together (Ueda et al. 2000, for mixtures).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from subchain.engines.statistics import HMMStatistics
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.loop import RunState, Step, Trial, Trials
from subchain.inference.run.trace import NEAR
from subchain.inference.search.merging import Merge, pair_merges
from subchain.inference.search.search import MOST, OneSearch, StateSearch, is_milestone, while_possible
from subchain.inference.search.splitting import Split, Splitter, has_free_state
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.structure import Chains

#: A search may visit as many positions as this share of what the run has visited before (the second number in
#: stochastic runs, which search again and again), or as the third number if there are at most `FEW` states: the cost of
#: a position grows with the square of their number.
SHARE, STOCHASTIC_SHARE, CHEAP, FEW = 0.5, 0.15, 2e6, 10
#: Pairs of states that are merged, and states that are split for each of them.
MERGES, SPLITS = 3, 4
#: Loss of fit of an excerpt (nats an observation) with which a proposal is given up before any pass over the data.
SLACK = 0.02
#: What an exchange must add to the objective (nats); as many states as before need no more.
LEAST_GAIN = 0.05
#: Further attempts that a proposal is given as long as it may come to exceed the objective.
ATTEMPTS = 5
#: How the trace's account of a search begins; it also tells a resumed run that there was one.
NOTE = "search after iteration "


class ExchangeSearch(StateSearch):
    """Tries other states during a run, as many as before.

    Parameters
    ----------
    chains : the data
    algorithm : whose weights restricted iterations use
    proper : a prior with a density, for proposals: that of the run may be flat
    """

    round, hurries = 100, False

    def __init__(self, chains: Chains, algorithm: Algorithm, proper: HMMPosterior) -> None:
        super().__init__(chains, algorithm)
        self.proper = proper

    def is_due(self, trials: Trials, state: RunState, step: Step) -> bool:
        """Whether the run has settled, or begins to for the first time; stochastic runs never settle: now and then."""
        if not trials.advances:
            return is_milestone(state.iteration + 1, trials.every)
        if trials.settled_at is not None:
            return True
        return trials.begins_to_settle and not any(event.message.startswith(NOTE) for event in state.trace.events)

    def begin(self, trials: Trials, seed: list[int]) -> OneSearch:
        return OneExchange(self, trials, seed)


class OneExchange(OneSearch):
    """One search: exchanges that raise the objective are accepted, one after the other."""

    search: ExchangeSearch

    def improve(self, here: Trial) -> Trial:
        rng, tried = np.random.default_rng(self.seed), 0
        cheap = CHEAP * min(FEW / len(here.statistics.initial), 1.0) ** 2
        share = SHARE if self.trials.advances else STOCHASTIC_SHARE
        self._left = max(share * self.trials.visited, cheap)
        found: Trial | None = here
        while found is not None and len(self.events) < MOST:
            here, found = found, None
            for merge, split in while_possible(self._proposals(here, rng)):
                tried += 1
                found = self._pursue(here, split)
                if found is not None:
                    parted = f"state {split.state} gave part of its work to state {split.free}"
                    found = self._accept(parted if merge is None else f"{merge}, and {parted}", here, found)
                    self.folded += [] if merge is None else [(merge.into, gone) for gone in merge.gone]
                    break
        outcome = f"{tried} merges with splits were tried, {len(self.events)} raised the objective"
        self.note = f"{NOTE}{self.seed[-1]}: {outcome}"
        return here if found is None else found

    def _proposals(self, here: Trial, rng: np.random.Generator) -> Iterator[tuple[Merge | None, Split]]:
        """Exchanges after which an excerpt of the data is explained nearly as well as before, or better.

        There are none once the search has visited as many positions as it may.
        """
        search, statistics = self.search, here.statistics
        is_free = has_free_state(statistics)
        for merge in [None] if is_free else pair_merges(search.proper, statistics, MERGES):
            if self._left < 0.0:
                return
            folded = statistics if merge is None else merge.fold(statistics)
            splitter = Splitter(search.chains, search.algorithm, search.proper, folded, rng)
            least = splitter.log_normalizer(statistics) - SLACK * statistics.n_observations
            seeds = splitter.by_misfit()
            others = [seed for seed in seeds if merge is None or seed.state != merge.into]
            for seed in (others or seeds)[:SPLITS]:
                if self._left < 0.0:
                    return
                self._left -= splitter.visits
                split = splitter.split(seed)
                if split.log_normalizer > least:
                    yield merge, split

    def _attempt(self, prior: HMMPosterior, statistics: HMMStatistics) -> Trial:
        self._left -= self.trials.attempt_visits
        return super()._attempt(prior, statistics)

    def _pursue(self, here: Trial, split: Split) -> Trial | None:
        """Return where a proposal leads if its objective comes to exceed the present one.

        In a run that has not settled it must exceed what as many iterations without it may add.
        """
        goes_on = self.trials.advances and self.trials.settled_at is None
        least = max(here.objective, self._bar) + LEAST_GAIN
        least += 2 * ATTEMPTS * NEAR * abs(here.objective) if goes_on else 0.0
        there = self._attempt(here.prior, split.statistics)
        for left in reversed(range(ATTEMPTS)):
            before = there.objective
            if before > least or not math.isfinite(before) or not self.trials.advances:
                break
            there = self._attempt(there.prior, there.statistics)
            if there.objective + left * (there.objective - before) < least:
                break
        return there if there.objective > least else None
