"""Which likelihoods compiled passes may take: those whose methods are the ones that the compiled verbs stand for."""

from __future__ import annotations

from typing import Any

from subchain.emissions.base import Likelihood, Values

#: Methods of a likelihood that compiled verbs stand for.
REPLACED = {"log_likelihood", "_log_likelihood_into", "scaled", "accumulate", "zeros", "origin"}


def compiled_form(likelihood: Likelihood, values: Values, *, logs: bool = False) -> Any:
    """Return what compiled passes see of a likelihood and all observations; None where its methods have to be asked."""
    if _is_overridden(type(likelihood)):
        return None
    return likelihood.compiled_logs(values) if logs else likelihood.compiled(values)


def _is_overridden(kind: type) -> bool:
    """Whether a class of the user's own replaces a method that the compiled verbs it inherits stand for."""
    for one in kind.__mro__:
        if "compiled" in vars(one):
            return False
        if one.__module__.partition(".")[0] != __name__.partition(".")[0] and vars(one).keys() & REPLACED:
            return True
    return False
