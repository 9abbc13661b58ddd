"""Stochastic collapsed variational inference for HMMs (Wang & Blunsom 2015)."""

from __future__ import annotations

from subchain.core.parts import IncrementalPosterior
from subchain.inference.stochastic.settings import Stochastic
from subchain.inference.stochastic.updates import Draw


class SCVI(Stochastic):
    """As `SVI`, with the parameters summed out: subchains are run under the posterior predictive.

    Its natural boundary is `Guards()`. Better than `SVI` where counts are sparse, as in text.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain import HMM, SCVI, Guards
    >>> x = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1] * 200)
    >>> inference = SCVI(length=10, batch=10, boundary=Guards(), max_updates=50)
    >>> HMM(2, "categorical", inference=inference, random_state=0).fit(x).n_states_
    2
    """

    name = "scvi"
    hierarchy_treatment = "collapsed"
    flat = False
    kind = "predictive"

    def update(self, model: IncrementalPosterior, draw: Draw) -> None:
        """Move the expected counts towards those of the minibatch, scaled to all the data (equations 11 and 12).

        For large data a compiled call does the same, several updates at a time (`run_updates`).
        """
        weights = model.weights("predictive")  # E[θ] under the present counts, (9) and (10)
        fresh = draw.expected_statistics(weights)  # forward-backward between the boundary's messages
        rate = draw.step_size(fresh)
        model.blend(1.0 - rate, fresh.scaled(rate), fresh.statistics)  # C ← (1 − ρ) C + ρ · scale · E[C of minibatch]
