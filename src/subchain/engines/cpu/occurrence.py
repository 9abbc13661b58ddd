"""How surely moves happen at all in the data: one pass, by any of the ways of `propagation.occurrence_methods`.

A hierarchical prior over moves asks whether a move occurs, not how often. Answers add over sequences as
L = −log q(C = 0), so a sequence that counts w times adds w times its L.

A long chain that the engine cuts is taken as its pieces and the pairs of positions at their borders, as if these were
independent; for `pairs`, which takes all pairs to be independent, that changes nothing. Sequences that had to be run in
logarithms are answered by `pairs` whatever the way.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.engines.cpu.consumers import Consumer, TileRun
from subchain.engines.cpu.engine import CpuEngine
from subchain.engines.cpu.log_space import LogBlock
from subchain.engines.cpu.messages import Messages
from subchain.engines.surrogate import Surrogate
from subchain.errors import impossible_error, unknown_name
from subchain.propagation.lanes import recursions as lanes
from subchain.propagation.occurrence.methods import SAMPLES, WAYS, absence_in, conditionals
from subchain.propagation.occurrence.pairs import absence, add_surplus

Array = NDArray[np.float64]


@dataclasses.dataclass
class Occurrence:
    """−log of the probability that no sequence begins with a state, (K,), and that none has a move, (K, K)."""

    first: Array
    moves: Array

    @property
    def probability(self) -> Array:
        """Probability (K, K) that each move happens at all."""
        return np.asarray(-np.expm1(-self.moves))

    def absorb(self, other: Occurrence) -> None:
        self.first += other.first
        self.moves += other.moves


def occurrence(
    engine: CpuEngine,
    surrogate: Surrogate,
    data: Sequences,
    evidence: Evidence | None = None,
    weights: Array | None = None,
    method: str = "pairs",
    n_samples: int = SAMPLES,
    seed: int = 0,
) -> Occurrence:
    """How surely first states and moves occur in the data.

    Parameters
    ----------
    engine : whose cores are used
    surrogate, data, evidence : the model, and what it is asked about
    weights : (n_sequences,) how often each sequence counts
    method : {"pairs", "exact", "mean_field", "sampling"}
    n_samples, seed : for "sampling", the number of paths a sequence and what decides on them

    Raises
    ------
    ImpossibleSequenceError
        If a sequence has no path.

    Examples
    --------
    >>> from subchain.emissions import Categorical
    >>> flat = Categorical.from_parameters([[0.5, 0.5], [0.5, 0.5]])
    >>> surrogate = Surrogate(np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.0, 1.0]]), flat)
    >>> occurrence(CpuEngine(1), surrogate, Sequences(np.array([0, 1, 0]))).probability.round(2)
    array([[0.98, 0.18],
           [0.  , 0.1 ]])
    >>> occurrence(CpuEngine(1), surrogate, Sequences(np.array([0, 1, 0])), method="exact").probability.round(2)
    array([[0.9 , 0.19],
           [0.  , 0.1 ]])
    """
    if method not in WAYS:
        raise unknown_name("method", method, WAYS)
    counted = np.ones(data.n_sequences) if weights is None else weights
    consumer = _Ask(surrogate, counted, method, n_samples, seed)
    parts, _, impossible = engine.run(Messages(surrogate, data, evidence), consumer)
    if impossible:
        raise impossible_error(impossible)
    for part in parts[1:]:
        parts[0].absorb(part)
    return parts[0]


class _Ask(Consumer[Occurrence]):
    """Adds up the answers of tiles."""

    def __init__(self, surrogate: Surrogate, weights: Array, method: str, n_samples: int, seed: int) -> None:
        self.transition = np.ascontiguousarray(surrogate.transition)
        self.weights = weights
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
        result.moves += weight * (block.pairs + block.surplus)
