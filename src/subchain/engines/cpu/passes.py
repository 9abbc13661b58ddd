"""A pass over the data: cut them, run the groups of tiles on all threads, mend borders, put the results together.

Groups' results are added in a fixed order, so that one core and many give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.blas import single_threaded
from subchain.engines.cpu.borders import Borders
from subchain.engines.cpu.consumers import Consumer, LegalConsumer
from subchain.engines.cpu.fused import Fused
from subchain.engines.cpu.groups import Group, GroupRun, run_group
from subchain.engines.cpu.listed import LegalMessages, Pieces
from subchain.engines.cpu.log_space import LogChain
from subchain.engines.cpu.messages import Messages, Told
from subchain.engines.cpu.partition import Index, Partition, Tile
from subchain.engines.cpu.precision import DOUBLE
from subchain.engines.cpu.workspace import Workers
from subchain.engines.results import Scores
from subchain.propagation.underflow import Growth

Array = NDArray[np.float64]
Result = TypeVar("Result")
#: Runs the given sequences, writes their log likelihoods into a table of all, and returns the groups' results.
Method: TypeAlias = Callable[[Index, Array], list[Result]]

#: Rounds in which pieces learn from their neighbours before a plain sweep decides.
ROUNDS = 3


def run_pass(
    workers: Workers, messages: Messages, consumer: Consumer[Result], chosen: Index | None = None
) -> tuple[list[Result], Scores]:
    """Pass over all sequences, or over the chosen ones; return the groups' results and the sequences' scores.

    Where few states are legal, only these are visited. Sequences that underflow there are run over all states, and
    those that underflow there too in log space; the last result is that of the latter.
    """
    totals = np.zeros(messages.data.n_sequences)
    results: list[Result] = []
    hard = np.arange(len(totals)) if chosen is None else chosen
    with single_threaded:
        for method in _methods(workers, messages, consumer):
            found, hard = _finite(method, hard, totals)
            results += found
        if len(hard) or not results:
            results.append(consumer.begin())
        impossible = _in_log_space(messages, consumer, results[-1], hard, totals)
    return results, Scores(totals, impossible)


def _methods(workers: Workers, messages: Messages, consumer: Consumer[Result]) -> Iterator[Method[Result]]:
    """Scaled passes over the data, the fastest first; each leaves to the next what it cannot do."""
    if isinstance(consumer, LegalConsumer):
        legal = LegalMessages.where_it_pays(messages)
        if legal is not None:
            yield partial(_over_legal_states, workers, legal, consumer)
    yield _Scaled(workers, messages, consumer).run


def _finite(method: Method[Result], chosen: Index, totals: Array) -> tuple[list[Result], Index]:
    """Run the chosen sequences, less those whose log likelihoods turn out not to be finite; return the latter too."""
    asked = chosen
    while len(chosen):
        results = method(chosen, totals)
        is_good = np.isfinite(totals if len(chosen) == len(totals) else totals[chosen])
        if is_good.all():
            return results, asked[:0] if chosen is asked else np.setdiff1d(asked, chosen)
        chosen = chosen[is_good]
    return [], asked


def _over_legal_states(
    workers: Workers, messages: LegalMessages, consumer: LegalConsumer[Result], chosen: Index, totals: Array
) -> list[Result]:
    def run_blocks(group: list[Pieces]) -> tuple[Result, list[Array]]:
        space, result, log_totals = messages.messages.workspace(), consumer.begin(), []
        for pieces in group:
            run = messages.run(pieces, space, smooth=consumer.smooth)
            log_totals.append(run.log_totals)
            consumer.block(result, run)
        return result, log_totals

    totals[chosen] = 0.0
    groups = messages.groups(chosen)
    runs = workers.map(run_blocks, groups)
    for group, (_, log_totals) in zip(groups, runs, strict=True):
        for pieces, found in zip(group, log_totals, strict=True):
            np.add.at(totals, pieces.sequences, found)
    return [result for result, _ in runs]


def _in_log_space(
    messages: Messages, consumer: Consumer[Result], result: Result, hard: Index, totals: Array
) -> dict[int, int]:
    """Run sequences in log space; return the position at which every path ends, for those that are impossible."""
    impossible: dict[int, int] = {}
    for sequence in hard.tolist():
        chain = LogChain.of(messages, sequence)
        totals[sequence] = chain.log_total
        if chain.impossible_at is not None:
            impossible[sequence] = chain.impossible_at
            continue
        for block in chain.blocks() if consumer.wants_blocks else ():
            consumer.hard(result, sequence, block)
    return impossible


class StretchEnds(NamedTuple):
    """What the rest of a sequence tells a stretch of it.

    Attributes
    ----------
    before : (K,) filtered marginal of the position before the stretch; None where it begins the sequence
    after : (K,) backward message of its last position, summing to one; None where it ends the sequence
    """

    before: Array | None
    after: Array | None


class StretchTold(NamedTuple):
    """What a stretch tells its neighbours.

    Attributes
    ----------
    log_total : log normaliser of its forward messages; nan where what was lost to underflow inside it matters
    last : (K,) filtered marginal of its last position
    first : (K,) backward message of the position before it, summing to one
    lost : bound on what was lost to underflow
    """

    log_total: float
    last: Array
    first: Array
    lost: Growth


def run_stretch(
    workers: Workers, messages: Messages, consumer: Consumer[Result], ends: StretchEnds
) -> tuple[list[Result], StretchTold]:
    """Pass over a single sequence that is a stretch of a longer one."""
    with single_threaded:
        return _Scaled(workers, messages, consumer).stretch(ends)


class _Scaled(Generic[Result]):
    """A pass in scaled probabilities over all states."""

    def __init__(self, workers: Workers, messages: Messages, consumer: Consumer[Result]) -> None:
        self.workers = workers
        self.messages = messages
        self.consumer = consumer
        self.fused = Fused.where_it_can(workers, messages, consumer)

    def run(self, chosen: Index, totals: Array) -> list[Result]:
        """Run the chosen sequences; totals that are not finite say that a sequence has underflowed."""
        results = self._run(self.fused, chosen, totals)
        if results is None and self.fused is not None:
            results = self._run(self.fused.double, chosen, totals)
        return results or []

    def _run(self, fused: Fused | None, chosen: Index, totals: Array) -> list[Result] | None:
        """Run them in the precision of compiled calls; None if that is not good enough."""
        precision = DOUBLE if fused is None else fused.precision
        cut, lead = self.messages.cuts.choose(self.messages, chosen, precision)
        if len(chosen) == len(totals):
            totals[:] = 0.0
        else:
            totals[chosen] = 0.0
        if not cut.n_tiles:
            return []
        n_states = self.messages.surrogate.n_states
        borders = Borders.unknown(len(cut.start), n_states, precision) if cut.is_cut else None
        groups = _Groups(self, fused, cut, borders, lead)
        if borders is not None and lead is None:
            groups.sweep(np.unique(cut.sequence[~cut.is_first]))
        groups.run(np.arange(cut.n_groups))
        if not groups.is_precise:
            return None
        if borders is not None and lead is not None:
            groups.reconcile(borders)
        piece_totals, _ = groups.totals()
        if cut.is_cut:
            np.add.at(totals, cut.sequence, piece_totals)
        elif len(cut.sequence) == len(totals):
            totals[:] = piece_totals
        else:
            totals[cut.sequence] = piece_totals
        return groups.results()

    def stretch(self, ends: StretchEnds) -> tuple[list[Result], StretchTold]:
        """Run a stretch of a sequence between the messages at its ends, in double precision."""
        messages, n_states = self.messages, self.messages.surrogate.n_states
        fused = None if self.fused is None else self.fused.double or self.fused
        whole, lead = messages.cuts.choose(messages, np.zeros(1, dtype=np.int64), DOUBLE)
        cut = whole.as_stretch(begins=ends.before is None, ends=ends.after is None)
        borders = Borders.unknown(len(cut.start), n_states)
        groups = _Groups(self, fused, cut, borders, lead, ends)
        if lead is None:
            groups.sweep(np.zeros(1, dtype=np.int64))
        else:
            told = _outermost(messages, whole, borders, lead, smooth=self.consumer.smooth)
            borders.begin(told.before, told.after, *ends)
        groups.run(np.arange(cut.n_groups))
        if lead is not None:
            groups.reconcile(borders)
        totals, lost = groups.totals()
        found = borders.messages
        return groups.results(), StretchTold(float(totals.sum()), found.last[-1], found.first[0], lost.along())


def _outermost(messages: Messages, cut: Partition, borders: Borders, lead: int, *, smooth: bool) -> Told:
    """Estimate the inner borders of the first and the last piece of a sequence."""
    pieces = np.unique([0, len(cut.start) - 1])
    tile = Tile(pieces, cut.start[pieces], cut.length[pieces])
    return messages.told(tile, cut, borders, lead, messages.workspace(), smooth=smooth)


class _Groups(Generic[Result]):
    """The groups of a pass: all that can be run in compiled calls, and tile by tile what these leave over."""

    def __init__(
        self, scaled: _Scaled[Result], fused: Fused | None, cut: Partition, borders: Borders | None, lead: int | None,
        ends: StretchEnds | None = None,
    ) -> None:  # fmt: skip
        self.scaled, self.cut, self.borders, self.lead = scaled, cut, borders, lead
        self.ends = StretchEnds(None, None) if ends is None else ends
        self.fused = None if fused is None else fused.over(cut, borders, lead)
        self._others: dict[int, GroupRun[Result]] = {}

    @property
    def is_precise(self) -> bool:
        """Whether compiled calls were precise enough; if not, they have not done all."""
        return self.fused is None or self.fused.is_precise

    def run(self, numbers: Index) -> None:
        """Run some groups, anew if they have been run before."""
        for number in numbers.tolist():
            self._others.pop(number, None)
        if self.fused is not None:
            self.fused.run(numbers)
        messages, cut, consumer = self.scaled.messages, self.cut, self.scaled.consumer
        left = self._left(numbers) if self.is_precise else []
        runs = self.scaled.workers.map(
            lambda group: run_group(messages, cut, group, self.borders, self.lead, consumer), left
        )
        for run in runs:
            self._others[run.number] = run
            for tile in run.tiles:
                if self.borders is not None and tile.borders is not None:
                    self.borders.put(tile.pieces, tile.borders)

    def _left(self, numbers: Index) -> list[Group]:
        """What compiled calls did not do."""
        if self.fused is not None and self.fused.done.all():
            return []
        groups = [Group(number, range(*self.cut.group_bounds[number : number + 2])) for number in numbers.tolist()]
        if self.fused is None:
            return groups
        done = self.fused.done
        left = [Group(number, [tile for tile in tiles if not done[tile]]) for number, tiles in groups]
        return [group for group in left if group.tiles]

    def totals(self) -> tuple[Array, Growth]:
        """Log normalisers of the pieces, (P,), nan where what was lost to underflow matters; and what was lost."""
        n_pieces = len(self.cut.start)
        totals = np.empty(n_pieces) if self.fused is None else self.fused.log_totals
        others = [tile for run in self._others.values() for tile in run.tiles]
        for tile in others:
            totals[tile.pieces] = tile.log_totals
        tracked = 0 if self.fused is None else len(self.fused.losses)
        if not tracked and all(tile.lost is None for tile in others):
            return totals, Growth.nothing(1)
        lost = Growth(*self.fused.losses.T.copy()) if tracked and self.fused else Growth.nothing(n_pieces)
        for tile in others:
            for whole, part in zip(lost, tile.lost or (), strict=False):
                whole[tile.pieces] = part
        totals[lost.matters_along(~self.cut.is_first)] = np.nan
        return totals, lost

    def results(self) -> list[Result]:
        """What the consumer made of the groups."""
        together = [] if self.fused is None else [self.fused.result()]
        return together + [self._others[number].result for number in sorted(self._others)]

    def reconcile(self, borders: Borders) -> None:
        """Run groups again until every border agrees with its neighbour; sweep where that takes too long."""
        cut = self.cut
        for attempt in range(ROUNDS + 1):
            wrong = borders.adopt(cut, smooth=self.scaled.consumer.smooth)
            if not len(wrong):
                return
            if attempt == ROUNDS:
                sequences = np.unique(cut.sequence[wrong])
                self.sweep(sequences)
                wrong = np.flatnonzero(np.isin(cut.sequence, sequences))
            self.run(np.unique(cut.group_of[wrong]))

    def sweep(self, sequences: Index) -> None:
        """Exact borders of whole sequences: forward from the left beside backward from the right."""
        cut, messages, borders = self.cut, self.scaled.messages, self.borders
        assert borders is not None
        pieces = [np.flatnonzero(cut.sequence == sequence) for sequence in sequences]
        directions = tuple(zip((messages.sweep_forward, messages.sweep_backward), self.ends, strict=True))
        found = self.scaled.workers.map(
            lambda job: job[1][0](job[0], cut, job[1][1]), [(of, way) for of in pieces for way in directions]
        )
        for of, before, after in zip(pieces, found[::2], found[1::2], strict=True):
            borders.messages.before[of], borders.messages.after[of] = before, after
            borders.known[of] = True
        borders.bound(*self.ends)
