"""Metropolis-Hastings sampling of whole clusters, with the parameters summed out (Johnson et al. 2007).

    C^-i    = counts of all clusters but i
    z*      ~ p(z^i | x^i, posterior predictive of C^-i)         of sentences: inside, then a tree from the top down
    z^i     = z* with probability min(1, p(z* | C^-i) q(z^i) / (p(z^i | C^-i) q(z*)))

The proposal q holds the predictive weights fixed within a cluster; the exact conditional p lets them change with every
use of a parameter (Wang 2016, 4.14-4.16 without the sentence's own counts in the denominator). They agree where no
parameter of a distribution is used twice in a cluster, and then every proposal is accepted.
"""

from __future__ import annotations

from typing import Any

from subchain.emissions import Emission
from subchain.inference.gibbs import Gibbs


class Hastings(Gibbs):
    """Draws of whole trees, or of the states of whole sequences, with the parameters summed out.

    Each is proposed from the posterior predictive weights of all others, and accepted or rejected, so that draws come
    from the posterior itself; `trace_.measures["accepted"]` has the share that was accepted. For chains it is
    ``Gibbs(block="sequence", parameters="collapsed")``.

    Parameters
    ----------
    n_samples, burn_in, thin, n_chains, annealing, keep_states, time_limit
        As in `Gibbs`; annealing is for chains of states only.

    Examples
    --------
    >>> from subchain.grammar import PCFG
    >>> from subchain.inference import Hastings
    >>> sentences = ["a a b", "a b", "a a a b"] * 5
    >>> grammar = PCFG("S -> A S | 'b'\\nA -> 'a' | 'b'", Hastings(n_samples=20, burn_in=10), progress=False)
    >>> grammar.fit(sentences).status_
    'completed'
    """

    name = "hastings"
    block, parameters = "sequence", "collapsed"

    def __init__(
        self,
        n_samples: int = 500,
        burn_in: int = 500,
        thin: int = 1,
        n_chains: int = 4,
        annealing: Any = None,
        keep_states: bool = False,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            self.block, self.parameters, n_samples, burn_in, thin, n_chains, annealing, keep_states, time_limit
        )

    def suited_to(self, emission: Emission) -> Hastings:
        return self
