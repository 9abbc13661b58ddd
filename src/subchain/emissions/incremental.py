"""Posteriors that move in small steps, as stochastic inference wants them.

    S ← keep · S + gain · fresh

A family whose parameters are few needs nothing of its own: `Incremental` builds the posterior anew for every surrogate.
A family whose tables are large (a vocabulary) overrides `Conjugate.incremental` and touches only what a minibatch uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from subchain.core.records import Sums

if TYPE_CHECKING:
    from subchain.emissions.base import Likelihood, Posterior


class Incremental:
    """The posterior of one component, from a prior and sums that change a little at a time.

    Parameters
    ----------
    prior : the component's distribution before the data
    sums : the component's sums to begin with
    """

    def __init__(self, prior: Posterior, sums: Any) -> None:
        self.prior = prior
        self._sums: Sums = sums

    def surrogate(self, kind: str) -> Likelihood:
        """The likelihood called `kind` ("expected_log", "predictive", "mean", "mode"); used before the next `blend`."""
        found: Likelihood = getattr(self.prior.update(self._sums), kind)()
        return found

    def blend(self, keep: float, gain: float, fresh: Any) -> None:
        """Let fresh sums, made by a surrogate of this object, enter the old ones."""
        self._sums = self._sums.scale(keep) + fresh.scale(gain)

    def steps(self, kind: str, values: Any) -> Any:
        """Return this posterior as compiled updates change it (`emissions.steps`); None where there is no such form.

        A family of the user's own may replace methods that the compiled form, which it inherits, stands for.
        """
        is_own = type(self.prior).__module__.partition(".")[0] == __name__.partition(".")[0]
        make = getattr(self.prior, "steps", None) if is_own else None
        return None if make is None else make(self._sums, kind, values)

    def take(self, steps: Any) -> None:
        """Go on from where compiled updates have led."""
        self._sums = steps.sums()

    def adopt(self, prior: Any) -> None:
        """Go on under another prior with the same sums."""
        self.prior = prior

    def sums(self) -> Any:
        """Return the sums as they stand, for results and files; they are not changed in place afterwards."""
        return self._sums

    def apply_factor(self) -> None:
        """Apply a factor that is kept beside the sums, if there is one; then `memory` has nothing of the sums."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """What is needed beside the sums to go on in the same bits."""
        return {}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        """The inverse of `memory`."""
