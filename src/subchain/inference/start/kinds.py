"""Which kinds of starts the runs of a fit begin with if the user leaves it open.

The first run begins with the winner of a race. Further runs begin with one kind after the other: runs from starts of
one kind often end in the same local optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice

#: Kinds that race, and kinds of further runs: for observations that have distances, for symbols, for many symbols.
DISTANCES = ("kmeans", "context"), ("context", "random", "kmeans", "exponential")
SYMBOLS = ("exponential",), ("context", "exponential")
MANY_SYMBOLS = ("stochastic",), ("exponential", "context")
#: Kinds that race too if the states of some positions are known.
LABELLED = ("known",)
#: Observations that are many.
MANY = 50_000


def kinds_of_runs(
    n_runs: int, n_observations: int, *, has_distances: bool, is_acyclic: bool, is_labelled: bool = False
) -> Iterator[tuple[str, ...]]:
    """Return the kinds of starts that race for each run.

    Parameters
    ----------
    has_distances : whether observations can be clustered by their distances
    is_acyclic : whether the chain never returns to a state
    is_labelled : whether the states of some positions are known

    Examples
    --------
    >>> list(kinds_of_runs(3, 1000, has_distances=True, is_acyclic=False))
    [('kmeans', 'context'), ('context',), ('random',)]
    """
    symbols = SYMBOLS if n_observations < MANY else MANY_SYMBOLS
    racing, further = DISTANCES if has_distances else symbols
    yield ("parts",) if is_acyclic else (*racing, *LABELLED) if is_labelled else racing
    yield from islice(((kind,) for kind in cycle(further)), n_runs - 1)
