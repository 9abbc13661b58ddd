"""The most probable paths of many sequences whose positions have few legal states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.engines.cpu.listed import LegalMessages, Pieces
from subchain.engines.cpu.workspace import Workers
from subchain.errors import impossible_error
from subchain.propagation.listed.paths import sweep, trace


def best_paths(workers: Workers, messages: LegalMessages, states: NDArray[Any]) -> NDArray[np.float64]:
    """Write the most probable path of every sequence into `states` (N,); return the paths' log probabilities.

    Raises
    ------
    ImpossibleSequenceError
        If a sequence has no path.
    """
    offsets = messages.messages.data.offsets
    with np.errstate(divide="ignore"):
        log_initial = np.log(messages.initial)
    log_transition = messages.messages.kernels.log_forms.forward

    def decode(pieces: Pieces) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        block = messages.block(pieces)
        delta, totals = messages.log_likelihood(block), np.empty(len(pieces.starts))
        dead = np.empty(len(pieces.starts), dtype=np.int64)
        sweep(delta, log_transition, log_initial, block.lists, totals, dead)
        trace(delta, log_transition, block.lists, states[block.positions])
        return totals, np.where(dead < 0, -1, pieces.starts[0] + dead - offsets[pieces.sequences])

    blocks = messages.blocks(np.arange(len(offsets) - 1))
    log_probability, impossible = np.zeros(len(offsets) - 1), dict[int, int]()
    for pieces, (totals, dead) in zip(blocks, workers.map(decode, blocks), strict=True):
        np.add.at(log_probability, pieces.sequences, totals)
        for piece in np.flatnonzero(dead >= 0):
            impossible.setdefault(int(pieces.sequences[piece]), int(dead[piece]))
    if impossible:
        raise impossible_error(impossible)
    return log_probability
