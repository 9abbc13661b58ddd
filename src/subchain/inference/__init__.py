"""How posteriors are found: the loop, and the algorithms that run in it."""

from subchain.errors import unknown_name
from subchain.inference.base import Algorithm
from subchain.inference.em import EM
from subchain.inference.vi import VI

ALGORITHMS: dict[str, type[Algorithm]] = {"em": EM, "vi": VI}


def resolve_inference(given: str | Algorithm | None) -> Algorithm:
    """An algorithm from its name, itself, or the default (variational inference)."""
    if given is None:
        return VI()
    if isinstance(given, Algorithm):
        return given
    if isinstance(given, str) and given.lower() in ALGORITHMS:
        return ALGORITHMS[given.lower()]()
    raise unknown_name("inference algorithm", given, ALGORITHMS)


__all__ = ["ALGORITHMS", "EM", "VI", "Algorithm", "resolve_inference"]
