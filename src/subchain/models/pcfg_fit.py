"""One fit of a context-free grammar."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.statistics import Statistics
from subchain.data.digest import digest
from subchain.errors import InputError
from subchain.models.grammar_fit import GrammarFit
from subchain.propagation.phrases.passes import SCORE
from subchain.structures.phrases.model import PhrasePoint, PhrasePosterior
from subchain.structures.phrases.starts import begun, start_statistics
from subchain.structures.phrases.structure import PhraseTrees

Array = NDArray[np.float64]


@dataclasses.dataclass
class PCFGFit(GrammarFit):
    """One call of `PCFG.fit`.

    Attributes
    ----------
    concentration : of each rule; 0 for those that are not allowed
    given : probabilities of the rules, for the start "given"
    start : the kind of start, or weights of the same rules
    """

    name = "PCFG"
    structure: PhraseTrees
    concentration: Array
    given: Array
    start: str | PhrasePoint

    def prior(self) -> PhrasePosterior:
        chosen = (self.concentration > 0.0).astype(np.float64) if self.algorithm.flat else self.concentration
        return PhrasePosterior.of(self.structure.rules, chosen)

    def begin(self, rng: np.random.Generator) -> tuple[Statistics, str]:
        if isinstance(self.start, PhrasePoint):
            self._check_derived(self.start)
            return begun(self.structure, self.start.rules.weights, self.prior()), "given"
        return start_statistics(self.structure, self.start, self.given, self.prior(), rng), self.start

    def _check_derived(self, point: PhrasePoint) -> None:
        """Raise an `InputError` that names a sentence which weights to begin with cannot derive."""
        logs = self.structure.run(SCORE, point.rules.weights, np.arange(self.structure.n_clusters)).logs
        impossible = np.flatnonzero(np.isneginf(logs))
        if len(impossible):
            raise InputError(
                f"init: this grammar cannot derive {len(impossible)} of the sentences, such as "
                f"{' '.join(self.structure.sentences[impossible[0]])!r:.60}, so it says nothing about them; leave them "
                "out, or begin with a grammar that was fitted with a prior, as inference='vi' does."
            )

    def identity(self) -> dict[str, Any]:
        text, rules, start = self.structure.text, self.structure.rules, self.start
        right = np.array([code for side in rules.right for code in (len(side), *side)], dtype=np.int64)
        return {
            "data": digest([text.tokens, text.edges, text.edge, text.brackets, text.bracket]),
            "rules": digest([rules.left, right]),
            "is_hard": self.structure.is_hard,
            "concentrations": digest([self.concentration]),
            "init": start if isinstance(start, str) else digest(start.arrays()),
        }
