"""Which kinds of starts the runs of a fit begin with if the user leaves it open.

The first run begins with the winner of a race. Further runs begin with one kind after the other: runs from starts of
one kind often end in the same local optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice

#: Kinds that race, and kinds of further runs, for observations that have distances and for symbols.
RACING, FURTHER = ("kmeans", "context"), ("context", "random", "kmeans", "exponential")
RACING_SYMBOLS, FURTHER_SYMBOLS = ("exponential",), ("context", "exponential")


def kinds_of_runs(n_runs: int, *, has_distances: bool, is_acyclic: bool) -> Iterator[tuple[str, ...]]:
    """Return the kinds of starts that race for each run.

    Parameters
    ----------
    has_distances : whether observations can be clustered by their distances
    is_acyclic : whether the chain never returns to a state

    Examples
    --------
    >>> list(kinds_of_runs(3, has_distances=True, is_acyclic=False))
    [('kmeans', 'context'), ('context',), ('random',)]
    """
    racing, further = (RACING, FURTHER) if has_distances else (RACING_SYMBOLS, FURTHER_SYMBOLS)
    first = ("parts",) if is_acyclic else racing
    yield first
    yield from islice(((kind,) for kind in cycle(further)), n_runs - 1)
