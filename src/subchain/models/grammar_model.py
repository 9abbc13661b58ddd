"""What the estimators of grammars share: seeds, what a run leaves, and the rules that a grammar is used with."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from subchain.core.checks import whole_number
from subchain.core.components import Component
from subchain.core.parts import Point, Posterior
from subchain.errors import NotFittedError
from subchain.inference import Algorithm
from subchain.inference.run.checkpoint import stored_entropy
from subchain.inference.run.journey import Journey, RunSummary
from subchain.inference.run.trace import Trace
from subchain.numerics.seeds import seed_sequence


class GrammarModel(Component):
    """Base of `DMV`, `PCFG` and `LatentPCFG`."""

    posterior_: Any
    kind_: str
    trace_: Trace
    status_: str
    runs_: list[RunSummary]
    n_init: int
    iterations: int | None
    random_state: Any

    def _check_counts(self, *names: str) -> None:
        """Raise an `InputError` unless these settings are positive whole numbers, or None."""
        whole_number(self, "n_init")
        for name in ("iterations", *names):
            if getattr(self, name) is not None:
                whole_number(self, name)

    def _seeds(
        self, checkpoint: str | os.PathLike[str] | None, resume: bool | None
    ) -> tuple[np.random.SeedSequence, bool]:
        """Return where random numbers come from, and whether it was given; a resumed run has that of its checkpoint."""
        is_given = self.random_state is not None
        entropy = None if is_given or not resume else stored_entropy(checkpoint)
        return seed_sequence(self.random_state if entropy is None else entropy), is_given

    def _take_run(self, journey: Journey, algorithm: Algorithm) -> None:
        """Keep the history of the best run, and which weights its posterior is used with."""
        best = journey.best
        assert best is not None
        self.kind_ = "mode" if algorithm.flat else "mean"
        self.trace_, self.status_, self.runs_ = best.trace, best.status or "max_iter", journey.summaries

    def _fitted(self) -> Posterior:
        """Return the posterior; raise a `NotFittedError` if there is none."""
        found: Posterior | None = getattr(self, "posterior_", None)
        if found is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit first, or load a file.")
        return found

    def _weights(self) -> Point:
        """Return the rules that the grammar is used with: the mode of `EM`, else the posterior mean."""
        return self._fitted().weights(self.kind_)
