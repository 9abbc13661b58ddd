"""When stochastic runs update their hyperparameters and when they are searched for better states.

Both follow from the number of updates that were done, never from a limit: a run whose limit is raised must have done
what one with the higher limit from the beginning has done.
"""

from __future__ import annotations

from subchain.inference.run.loop import Search

#: Updates between two updates of the hyperparameters: at first one, then this share of the updates that were done, and
#: at most so many.
PAUSE_SHARE, LONGEST_PAUSE = 1.0 / 20.0, 10
#: Rounds between two searches, at first.
ROUNDS = 3
#: Number of updates times their rate when a run is ripe for searches: it has left its start behind. A search that
#: hurries comes earlier, but only each time the number of updates has doubled.
RIPE = 12.0


def pause_at(update: int) -> int:
    """Return the number of updates between two updates of the hyperparameters after so many updates."""
    return min(max(int(PAUSE_SHARE * update), 1), LONGEST_PAUSE)


def until_pause(done: int) -> int:
    """Return the number of updates until the next update of the hyperparameters.

    Examples
    --------
    >>> [until_pause(done) for done in (0, 10, 40, 41, 60, 500)]
    [1, 1, 2, 1, 3, 10]
    """
    return next(n for n in range(1, LONGEST_PAUSE + 1) if (done + n) % pause_at(done + n) == 0)


def is_time(search: Search, done: int, rate: float) -> bool:
    """Return whether a run may be searched after `done` updates, the last of which had this rate."""
    times, rest = divmod(done, ROUNDS * search.round)
    if rest or not times:
        return False
    return rate * done >= RIPE or (search.hurries and times & (times - 1) == 0)


def until_time(search: Search, done: int) -> int:
    """Return the number of updates until a run may next be searched."""
    return ROUNDS * search.round - done % (ROUNDS * search.round)
