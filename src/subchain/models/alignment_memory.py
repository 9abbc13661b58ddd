"""Estimate of the memory that a fit of a word aligner needs."""

from __future__ import annotations

from typing import Any

from subchain.errors import InputError
from subchain.models.aligner import WordAligner
from subchain.models.alignment_stages import stage_jumps
from subchain.models.memory_parts import MemoryEstimate
from subchain.structures.alignment.structure import BLOCK_CELLS
from subchain.structures.alignment.text import AlignedText

#: Bytes of a word pair during a pass, by algorithm: its target word, and tables of two doubles: counts, those that take
#: their place, and weights, where these are kept.
PAIR_BYTES = {"cvi": 4 + 2 * 16 + 2, "scvi": 4 + 2 * 16, "em": 4 + 3 * 16, "vi": 4 + 3 * 16}
#: Further bytes of a word pair between two passes, when weights are made of counts.
WEIGHING_BYTES = {"cvi": 0, "scvi": 0, "em": 2 * 16, "vi": 7 * 16 + 8}
#: Bytes of a cell: its word pair, and posteriors in both directions.
CELL_BYTES = {"cvi": 4 + 2 * 4, "scvi": 0, "em": 4, "vi": 4}
#: Bytes of a sentence pair: where its cells begin, its length, and its place in minibatches.
SENTENCE_BYTES = 24
#: Bytes of a cell while a block is computed, and of all its jumps.
BLOCK_BYTES = 30


def aligner_memory(aligner: WordAligner, x: Any) -> MemoryEstimate:
    """Return the bytes that `aligner.fit(x)` needs besides the text; `x` as in `memory_estimate`."""
    aligner._check()
    algorithm = aligner._algorithm(0)
    if algorithm.name not in PAIR_BYTES:
        raise InputError(f"memory_estimate: the memory of {algorithm.name!r} for word aligners is not known.")
    source, target = x if isinstance(x, tuple) else (x, None)
    data = AlignedText.of(aligner._text(source, target), keeps_entries=False, n_jobs=aligner._jobs())
    jumps = max(stage_jumps(stage, aligner.get_params(deep=False)).counts.size for stage in aligner.stages)
    n_pairs = len(data.targets)
    of_jumps = 4 * jumps * data.n_pairs if algorithm.name == "cvi" else 0
    kept = CELL_BYTES[algorithm.name] * data.n_cells + of_jumps + SENTENCE_BYTES * data.n_pairs
    return MemoryEstimate(
        tables=0 if algorithm.name == "cvi" else BLOCK_BYTES * min(BLOCK_CELLS, data.n_cells),
        sums=0,
        model=PAIR_BYTES[algorithm.name] * n_pairs,
        borders=0,
        start=kept + WEIGHING_BYTES[algorithm.name] * n_pairs,
        kept=kept,
    )
