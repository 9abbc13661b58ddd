"""Stochastic variational inference for HMMs (Foti, Xu, Laird & Fox 2014)."""

from __future__ import annotations

from subchain.core.parts import IncrementalPosterior
from subchain.inference.stochastic.settings import Stochastic
from subchain.inference.stochastic.updates import Draw


class SVI(Stochastic):
    """Variational inference that looks at a few subchains, or a few sequences, at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, SVI
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 200)
    >>> inference = SVI(length=10, batch=10, max_updates=50)
    >>> HMM(2, "categorical", inference=inference, random_state=0).fit(x).n_states_
    2
    """

    name = "svi"
    hierarchy_treatment = "variational"
    flat = False
    kind = "expected_log"

    def update(self, model: IncrementalPosterior, draw: Draw) -> None:
        """Take a natural-gradient step towards the parameters that the minibatch alone would give.

        For large data a compiled call does the same, several updates at a time (`run_updates`).
        """
        weights = model.weights("expected_log")  # exp E[log θ]
        fresh = draw.expected_statistics(weights)
        rate = draw.step_size(fresh)
        model.blend(1.0 - rate, fresh.scaled(rate), fresh.statistics)  # S ← (1 − ρ) S + ρ · scale · fresh
