"""How surely transitions occur at all in the data: one pass, by any of the methods of `propagation.occurrence`.

A hierarchical prior over transitions asks whether one occurs, not how often. Answers add over sequences as
L = −log q(C = 0), so a sequence that counts w times adds w times its L.

A long chain that the engine cuts is taken as its pieces and the pairs of positions at their borders, as if these were
independent; for `pairs`, which takes all pairs to be independent, that changes nothing. Sequences that had to be run in
log space are answered by `pairs` whatever the method.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.log_space import LogBlock
from subchain.engines.cpu.messages import Messages
from subchain.engines.cpu.passes import run_pass
from subchain.engines.cpu.workspace import Workers
from subchain.engines.results import Occurrence
from subchain.errors import unknown_name
from subchain.propagation import lanes
from subchain.propagation.occurrence.methods import METHODS, absence_in, conditionals
from subchain.propagation.occurrence.pairs import absence, add_surplus

Array = NDArray[np.float64]


def occurrence(workers: Workers, messages: Messages, method: str, n_samples: int, seed: int) -> Occurrence:
    """How surely first states and transitions occur in the data; see `Engine.occurrence`."""
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    parts, scores = run_pass(workers, messages, _Ask(messages, method, n_samples, seed))
    scores.checked()
    for part in parts[1:]:
        parts[0].absorb(part)
    return parts[0]


class _Ask(Consumer[Occurrence]):
    """Adds up the answers of tiles."""

    def __init__(self, messages: Messages, method: str, n_samples: int, seed: int) -> None:
        weights = messages.part.weights
        self.transition = np.ascontiguousarray(messages.operator.dense())
        self.weights = np.ones(messages.data.n_sequences) if weights is None else weights
        self.method = method
        self.n_samples = n_samples
        self.seed = seed

    def begin(self) -> Occurrence:
        n_states = len(self.transition)
        return Occurrence(np.zeros(n_states), np.zeros((n_states, n_states)))

    def tile(self, result: Occurrence, run: TileRun) -> None:
        weights, n_lanes = self.weights[run.sequences], run.filtered.tile.lanes
        begins = run.is_first
        result.first += absence(run.marginals[:, :n_lanes][:, begins]) @ weights[begins]
        if run.before is not None:
            for lane in np.flatnonzero(~begins).tolist():
                both = run.before[lane][:, None] * self.transition * run.smoothed.weighted[:, lane]
                result.moves += weights[lane] * absence(both)
        if self.method == "pairs":
            self._pairs(result, run, weights)
        else:
            for lane in range(n_lanes):
                result.moves += weights[lane] * self._of_lane(run, lane)

    def _pairs(self, result: Occurrence, run: TileRun, weights: Array) -> None:
        alpha, weighted, offsets = run.filtered.alpha, run.smoothed.weighted, run.filtered.tile.offsets
        add_surplus(alpha, weighted, self.transition, run.marginals, offsets, weights, result.moves)
        sums = np.zeros_like(self.transition)
        lanes.weigh(weighted, offsets, weights)
        run.kernels.pair_sums(alpha, weighted, offsets, sums)
        result.moves += sums * self.transition

    def _of_lane(self, run: TileRun, lane: int) -> Array:
        """L of one piece, whichever it is."""
        tile = run.filtered.tile
        columns = tile.offsets[: tile.lengths[lane]] + lane
        first, moves = run.marginals[:, lane], conditionals(run.smoothed.weighted[:, columns].T, self.transition)
        # keyed by position: the same paths whatever else runs beside them
        return absence_in(self.method, first, moves, self.n_samples, (self.seed, int(tile.starts[lane])))

    def hard(self, result: Occurrence, sequence: int, block: LogBlock) -> None:
        weight = self.weights[sequence]
        if block.is_first:
            result.first += weight * absence(block.marginals[:, 0])
        assert block.surplus is not None, "occurrence is asked of matrices"
        result.moves += weight * (block.pairs + block.surplus)
