"""The engine of this machine's processor cores.

It cuts the data into tiles, runs the tiles' groups on a pool of threads (the kernels release Python's lock) and adds
the groups' results in a fixed order, so that one core and many give the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.engines.cpu.borders import Borders
from subchain.engines.cpu.consumers import Collect, Consumer, LegalConsumer, Nothing, TileRun
from subchain.engines.cpu.listed import LegalMessages, Pieces
from subchain.engines.cpu.log_space import LogChain
from subchain.engines.cpu.messages import Messages, Workspace
from subchain.engines.cpu.partition import Index, Partition, partition
from subchain.engines.statistics import HMMStatistics
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError, impossible_error
from subchain.propagation.underflow import Growth

Array = NDArray[np.float64]
Result = TypeVar("Result")
#: Runs the given sequences, writes their log likelihoods into a table of all, and returns the groups' results.
Way: TypeAlias = Callable[[Index, Array], list[Result]]

#: Sequences up to this length are never cut.
WHOLE = 1024
#: Rounds in which pieces learn from their neighbours before a plain sweep decides.
ROUNDS = 3
#: A piece is so many times as long as what it runs beyond its borders.
LEAD_SHARE = 16
#: Pieces that are worth having side by side even if they are short.
FEW_PIECES = 32
#: Most pieces of a chain, which bounds the memory for its borders.
MOST_PIECES = 1 << 18
#: Places where a chain's memory is measured.
PROBES = 16


def piece_length(lead: int, total: int) -> int:
    """Length of the pieces of chains with so many positions in all, if pieces start `lead` positions early."""
    piece = max(LEAD_SHARE * lead, 128, total // MOST_PIECES) + 1
    few = total < FEW_PIECES * piece
    return max(total // FEW_PIECES, 2 * lead, 64) + 1 if few else piece


class CpuEngine:
    """Runs passes on `n_jobs` cores (all by default)."""

    name = "cpu"

    def __init__(self, n_jobs: int | None = None) -> None:
        is_whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
        if n_jobs is not None and not (is_whole and n_jobs != 0):
            raise InputError(f"n_jobs must be a whole number of cores, −1 or None for all of them, not {n_jobs!r}.")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.n_jobs = cores if n_jobs is None else n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
        self.blas = ThreadpoolController()

    def alone(self) -> AbstractContextManager[Any]:
        """Keep the threads of matrix libraries out of the way: after a product they wait busily on a core of ours."""
        return self.blas.limit(limits=1)

    # ---- what passes are made for ------------------------------------------------------------------------------------

    def statistics(
        self,
        surrogate: Surrogate,
        data: Sequences,
        evidence: Evidence | None = None,
        weights: Array | None = None,
    ) -> HMMStatistics:
        """Expected statistics of all sequences; raises if one of them is impossible."""
        consumer = Collect(surrogate, weights)
        parts, totals, impossible = self.run(Messages(surrogate, data, evidence), consumer)
        if impossible:
            raise impossible_error(impossible)
        total = parts[0]
        for part in parts[1:]:
            total.absorb(part)
        total.chain.pairs *= surrogate.transition
        total.chain.pairs += consumer.hard_pairs
        total.log_normalizer = float(totals @ weights if weights is not None else totals.sum())
        lengths = data.lengths
        total.n_observations = float(lengths @ weights if weights is not None else lengths.sum())
        return total

    def scores(
        self, surrogate: Surrogate, data: Sequences, evidence: Evidence | None = None
    ) -> tuple[Array, dict[int, int]]:
        """Log likelihood of each sequence, and for impossible ones (−inf) the position where every path ends."""
        _, totals, impossible = self.run(Messages(surrogate, data, evidence), Nothing())
        return totals, impossible

    # ---- the pass ----------------------------------------------------------------------------------------------------

    def run(self, messages: Messages, consumer: Consumer[Result]) -> tuple[list[Result], Array, dict[int, int]]:
        """Pass over all sequences; return the groups' results, each sequence's log likelihood, and impossible ones.

        Where few states are legal, only these are visited. Sequences whose pass over them cannot be believed are run
        over all states, and where that cannot be believed either, in log space; the last result is that of the latter.
        """
        totals = np.zeros(messages.data.n_sequences)
        results: list[Result] = []
        hard = np.arange(len(totals))
        with self.alone():
            for way in self._ways(messages, consumer):
                found, hard = _believed(way, hard, totals)
                results += found
            if len(hard) or not results:
                results.append(consumer.begin())
            impossible = _in_log_space(messages, consumer, results[-1], hard, totals)
        return results, totals, impossible

    def _ways(self, messages: Messages, consumer: Consumer[Result]) -> Iterator[Way[Result]]:
        """Scaled passes over the data, the fastest first; each leaves to the next what it cannot do."""
        if isinstance(consumer, LegalConsumer):
            legal = LegalMessages.where_it_pays(messages)
            if legal is not None:
                yield partial(self._over_legal_states, legal, consumer)
        yield partial(self._scaled, messages, consumer)

    def _over_legal_states(
        self, messages: LegalMessages, consumer: LegalConsumer[Result], chosen: Index, totals: Array
    ) -> list[Result]:
        def run_group(group: list[Pieces]) -> tuple[Result, list[Array]]:
            space, result, log_totals = Workspace(), consumer.begin(), []
            for pieces in group:
                run = messages.run(pieces, space, smooth=consumer.smooth)
                log_totals.append(run.log_totals)
                consumer.block(result, run)
            return result, log_totals

        totals[chosen] = 0.0
        groups = messages.groups(chosen)
        runs = self.map(run_group, groups)
        for group, (_, log_totals) in zip(groups, runs, strict=True):
            for pieces, found in zip(group, log_totals, strict=True):
                np.add.at(totals, pieces.sequences, found)
        return [result for result, _ in runs]

    def _scaled(self, messages: Messages, consumer: Consumer[Result], chosen: Index, totals: Array) -> list[Result]:
        cut, lead = self._cut(messages, chosen)
        totals[chosen] = 0.0
        if not cut.tiles:
            return []
        piece_totals = np.empty(len(cut.start))
        lost = Growth(*np.full((4, len(cut.start)), -np.inf))
        borders = Borders.unknown(len(cut.start), messages.surrogate.n_states) if cut.is_cut else None

        def run_group(group: slice) -> Result:
            space, result = Workspace(), consumer.begin()
            for tile in cut.tiles[group]:
                if borders is not None and lead is not None:
                    messages.warm_up(tile, cut, borders, lead, space, smooth=consumer.smooth)
                filtered, smoothed = messages.run(tile, cut, borders, space, smooth=consumer.smooth)
                piece_totals[tile.pieces] = filtered.log_totals
                for whole, part in zip(lost, filtered.lost or (), strict=False):
                    whole[tile.pieces] = part
                consumer.tile(result, TileRun(filtered, smoothed, cut, borders, messages.kernels))
            return result

        if borders is not None and lead is None:
            self._sweep(messages, cut, borders, np.unique(cut.sequence[~cut.is_first]))
        results = self.map(run_group, cut.groups)
        if borders is not None and lead is not None:
            self._reconcile(messages, cut, borders, results, run_group, consumer.smooth)
        piece_totals[lost.matters_along(~cut.is_first)] = np.nan
        np.add.at(totals, cut.sequence, piece_totals)
        return results

    def _reconcile(
        self,
        messages: Messages,
        cut: Partition,
        borders: Borders,
        results: list[Result],
        run_group: Callable[[slice], Result],
        smooth: bool,
    ) -> None:
        """Run groups again until every border agrees with its neighbour; sweep where that takes too long."""
        group_of = np.empty(len(cut.start), dtype=np.int64)
        for number, group in enumerate(cut.groups):
            for tile in cut.tiles[group]:
                group_of[tile.pieces] = number
        for attempt in range(ROUNDS + 1):
            wrong = borders.adopt(cut, smooth=smooth)
            if not len(wrong):
                return
            if attempt == ROUNDS:
                sequences = np.unique(cut.sequence[wrong])
                self._sweep(messages, cut, borders, sequences)
                wrong = np.flatnonzero(np.isin(cut.sequence, sequences))
            again = np.unique(group_of[wrong])
            for number, result in zip(again, self.map(run_group, [cut.groups[g] for g in again]), strict=True):
                results[number] = result

    def _sweep(self, messages: Messages, cut: Partition, borders: Borders, sequences: Index) -> None:
        """Exact borders of whole sequences: forward from the left beside backward from the right."""
        jobs: list[tuple[Callable[..., None], Index]] = []
        for sequence in sequences:
            pieces = np.flatnonzero(cut.sequence == sequence)
            jobs += [(messages.sweep_forward, pieces), (messages.sweep_backward, pieces)]
        self.map(lambda job: job[0](job[1], cut, borders), jobs)
        borders.known[np.isin(cut.sequence, sequences)] = True

    def _cut(self, messages: Messages, chosen: Index) -> tuple[Partition, int | None]:
        """Choose the length of pieces by the chain's memory; return the cut and how early pieces must start."""
        data, n_states = messages.data, messages.surrogate.n_states
        sums_bytes = sum(array.nbytes for array in messages.surrogate.emission.zeros().arrays().values())
        lengths = data.lengths[chosen]
        longest = int(lengths.max(initial=0))
        if longest <= WHOLE:
            return partition(data.offsets, chosen, max(longest, 1), n_states, sums_bytes), 0
        lead = self._memory(messages, chosen[lengths > WHOLE])
        piece = 2 * WHOLE + 1 if lead is None else piece_length(lead, int(lengths.sum()))
        return partition(data.offsets, chosen, piece, n_states, sums_bytes), lead

    def _memory(self, messages: Messages, long: Index) -> int | None:
        """How many steps early a piece has to start, by probes spread over the long sequences; None: never enough."""
        offsets = messages.data.offsets
        steps = WHOLE // 16
        while steps < WHOLE:
            room = offsets[long + 1] - offsets[long] - steps
            ends = np.cumsum(room)
            at = np.linspace(0, ends[-1] - 1, PROBES).astype(np.int64)
            which = np.searchsorted(ends, at, side="right")
            starts = offsets[long[which]] + at - (ends[which] - room[which])
            time = messages.forgetting_time(starts, steps)
            if time is not None:
                return min(time + time // 4 + 8, WHOLE // 2)
            steps *= 2
        return None

    def map(self, task: Callable[[Any], Result], items: list[Any]) -> list[Result]:
        """Do a task for every item on the engine's threads; results in the order of the items."""
        if self.n_jobs == 1 or len(items) == 1:
            return [task(item) for item in items]
        with ThreadPoolExecutor(self.n_jobs) as pool:
            return list(pool.map(task, items))


def _believed(way: Way[Result], chosen: Index, totals: Array) -> tuple[list[Result], Index]:
    """Run the chosen sequences, less those whose log likelihoods turn out not to be finite; return the latter too."""
    asked = chosen
    while len(chosen):
        results = way(chosen, totals)
        is_good = np.isfinite(totals[chosen])
        if is_good.all():
            return results, np.setdiff1d(asked, chosen)
        chosen = chosen[is_good]
    return [], asked


def _in_log_space(
    messages: Messages, consumer: Consumer[Result], result: Result, hard: Index, totals: Array
) -> dict[int, int]:
    """Run sequences in log space; return the position at which every path ends, for those that are impossible."""
    offsets, impossible = messages.data.offsets, {}
    for sequence in hard.tolist():
        chain = LogChain(messages, int(offsets[sequence]), int(offsets[sequence + 1]))
        totals[sequence] = chain.log_total
        if chain.impossible_at is not None:
            impossible[sequence] = chain.impossible_at
            continue
        for block in chain.blocks() if consumer.wants_blocks else ():
            consumer.hard(result, sequence, block)
    return impossible
