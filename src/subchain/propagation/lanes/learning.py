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
def begin_blend(learned, keep, gain):
    """Prepare for `blend_part`, which several threads may call."""


@task
def blend_part(learned, keep, gain, rows, part):
    """Replace a part of the sums S by keep · S + gain · fresh; each row of `rows` holds the fresh sums of a tile.

    There are as many parts as rows. Threads do them in any order.
    """


@task
def end_blend(learned, keep, gain, parts):
    """Do what remains when all parts are done."""


@implements(clear_sums)
def _clear(likelihood, row):
    row[:] = 0.0


@implements(begin_blend)
def _begin(learned, keep, gain):
    pass


@implements(blend_part)
def _blend(learned, keep, gain, rows, part):
    sums, size, parts = learned.sums, learned.sums.shape[0], rows.shape[0]
    for i in range(part * size // parts, (part + 1) * size // parts):
        fresh = 0.0
        for tile in range(parts):
            fresh += rows[tile, i]
        sums[i] = keep * sums[i] + gain * fresh


@implements(end_blend)
def _end(learned, keep, gain, parts):
    pass
