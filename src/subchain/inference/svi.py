"""Stochastic variational inference for HMMs (Foti, Xu, Laird & Fox 2014)."""

from __future__ import annotations

from subchain.inference.stochastic.updates import Stochastic


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
    flat = False
    kind = "expected_log"
