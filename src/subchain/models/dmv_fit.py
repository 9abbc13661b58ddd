"""One fit of the dependency model with valence."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from subchain.core.statistics import Statistics
from subchain.data.digest import digest
from subchain.errors import InputError
from subchain.models.grammar_fit import GrammarFit
from subchain.propagation.trees.passes import SCORE
from subchain.structures.trees.model import TreePoint, TreePosterior
from subchain.structures.trees.starts import start_statistics
from subchain.structures.trees.structure import DependencyTrees


@dataclasses.dataclass
class DMVFit(GrammarFit):
    """One call of `DMV.fit`.

    Attributes
    ----------
    concentrations : of the prior, by part
    start : the kind of start, or rules of the same tags
    """

    name = "DMV"
    structure: DependencyTrees
    concentrations: dict[str, float]
    start: str | TreePoint

    def prior(self) -> TreePosterior:
        chosen = dict.fromkeys(self.concentrations, 1.0) if self.algorithm.flat else self.concentrations
        return TreePosterior.symmetric(self.structure.n_tags, chosen)

    def begin(self, rng: np.random.Generator) -> tuple[Statistics, str]:
        if isinstance(self.start, str):
            return start_statistics(self.structure, self.start, rng), self.start
        self._check_derived(self.start)
        return self.structure.statistics(self.start), "given"

    def _check_derived(self, point: TreePoint) -> None:
        """Raise an `InputError` that names a sentence which rules to begin with cannot derive."""
        logs = self.structure.run(SCORE, point.rules(), np.arange(self.structure.n_clusters)).logs
        impossible = np.flatnonzero(np.isneginf(logs))
        if len(impossible):
            raise InputError(
                f"init: this grammar cannot derive {len(impossible)} sentences, the first of them sentence "
                f"{impossible[0]}, so it says nothing about them; leave them out, or begin with a grammar that was "
                "fitted with a prior, as inference='vi' does."
            )

    def identity(self) -> dict[str, Any]:
        tags, start = self.structure.tags, self.start
        return {
            "data": digest([tags.codes, tags.starts]),
            "n_tags": self.structure.n_tags,
            "is_hard": self.structure.is_hard,
            "concentrations": self.concentrations,
            "init": start if isinstance(start, str) else digest(start.arrays()),
        }
