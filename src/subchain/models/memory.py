"""Estimate of the memory that a fit needs.

The engine's tables have a fixed size and its sums the size of the model; only the messages at the boundaries of divided
sequences grow with the data, up to a limit. The estimate partitions the data in the same way as the engine and counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.data import Sequences, as_sequences
from subchain.emissions.choice import coded_numbers, emission_for
from subchain.emissions.moments import SAMPLE_VALUES
from subchain.engines import resolve_engine
from subchain.inference import resolve_inference
from subchain.inference.start.race import LENGTH, STRETCHES
from subchain.inference.start.starts import CONTEXT, DIMENSIONS, SAMPLE
from subchain.models.aligner import WordAligner
from subchain.models.alignment_memory import aligner_memory
from subchain.models.dmv import DMV
from subchain.models.grammar_memory import grammar_memory
from subchain.models.hmm import HMM
from subchain.models.latent_pcfg import LatentPCFG
from subchain.models.memory_parts import MemoryEstimate
from subchain.models.pcfg import PCFG
from subchain.transitions import resolve_transition
from subchain.transitions.hdp.hierarchy import hierarchy_of

#: Number of tables of the model's size that an iteration holds at once: old and new statistics, prior, posterior,
#: parameters and look-up tables of likelihoods; OTHER_TABLES if a pass has another surrogate than the point estimate.
POINT_TABLES, OTHER_TABLES = 6, 17
#: Tables over its excerpt that a race of starts works in.
RACE_TABLES = 4
#: Copies of the sample that k-means works with, and bytes that moments take for each number of their sample.
SAMPLE_COPIES, MOMENT_BYTES = 2, 10


def memory_estimate(model: HMM | WordAligner | DMV | PCFG | LatentPCFG, x: Any) -> MemoryEstimate:
    """Return the bytes that `model.fit(x)` needs besides the data.

    Parameters
    ----------
    model : HMM, WordAligner, DMV, PCFG or LatentPCFG
        Fitted or not; only its settings matter.
    x : as in `HMM.fit`
        Files are not read, except to count the symbols if their number was not given. For an aligner: parallel text, a
        file of it, or a tuple of two files or lists of sentences, of which the word pairs are counted. For a grammar:
        sentences, or the treebank, as its `fit` takes them; they are read. `LatentPCFG(training="split_merge")` takes
        less than is said, since annotations are merged. What else `fit` may be given is not counted: evidence about
        states may take as much as a table of one number for each position and state.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, memory_estimate
    >>> estimate = memory_estimate(HMM(12, "gaussian", n_jobs=2), np.zeros((100_000, 3)))
    >>> estimate.total < 50e6
    True
    """
    if isinstance(model, WordAligner):
        return aligner_memory(model, x)
    if isinstance(model, (DMV, PCFG, LatentPCFG)):
        return grammar_memory(model, x)
    data = as_sequences(x)
    n_states = int(model.n_states)
    emission = emission_for(model.emission, data).emission
    data = emission.prepare(coded_numbers(emission, data))
    zeros = emission.prior(data, n_states, flat=False).mean().zeros()
    transition = resolve_transition(model.transition)
    prior = transition.prior(n_states, flat=False)
    moves = prior.mean().operator
    sums_bytes = sum(array.nbytes for array in zeros.arrays().values()) + moves.weights.nbytes
    copies = 2 if transition.searches else 1  # a search over numbers of states keeps a copy to return to
    engine, algorithm = resolve_engine(model.engine, model.n_jobs), resolve_inference(model.inference)
    features = emission.features(data, np.arange(1))
    is_open = model.init == "auto" and hierarchy_of(prior) is None
    is_race = features is not None and is_open
    in_context = model.init == "context" or is_race or (is_open and int(model.n_init) > 1)
    n_numbers = 0 if features is None else features.shape[1]
    if features is None and in_context and data.n_features == 1:  # symbols have numbers where contexts are clustered
        n_numbers = min(DIMENSIONS, int(getattr(zeros, "n_categories", DIMENSIONS)))
    of_pass = engine.pass_memory(data, moves, sums_bytes)
    working = algorithm.working_bytes(data.lengths, n_states, of_pass.n_jobs, has_symbols=features is None)
    is_pass = working is None and not algorithm.flat
    if working is not None and is_race:  # workers keep the tables of the race
        working = max(working, 8 * RACE_TABLES * n_states * min(STRETCHES * LENGTH, data.n_observations))
    return MemoryEstimate(
        tables=of_pass.tables if working is None else working,
        sums=of_pass.sums if working is None else 0,
        borders=of_pass.borders if working is None else 0,
        model=(OTHER_TABLES if is_pass else POINT_TABLES) * sums_bytes + copies * transition.held_bytes(n_states),
        kept=copies * algorithm.kept_bytes(data.lengths, n_states),
        start=_start_bytes(data, n_states, n_numbers * (CONTEXT if in_context else 1), model.init) if n_numbers else 0,
    )


def _start_bytes(data: Sequences, n_states: int, n_features: int, init: Any) -> int:
    """Return the memory for moments of the data, or for k-means: distances, and copies of the sample."""
    of_moments = MOMENT_BYTES * min(data.n_observations * data.n_features, SAMPLE_VALUES)
    if not isinstance(init, str) or init in ("exponential", "parts"):
        return of_moments
    return max(of_moments, 8 * min(data.n_observations, SAMPLE) * (n_states + SAMPLE_COPIES * n_features))
