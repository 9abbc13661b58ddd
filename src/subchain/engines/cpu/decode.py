"""The most probable paths of many sequences, or of one chain too long for a table, on all cores.

Sequences run side by side as lanes. A long chain is cut into pieces which run side by side too: each piece begins
`lead` positions early with δ of no information, and its way back begins `lead` positions late at the state that looks
best there. Best paths run together, so where a piece begins its δ is the true one up to a constant, and where it ends
it is on the true path. Both are checked at every border: δ against that of the piece before, all states of it, however
improbable; the last state against the first state of the piece after. Pieces that fail are run again with what their
neighbours say, from the left for δ and from the right for the states, until all agree; this ends, at the latest, where
a plain pass from end to end would have ended. Chains that do not run together at all are given to that plain pass at
once.

Memory is that of the pieces in work and two rows of δ per piece.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.blas import single_threaded
from subchain.engines.cpu.consumers import suits
from subchain.engines.cpu.fused import compiled_family
from subchain.engines.cpu.listed import LegalMessages
from subchain.engines.cpu.listed_paths import best_paths
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.partition import Partition, Tile, partition, tile_bounds
from subchain.engines.cpu.paths import for_kernels, states_array
from subchain.engines.cpu.workspace import Workers
from subchain.errors import impossible_error
from subchain.propagation.backward_sampling import log_onward_of
from subchain.propagation.compiled import kernel, small_kernel
from subchain.propagation.lanes.best_paths import LedPieces, LogWays, Paths, decode_tiles
from subchain.propagation.verbs import kernel_for
from subchain.propagation.viterbi import arriving, best_before, sweep, sweep_lanes, trace, trace_lanes

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Data without a longer sequence are not cut.
WHOLE = 2048
#: Most pieces of which both rows of δ are kept.
MANY_PIECES = 1 << 18
#: From this number of states on, and below this number of lanes, one chain after the other is faster.
MANY_STATES, FEW_LANES = 48, 6
#: Bytes of a table of lanes, unless these are fewer or more than so many.
TABLE_BYTES, LEAST_LANES, MOST_LANES = 3 << 20, 48, 960
#: Places where it is measured how fast best paths run together, and over how many steps at most.
PROBES, LONGEST_LEAD = 64, 512
#: Largest relative difference between two δ that count as the same.
AGREEMENT = 1e-12


def viterbi(
    workers: Workers, messages: Messages, out: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Find the most probable path of every sequence.

    Parameters
    ----------
    workers : threads that share the work
    messages : the model and the data
    out : (N,) array of integers for the states, possibly memory-mapped; int32 in memory if not given

    Returns
    -------
    states : (N,) the paths, end to end
    log_probability : (n_sequences,) log joint probability of path and observations

    Raises
    ------
    ImpossibleSequenceError
        If a sequence has no path.
    """
    states = states_array(out, messages, ())
    legal = LegalMessages.where_it_pays(messages)
    with for_kernels(states) as decoded:
        if legal is not None:
            return states, best_paths(workers, legal, decoded)
        return states, _over_all_states(workers, messages, decoded)


def _over_all_states(workers: Workers, messages: Messages, states: NDArray[Any]) -> Array:
    """Write the most probable paths into `states`; return their log probabilities."""
    data, lead = messages.data, _lead(messages)
    longest = WHOLE if lead is None else max(8 * lead, 256, data.n_observations // MANY_PIECES)
    cut = partition(data.offsets, np.arange(data.n_sequences), longest, messages.surrogate.n_states, 1)
    decoder = _Decoder(messages, cut, states)
    with single_threaded:
        decoder.run_all(workers, decoder.tiles(lead))
        workers.map(decoder.settle, decoder.doubts())
    if decoder.impossible:
        raise impossible_error(dict(sorted(decoder.impossible.items())))
    return decoder.log_probability()


class _Doubts(NamedTuple):
    """Pieces of one sequence whose δ, or whose last states, are in doubt; `stop` is the first piece of the next one."""

    deltas: list[int]
    states: list[int]
    stop: int


class _Decoder:
    """The pieces of all sequences: what was computed for each, and what has to be computed again.

    Attributes
    ----------
    before, last : (P, K) δ of the position before each piece and of its last position, each up to a constant; nan where
        it is not known
    states : (N,) the paths
    impossible : position at which every path of a sequence ends, for those sequences
    """

    def __init__(self, messages: Messages, cut: Partition, states: NDArray[Any]) -> None:
        self.messages, self.cut, self.states = messages, cut, states
        self.stop = cut.start + cut.length
        n_states = messages.surrogate.n_states
        with np.errstate(divide="ignore"):
            self.log_initial = np.log(messages.surrogate.initial)
        self.log_transition, _, self.log_into = messages.kernels.log_forms
        self.before = np.full((len(cut.start), n_states), np.nan)
        self.last = np.full((len(cut.start), n_states), np.nan)
        self.impossible: dict[int, int] = {}

    # ---- pieces with their leads -------------------------------------------------------------------------------------

    def tiles(self, lead: int | None) -> list[Tile]:
        """Pieces for one worker each, with their leads on both sides; without a lead, only sequences of one piece."""
        cut, n_states = self.cut, self.messages.surrogate.n_states
        pieces = np.arange(len(cut.start)) if lead is not None else np.flatnonzero(cut.is_first & cut.is_last)
        early, late = (np.where(inside[pieces], 0, lead or 0) for inside in (cut.is_first, cut.is_last))
        starts, lengths = cut.start[pieces] - early, cut.length[pieces] + early + late
        order = np.argsort(-lengths, kind="stable")
        pieces, starts, lengths = pieces[order], starts[order], lengths[order]
        bounds = tile_bounds(lengths, lambda longest: _lanes(longest, n_states))
        return [Tile(pieces[a:b], starts[a:b], lengths[a:b]) for a, b in pairwise(bounds.tolist())]

    def run_all(self, workers: Workers, tiles: list[Tile]) -> None:
        """Decode the pieces of all tiles, in compiled calls as far as that can be done."""
        wide = [tile for tile in tiles if tile.lanes >= FEW_LANES]
        left = [tile for tile in tiles if tile.lanes < FEW_LANES]
        family = compiled_family(self.messages, logs=True) if wide and suits(self.states, np.int32) else None
        if family is not None:
            done = self._run_compiled(workers, family, wide)
            wide = [tile for tile, is_done in zip(wide, done, strict=True) if not is_done]
        workers.map(self.run, wide + left)

    def _run_compiled(self, workers: Workers, family: Any, tiles: list[Tile]) -> NDArray[np.bool_]:
        pieces, starts, lengths = map(
            np.concatenate, zip(*((t.pieces, t.starts, t.lengths) for t in tiles), strict=True)
        )
        bounds = np.cumsum([0, *(tile.lanes for tile in tiles)])
        cut, claimed = self.cut, np.zeros(1, dtype=np.int64)
        lanes = LedPieces(
            bounds, pieces, starts, lengths, cut.start[pieces], self.stop[pieces], cut.is_first[pieces]
        )  # fmt: skip
        ways = LogWays(self.log_initial, self.log_transition, self.log_into)
        paths = Paths(self.before, self.last, self.states, np.zeros(len(tiles), dtype=np.bool_))
        n_states, columns = len(self.log_initial), max(tile.columns for tile in tiles)
        decode = kernel_for(decode_tiles, family)

        def work() -> None:
            space = self.messages.workspace()
            decode(family, lanes, claimed, ways, space.table("likelihood", 1, n_states * columns)[0], paths)

        workers.share(work, len(tiles))
        return paths.done

    def run(self, tile: Tile) -> None:
        """Decode the pieces of a tile as if nothing beyond their leads existed."""
        if tile.lanes >= FEW_LANES:
            self._run_side_by_side(tile)
        else:
            for piece, start, length in zip(tile.pieces, tile.starts, tile.lengths, strict=True):
                self._run_alone(piece, start, length)

    def _run_alone(self, piece: int, start: int, length: int) -> None:
        nothing = np.zeros_like(self.log_initial)
        _, delta = self.messages.log_likelihood(np.arange(start, start + length))
        first, stop = self.cut.start[piece] - start, self.stop[piece] - start
        entering = self.log_initial
        if not self.cut.is_first[piece]:
            sweep(delta[:first], self.log_transition, nothing)
            self.before[piece] = delta[first - 1]
            entering = self._arriving(delta[first - 1])
        lost = sweep(delta[first:stop], self.log_transition, entering)
        self.last[piece] = delta[stop - 1] + lost
        sweep(delta[stop:], self.log_transition, self._arriving(delta[stop - 1]))
        path = np.empty(length, dtype=self.states.dtype)
        trace(delta, self.log_into, nothing, path)
        self.states[self.cut.start[piece] : self.stop[piece]] = path[first:stop]

    def _run_side_by_side(self, tile: Tile) -> None:
        cut, pieces, lanes = self.cut, tile.pieces, np.arange(tile.lanes)
        delta = np.ascontiguousarray(self.messages.log_table(tile.positions)[1])
        start = np.where(cut.is_first[pieces], self.log_initial[:, None], 0.0)
        sweep_lanes(delta, self.log_transition, start, tile.offsets)
        self.last[pieces] = delta[:, tile.offsets[self.stop[pieces] - tile.starts - 1] + lanes].T
        inner = ~cut.is_first[pieces]
        early = cut.start[pieces] - tile.starts
        self.before[pieces[inner]] = delta[:, (tile.offsets[early - 1] + lanes)[inner]].T
        trace_lanes(delta, self.log_into, tile.offsets, tile.starts, cut.start[pieces], self.stop[pieces], self.states)

    def _arriving(self, delta: Array) -> Array:
        """Log weights of the states that follow a position."""
        found = np.empty_like(delta)
        arriving(self.log_transition, delta, found)
        return found

    # ---- borders -----------------------------------------------------------------------------------------------------

    def doubts(self) -> list[_Doubts]:
        """What is not known yet, or contradicts a neighbour, sequence by sequence."""
        cut = self.cut
        inner = np.flatnonzero(~cut.is_first)
        wrong = np.zeros(len(cut.start), dtype=np.bool_)
        _mark_wrong(self.before, self.last, cut.is_first, wrong)
        right = inner[~wrong[inner] & ~wrong[inner - 1]]
        deltas, states = np.flatnonzero(wrong), right[self._leads_astray(right)] - 1
        sequences = np.union1d(cut.sequence[deltas], cut.sequence[states])
        edges = np.searchsorted(cut.sequence, [sequences, sequences + 1]).T
        return [
            _Doubts(_between(deltas, first, stop), _between(states, first, stop), int(stop)) for first, stop in edges
        ]

    def _leads_astray(self, pieces: Index) -> NDArray[np.bool_]:
        """Whether the path through each piece comes from another state than the one at the end of the piece before."""
        is_astray = np.empty(len(pieces), dtype=np.bool_)
        _lead_astray(self.log_into, pieces, self.cut.start, self.states, self.last, is_astray)
        return is_astray

    def settle(self, doubts: _Doubts) -> None:
        """Make the pieces of one sequence agree: δ from the left, then states from the right."""
        stale: set[int] = set()
        for doubtful in doubts.deltas:
            piece = doubtful
            while piece < doubts.stop and piece not in stale:
                self._sweep(piece)
                if self.last[piece].max() == -np.inf:
                    return self._give_up(piece)
                stale.add(piece)
                piece += 1
                if piece < doubts.stop and not _differ(self.before[piece], self.last[piece - 1]):
                    break
        done: set[int] = set()
        for doubtful in sorted(stale.union(doubts.states), reverse=True):
            piece = doubtful
            while piece not in done:
                self._trace(piece)
                done.add(piece)
                if self.cut.is_first[piece] or not self._leads_astray(np.array([piece]))[0]:
                    break
                piece -= 1
        return None

    def _give_up(self, piece: int) -> None:
        """Note where the last path of a sequence ends, the first piece without a path being known."""
        sequence = int(self.cut.sequence[piece])
        dead = (self._sweep(piece) == -np.inf).all(axis=1).argmax()
        self.impossible[sequence] = int(self.cut.start[piece] + dead - self.messages.data.offsets[sequence])

    def _trace(self, piece: int) -> None:
        """Write the path through a piece again, from the state that follows it."""
        start, stop = self.cut.start[piece], self.stop[piece]
        arrival = np.zeros_like(self.log_initial)
        if not self.cut.is_last[piece]:
            log_onward_of(self.log_into, self.states[stop], arrival)
        trace(self._sweep(piece), self.log_into, arrival, self.states[start:stop])

    def _sweep(self, piece: int) -> Array:
        """Compute δ (n, K) of a piece from that of the piece before."""
        start = self.log_initial
        if not self.cut.is_first[piece]:
            self.before[piece] = self.last[piece - 1] - self.last[piece - 1].max()
            start = self._arriving(self.before[piece])
        _, delta = self.messages.log_likelihood(np.arange(self.cut.start[piece], self.stop[piece]))
        lost = sweep(delta, self.log_transition, start)
        self.last[piece] = delta[-1] + lost
        return delta

    def log_probability(self) -> Array:
        """Log probability of each sequence's path: the ends of the sequences, and the constants lost at borders."""
        cut, total = self.cut, np.zeros(self.messages.data.n_sequences)
        _add_ends(self.before, self.last, cut.is_first, cut.is_last, cut.sequence, total)
        return total


def _lanes(longest: int, n_states: int) -> int:
    """Pieces that are decoded side by side, the longest of this length."""
    if n_states >= MANY_STATES:
        return 1
    lanes = TABLE_BYTES // (8 * n_states * longest)
    return min(max(lanes - lanes % 16, LEAST_LANES), MOST_LANES)


def _between(sorted_values: Index, first: int, stop: int) -> list[int]:
    """Those of the sorted values that are at least `first` and below `stop`."""
    found: list[int] = sorted_values[slice(*np.searchsorted(sorted_values, [first, stop]))].tolist()
    return found


@small_kernel
def _differ(ours, theirs):  # type: ignore[no-untyped-def]
    """Whether two δ (K,) differ by more than a constant; what is not known in one of them alone differs."""
    least, most, size = np.inf, -np.inf, 0.0
    for k in range(ours.shape[0]):
        is_known = np.isfinite(ours[k])
        if is_known != np.isfinite(theirs[k]):
            return True
        if is_known:
            gap = ours[k] - theirs[k]
            least, most = min(least, gap), max(most, gap)
            size = max(size, abs(ours[k]) + abs(theirs[k]))
    return most - least > AGREEMENT * (1.0 + size)


@kernel
def _mark_wrong(before, last, is_first, wrong):  # type: ignore[no-untyped-def]
    """Mark pieces without a path, and those whose δ is not that of the piece before."""
    for piece in range(is_first.shape[0]):
        wrong[piece] = not last[piece].max() > -np.inf
        if not is_first[piece]:
            wrong[piece] = wrong[piece] or _differ(before[piece], last[piece - 1])


@kernel
def _sweep_probes(log_transition, early, late):  # type: ignore[no-untyped-def]
    """Turn the log likelihoods at all probes into δ that start without information, (probes, steps, K) each."""
    nothing = np.zeros(early.shape[2])
    for probe in range(early.shape[0]):
        sweep(early[probe], log_transition, nothing)
        sweep(late[probe], log_transition, nothing)


@kernel
def _lead_astray(log_into, pieces, starts, states, last, is_astray):  # type: ignore[no-untyped-def]
    """Mark pieces whose path comes from another state than the one at the end of the piece before."""
    best = np.empty(1, dtype=np.int64)
    for i in range(pieces.shape[0]):
        start, delta = starts[pieces[i]], last[pieces[i] - 1].reshape(-1, 1)
        best_before(log_into, states[start : start + 1], delta, best)
        is_astray[i] = best[0] != states[start - 1]


@kernel
def _add_ends(before, last, is_first, is_last, sequence, total):  # type: ignore[no-untyped-def]
    """Add what the ends of the pieces contribute to the log probability of each sequence's path."""
    for piece in range(is_first.shape[0]):
        if not is_first[piece]:
            best = last[piece - 1].argmax()
            total[sequence[piece]] += last[piece - 1, best] - before[piece, best]
        if is_last[piece]:
            total[sequence[piece]] += last[piece].max()


@kernel
def _last_difference(early, late):  # type: ignore[no-untyped-def]
    """Return the last step at which δ of any probe differ, (probes, steps, K) each; −1 if none does."""
    for step in range(early.shape[1] - 1, -1, -1):
        for probe in range(early.shape[0]):
            if _differ(early[probe, step], late[probe, step]):
                return step
    return -1


def _lead(messages: Messages) -> int | None:
    """How early a piece has to start, by probes spread over the sequences that may be cut; None if no number helps.

    Two δ of no information are started at distant places and followed until they are the same up to a constant.
    """
    offsets = messages.data.offsets
    long = np.flatnonzero(np.diff(offsets) > WHOLE)
    if not len(long):
        return None
    steps = LONGEST_LEAD // 8
    while steps <= LONGEST_LEAD:
        time = _meeting_time(messages, _spread(offsets[long], offsets[long + 1] - 2 * steps), steps)
        if time is not None:
            return time + time // 2 + 8
        steps *= 2
    return None


def _spread(first: Index, stop: Index) -> Index:
    """PROBES positions, evenly spread over the given ranges."""
    ends = np.cumsum(stop - first)
    at = np.linspace(0, ends[-1] - 1, PROBES).astype(np.int64)
    which = np.searchsorted(ends, at, side="right")
    return np.asarray(stop[which] - (ends[which] - at))


def _meeting_time(messages: Messages, starts: Index, steps: int) -> int | None:
    """Steps until δ started at `starts + steps` agrees with δ started at `starts`; None if `steps` are not enough."""
    _, logs = messages.log_likelihood((starts[:, None] + np.arange(2 * steps)).ravel())
    early = logs.reshape(len(starts), 2 * steps, -1)
    late = early[:, steps:].copy()
    _sweep_probes(messages.kernels.log_forms.forward, early, late)
    last = int(_last_difference(early[:, steps:], late))
    return None if last == steps - 1 else last + 1
