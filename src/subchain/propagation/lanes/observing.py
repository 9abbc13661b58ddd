"""What passes over lanes ask of a family of emissions: verbs of a named tuple of arrays (see `propagation.verbs`).

A family holds its data and what its likelihoods are computed from. Observations are gathered once for each tile, into a
*room* that belongs to the family, and used twice: for likelihoods and for sums. Sums are a row of numbers: the arrays
of the family's `Sums` one after the other, in the order of its fields.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from subchain.propagation.verbs import room, task


@room
def observation_room(family, columns):
    """Return tables for the observations of at most so many columns."""


@task
def observe(family, positions, seen):
    """Gather the observations at some positions (n,) into the room `seen`; return whether none needs another method."""


@task
def likelihoods(family, seen, out, shift):
    """Write the likelihoods of the observations in a room, divided by exp(shift), into `out` (K, n) and `shift` (n,).

    The largest of each column is between 1e-30 and 1e30, unless the observation is impossible in every state.
    """


@task
def log_likelihoods(family, seen, out):
    """Write the log likelihoods of the observations in a room into `out` (K, n)."""


@task
def add_observations(family, seen, marginals, sums):
    """Add the statistics of the observations in a room, weighted by their marginals (K, n), to a row of sums."""
