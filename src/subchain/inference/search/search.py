"""Search over the number of states: merges and splits that raise the objective, tried now and then during a run.

Beside them, transitions that happen nowhere any more are given another chance.

A proposal is a set of statistics; a stepper runs a few passes from there, and what they lead to is kept if the
objective is higher than what as many passes without the proposal lead to. So every proposal that helps is accepted with
the full posterior over chains, whatever its structure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

import numpy as np

from subchain.core.hyperparameters import states_differ
from subchain.engines.statistics import HMMStatistics
from subchain.errors import ImpossibleSequenceError
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.run.loop import RunState, Step, Trial, Trials
from subchain.inference.search.merging import merges
from subchain.inference.search.splitting import Split, Splitter, has_free_state
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.structure import Chains
from subchain.transitions.base import ChainSums
from subchain.transitions.hdp.hierarchy import hierarchy_of

T = TypeVar("T")

#: Merges that fail before one gives up, splits that are tried, also before a run ends, and proposals that one search
#: accepts at most.
MERGES, SPLITS, LAST_SPLITS, MOST = 3, 2, 12, 20
#: What a state more, or counts that are loosened, must add to the objective (nats); a state less need add nothing.
LEAST_GAIN = 1.0
#: Share of the transitions that are dealt out anew when counts are loosened.
LOOSE = 0.01


class StateSearch:
    """Tries other numbers of states during a run, where the prior learns how many there are.

    Parameters
    ----------
    chains : the data
    algorithm : whose weights restricted iterations use
    """

    round, hurries = 10, True  # a short run should not end with all the states that it may use

    def __init__(self, chains: Chains, algorithm: Algorithm) -> None:
        self.chains = chains
        self.algorithm = algorithm

    def is_due(self, trials: Trials, state: RunState, step: Step) -> bool:
        """Whether it is time: now and then once states differ, and before a run ends.

        States that are still alike when a run ends will not become different by themselves; merged into one, it can be
        split. A run that has settled has also shown how high its objective comes: what leads no higher would be undone
        by the passes that follow, again and again.
        """
        hierarchy = hierarchy_of(trials.prior.chain)
        if hierarchy is None or not (hierarchy.merges or hierarchy.splits):
            return False
        if trials.settled_at is not None:
            return True
        is_time = is_milestone(state.iteration + 1, trials.every)
        return is_time and states_differ(trials.statistics.pairs, hierarchy.n_updates)

    def improve(self, trials: Trials, state: RunState, step: Step) -> Step:
        """Return where a search leads from a step, if it is time for one; else the step."""
        if not self.is_due(trials, state, step):
            return step
        with trials.open():
            here = trials.here()
            if here is None:
                return step
            one = self.begin(trials, [state.seed, state.iteration + 1])
            best = one.improve(trials.keep(here))
            if not one.events and (trials.settled_at is not None or not trials.advances):
                trials.stay()
                found = step._replace(events=[])
            else:
                found = trials.adopt(best, one.folded)
        notes = [] if one.note is None else [one.note]
        return found._replace(events=[*found.events, *step.events, *one.events, *notes])

    def begin(self, trials: Trials, seed: list[int]) -> OneSearch:
        """Return a search whose random numbers follow from `seed`."""
        return OneSearch(self, trials, seed)


class OneSearch:
    """One search: splits, merges, and loosened counts, each accepted if the objective rises.

    Attributes
    ----------
    events : what was accepted
    folded : pairs (into, gone) of states that were merged
    note : what the search has cost, for the trace; None if that is not told
    """

    note: str | None = None

    def __init__(self, search: StateSearch, trials: Trials, seed: list[int]) -> None:
        self.search = search
        self.trials = trials
        self.seed = seed
        self.events: list[str] = []
        self.folded: list[tuple[int, int]] = []
        self._bar = -math.inf if trials.settled_at is None else trials.settled_at
        self._splits = SPLITS if trials.settled_at is None else LAST_SPLITS

    def improve(self, here: Trial) -> Trial:
        """Return the best trial that was found, `here` if none is better."""
        hierarchy = hierarchy_of(here.prior.chain)
        assert hierarchy is not None
        if hierarchy.splits:
            here = self._split(here)
        if hierarchy.merges:
            here = self._merge(here)
        return self._loosen(here)

    def _accept(self, what: str, here: Trial, there: Trial) -> Trial:
        self.events.append(f"{what}: the objective rose by {there.objective - here.objective:.6g}")
        return self.trials.keep(there)

    def _attempt(self, prior: HMMPosterior, statistics: HMMStatistics) -> Trial:
        """Return where passes from a proposal lead: nowhere, if it leaves no room for states that are known."""
        try:
            return self.trials.attempt(prior.begin(statistics), statistics)
        except ImpossibleSequenceError:
            return Trial(-math.inf, prior, statistics)

    def _merge(self, here: Trial) -> Trial:
        while len(self.events) < MOST:
            for merge in merges(here.prior, here.statistics, MERGES):
                there = self._attempt(here.prior, merge.fold(here.statistics))
                if there.objective > max(here.objective, self._bar):
                    here = self._accept(str(merge), here, there)
                    self.folded += [(merge.into, gone) for gone in merge.gone]
                    break
            else:
                break
        return here

    def _split(self, here: Trial) -> Trial:
        for split in while_possible(self._proposed_splits(here)):
            there = self._attempt(here.prior, split.statistics)
            if there.objective > max(here.objective + LEAST_GAIN, self._bar):
                return self._accept(f"state {split.state} gave part of its work to state {split.free}", here, there)
        return here

    def _proposed_splits(self, here: Trial) -> Iterator[Split]:
        if not has_free_state(here.statistics):
            return
        rng, search = np.random.default_rng(self.seed), self.search
        splitter = Splitter(search.chains, search.algorithm, here.prior, here.statistics, rng)
        yield from map(splitter.split, islice(splitter.by_size(), self._splits))

    def _loosen(self, here: Trial) -> Trial:
        """Give transitions another chance whose counts have vanished: with small concentrations none returns."""
        there = self._attempt(here.prior, loosened(here.statistics))
        if there.objective > max(here.objective + LEAST_GAIN, self._bar):
            return self._accept("transitions that never happened were given a chance", here, there)
        return here


def while_possible(proposals: Iterator[T]) -> Iterator[T]:
    """Yield proposals until one cannot be made, since its weights (all underflow, say) leave data without a path."""
    try:
        yield from proposals
    except ImpossibleSequenceError:
        return


def loosened(statistics: HMMStatistics) -> HMMStatistics:
    """Counts of which a small share does not depend on the state before."""
    initial, pairs = statistics.initial, statistics.pairs
    visits = np.maximum(initial + pairs.sum(axis=0), 0.0)
    shares = visits / max(visits.sum(), 1e-300)
    sums = ChainSums(
        (1.0 - LOOSE) * initial + LOOSE * initial.sum() * shares,
        (1.0 - LOOSE) * pairs + LOOSE * pairs.sum(axis=1, keepdims=True) * shares,
    )
    return dataclasses.replace(statistics, chain=sums)


def is_milestone(iteration: int, every: int) -> bool:
    """10, 20, 30, 40, 60, 80, 120, 160, …: every search that fails makes it less probable that the next succeeds.

    Examples
    --------
    >>> [iteration for iteration in range(200) if is_milestone(iteration, 10)]
    [10, 20, 30, 40, 60, 80, 120, 160]
    """
    rounds, rest = divmod(iteration, every)
    if rest or rounds < 1:
        return False
    while rounds % 2 == 0:
        rounds //= 2
    return rounds in (1, 3)
