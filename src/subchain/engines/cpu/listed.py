"""Messages of many chains over their legal states alone.

Sequences are taken in the order of the data, one after the other: lists of different lengths do not run side by side,
and they are short. Long chains are cut at positions with one legal state, where a cut is exact (`propagation.legal`).
A *block* is a run of whole pieces, small enough for its lists to stay near the core; a *group* is a run of blocks whose
results are summed by one worker. Both depend on the data alone, never on the number of workers.
"""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.data.legal_states import LegalStates
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.workspace import Workspace
from subchain.engines.results import FilteredBlock, MarginalBlock
from subchain.numerics.linking import linked
from subchain.propagation.listed import passes as kernels
from subchain.propagation.listed.passes import Lists

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Legal states of a block; also those of a piece of a long chain, until the next position where it can be cut.
BLOCK = 1 << 15
#: Most legal states of a piece: a chain without a cut for longer is better run over all states, on all cores.
MOST_ENTRIES = 1 << 21
#: The same where few transitions are possible, and the number of all transitions for each of these from which they are
#: few: running along one list takes less time than running over all states on all cores.
MOST_OF_FEW, FEW = 1 << 25, 100
#: Most groups; there are fewer where their sums would hold more than all lists.
MAX_GROUPS = 64


class Pieces(NamedTuple):
    """Stretches of sequences in the order of the data: sequence, first flat position, and the one after the last."""

    sequences: Index
    starts: Index
    stops: Index


@dataclasses.dataclass(frozen=True)
class Block:
    """Pieces that stand one after the other, with their observations, their legal states, and the lists for kernels."""

    pieces: Pieces
    values: NDArray[Any]
    legal: LegalStates
    lists: Lists
    n_states: int

    @property
    def positions(self) -> slice:
        """The flat positions from the first to the last."""
        return slice(int(self.pieces.starts[0]), int(self.pieces.stops[-1]))


@dataclasses.dataclass
class LegalRun:
    """A block with its messages: lists with one entry for each legal state, (nnz,).

    Attributes
    ----------
    block : the pieces
    alpha : filtered marginals
    scale, shift : (n,) normalisers, and logarithms of what the likelihoods were divided by
    log_totals : (P,) log normaliser of each piece, nan where the pass cannot be believed
    weighted : backward messages times likelihoods, divided by normalisers, from which pair sums are made; without
        smoothed marginals, just the likelihoods
    """

    block: Block
    alpha: Array
    scale: Array
    shift: Array
    log_totals: Array
    weighted: Array
    _marginals: Array | None

    @property
    def marginals(self) -> Array:
        """Smoothed marginals, for consumers that want them."""
        assert self._marginals is not None, "the consumer did not ask for smoothed messages"
        return self._marginals


class ListedMarginals(MarginalBlock):
    """Marginals of listed states, (nnz,), spread out where a table of all states is asked for."""

    def __init__(self, block: Block, entries: Array) -> None:
        MarginalBlock.__init__(self, np.arange(block.positions.start, block.positions.stop), np.empty((0, 0)))
        self.block = block
        self.entries = entries

    @property
    def table(self) -> Array:
        rows = np.empty((len(self.positions), self.block.n_states))
        kernels.spread(self.entries, self.block.lists, rows)
        return np.ascontiguousarray(rows.T)

    def write(self, out: NDArray[Any]) -> None:
        kernels.spread(self.entries, self.block.lists, out[self.block.positions])

    def write_best(self, out: NDArray[Any]) -> None:
        kernels.best_states(self.entries, self.block.lists, out[self.block.positions])

    def write_of(self, states: NDArray[Any], out: NDArray[Any]) -> None:
        at = self.block.positions
        kernels.entries_of(self.entries, self.block.lists, states[at], out[at])


class ListedFiltered(ListedMarginals, FilteredBlock):
    """Filtered marginals of listed states."""

    def __init__(self, block: Block, entries: Array, scale: Array, shift: Array) -> None:
        ListedMarginals.__init__(self, block, entries)
        self.scale = scale
        self.shift = shift


class LegalMessages:
    """Runs blocks of one data set under one surrogate, over legal states alone."""

    def __init__(self, messages: Messages, legal: LegalStates, pieces: Pieces) -> None:
        self.messages = messages
        self.legal = legal
        self.pieces = pieces
        self.initial = np.array(messages.surrogate.initial)

    @classmethod
    def where_it_pays(cls, messages: Messages) -> LegalMessages | None:
        """None where most states are legal, and where a chain cannot be cut."""
        if messages.evidence is None or messages.part.hidden is not None or not messages.kernels.takes_lists:
            return None
        legal = messages.evidence.lists(messages.data)
        if legal is None:
            return None
        pieces = _cut(messages.data.offsets, legal.offsets)
        longest = (legal.offsets[pieces.stops] - legal.offsets[pieces.starts]).max(initial=0)
        sizes = np.diff(legal.offsets).astype(np.float64)
        is_few = FEW * (sizes[1:] @ sizes[:-1]) <= len(sizes) * float(legal.n_states) ** 2
        return cls(messages, legal, pieces) if longest <= (MOST_OF_FEW if is_few else MOST_ENTRIES) else None

    def blocks(self, chosen: Index) -> list[Pieces]:
        """The chosen sequences as blocks."""
        is_chosen = np.zeros(self.messages.data.n_sequences, dtype=np.bool_)
        is_chosen[chosen] = True
        sequences, starts, stops = (column[is_chosen[self.pieces.sequences]] for column in self.pieces)
        filled = self.legal.offsets[starts] // BLOCK
        new = (starts[1:] != stops[:-1]) | (filled[1:] != filled[:-1])
        edges = [0, *(np.flatnonzero(new) + 1).tolist(), len(starts)] if len(starts) else [0]
        return [Pieces(sequences[a:b], starts[a:b], stops[a:b]) for a, b in pairwise(edges)]

    def groups(self, chosen: Index) -> list[list[Pieces]]:
        """The blocks of the chosen sequences as groups with about equal work."""
        blocks = self.blocks(chosen)
        count = min(self._most_groups(), len(blocks))
        bounds = np.linspace(0, len(blocks), count + 1).astype(np.int64).tolist()
        return [blocks[a:b] for a, b in pairwise(bounds)]

    def _most_groups(self) -> int:
        """A power of two, such that the groups' sums hold no more than all lists, unless there were less than two."""
        sums = sum(array.size for array in self.messages.surrogate.emission.zeros().arrays().values())
        most = self.legal.n_entries // max(sums, 1)
        return min(1 << max(most.bit_length() - 1, 1), MAX_GROUPS)

    def block(self, pieces: Pieces) -> Block:
        """Look up what is known of some pieces that stand one after the other."""
        start, stop = int(pieces.starts[0]), int(pieces.stops[-1])
        legal = self.legal.between(start, stop)
        is_first = pieces.starts == self.messages.data.offsets[pieces.sequences]
        known = self.legal.states[self.legal.offsets[np.maximum(pieces.starts - 1, 0)]]
        before = np.where(is_first, -1, known).astype(np.int64)
        lists = Lists(legal.offsets, legal.states, pieces.starts - start, pieces.stops - start, before)
        values = np.asarray(self.messages.data.values[start:stop])
        return Block(pieces, values, legal, lists, self.messages.surrogate.n_states)

    def run(self, pieces: Pieces, space: Workspace, *, smooth: bool) -> LegalRun:
        """Filtered marginals of all positions of a block, and smoothed ones if they are wanted."""
        block = self.block(pieces)
        legal, lists, messages = block.legal, block.lists, self.messages
        initial, (transition, transposed, _) = self.initial, messages.kernels.forms
        likelihood, alpha = (space.table(name, 1, legal.n_entries)[0] for name in ("likelihood", "alpha"))
        scale, totals = space.table("scale", 1, len(block.values))[0], np.empty(len(pieces.starts))
        shift = messages.surrogate.emission.scaled_listed(block.values, legal, likelihood)
        if legal.log_weights is not None:
            kernels.weigh_states(likelihood, legal.log_weights, legal.offsets, shift)
        kernels.forward(likelihood, transition, transposed, initial, lists, alpha, scale)
        kernels.log_totals(scale, shift, lists, totals)
        if not messages.every_way:
            is_lost = np.empty(len(totals), dtype=np.bool_)
            kernels.lost(likelihood, transition, initial, lists, alpha, is_lost)
            totals[is_lost] = np.nan
        marginals = space.table("marginals", 1, legal.n_entries)[0] if smooth else None
        if marginals is not None:
            kernels.backward(likelihood, transition, transposed, lists, alpha, scale, marginals)
        return LegalRun(block, alpha, scale, shift, totals, likelihood, marginals)

    def log_likelihood(self, block: Block) -> Array:
        """Log likelihoods of the legal states, evidence included, (nnz,)."""
        logs = self.messages.surrogate.emission.log_likelihood_listed(block.values, block.legal)
        return logs if block.legal.log_weights is None else logs + block.legal.log_weights


def _cut(offsets: Index, entries: Index) -> Pieces:
    """All sequences that are not empty; long ones are cut where the position before has one legal state."""
    sequences = np.flatnonzero(offsets[1:] > offsets[:-1])
    starts, stops = offsets[sequences], offsets[sequences + 1]
    long = np.flatnonzero(entries[stops] - entries[starts] > 2 * BLOCK)
    if not len(long):
        return Pieces(sequences, starts, stops)
    edges = np.sort(np.concatenate([starts, *(_cuts(starts[i], stops[i], entries, BLOCK) for i in long)]))
    of_edges = sequences[np.searchsorted(starts, edges, side="right") - 1]
    return Pieces(of_edges, edges, np.append(edges[1:], stops[-1]))


@linked()
def _cuts(start, stop, entries, least):  # type: ignore[no-untyped-def]
    """Positions at which a sequence is cut, each piece having at least so many legal states."""
    found = np.empty((entries[stop] - entries[start]) // least, dtype=np.int64)
    count, begin = 0, start
    for position in range(start + 1, stop):
        is_single = entries[position] - entries[position - 1] == 1
        if is_single and entries[position] - entries[begin] >= least:
            found[count] = begin = position
            count += 1
    return found[:count]
