"""What compiled stochastic updates ask of a family of emissions: verbs of a named tuple (see `propagation.verbs`).

Such a tuple holds the prior, the current sums and, as its field `likelihood`, a family as in `observing.py` whose
parameters follow from both. A family whose sums are a row of numbers, the field `sums`, has to implement `weigh_family`
alone.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from subchain.propagation.verbs import implements, task


@task
def weigh_family(learned, kind):
    """Work out the likelihoods under the current sums, `kind` being as in `core.parts.KINDS`.

    Return whether that could be done; the general method is asked otherwise.
    """


@task
def clear_sums(likelihood, row):
    """Prepare a row for the sums of a tile."""


@task
def blend_family(learned, keep, gain, rows):
    """Replace the sums S by keep · S + gain · fresh; each row of `rows` holds the fresh sums of a tile."""


@implements(clear_sums)
def _clear(likelihood, row):
    row[:] = 0.0


@implements(blend_family)
def _blend(learned, keep, gain, rows):
    sums = learned.sums
    for i in range(sums.shape[0]):
        fresh = 0.0
        for tile in range(rows.shape[0]):
            fresh += rows[tile, i]
        sums[i] = keep * sums[i] + gain * fresh
