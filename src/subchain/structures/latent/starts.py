"""Statistics to begin with: the uses of each rule spread evenly over its split versions, times 1 + U(−ε, ε).

Without the noise all annotations would stay alike.
"""

from __future__ import annotations

import numpy as np

from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import entries_of
from subchain.structures.latent.model import AnnotatedStatistics
from subchain.structures.latent.structure import AnnotatedTrees


def start_statistics(
    structure: AnnotatedTrees, grammar: TreebankGrammar, noise: float, rng: np.random.Generator
) -> AnnotatedStatistics:
    """Return the counts of the treebank, spread over annotations with noise."""
    versions = structure.layout.rules.sizes.astype(np.int64).prod(axis=1)
    counts = np.empty(structure.layout.n_entries)
    counts[entries_of(structure.layout)] = np.repeat(grammar.counts / versions, versions)
    counts *= 1.0 + rng.uniform(-noise, noise, len(counts))
    return structure.record(counts, 0.0, structure.total_weight)
