"""Priors of which nothing is learned: what a hierarchical prior does between iterations, they do by doing nothing.

A prior may itself be learned: the parent that rows of moves share, a concentration. Then a run keeps a prior of the
moment, which is moved between iterations by `renew`; the posterior is a function of this prior and of the statistics.
"""

from __future__ import annotations

from typing import Any, Self


class Settled:
    """The verbs of a prior that stays as it was."""

    @property
    def moves(self) -> bool:
        """Whether anything of the prior is learned."""
        return False

    def renew(self, *observed: Any) -> Self:
        """This prior with what is learned of it moved towards what suits the statistics."""
        return self

    def log_hyper(self) -> float:
        """What the present state of the prior is worth: its log density, or less its divergence from its own prior."""
        return 0.0
