"""The boundary of a run: given as an object or by its name, or chosen ("auto").

Measured on text, chromatin marks and Gaussian regimes (`python -m experiments run boundary_choice`), a buffer as long
as the mixing time is best for almost every length of subchains and number of passes, but it costs several times a pass
where subchains are shorter than that. Guards cost nothing, and come close to buffers once every subchain was visited a
few times. So a run gets a buffer, unless subchains are short and are visited more than once.
"""

from __future__ import annotations

from typing import Protocol

from subchain.errors import unknown_name
from subchain.structures.base import Plan
from subchain.structures.chain.boundaries import Boundary, Buffer, Stationary
from subchain.structures.chain.growing_buffer import GrowBuffer
from subchain.structures.chain.guards import Guards

BOUNDARIES: dict[str, type[Boundary]] = {
    "stationary": Stationary,
    "buffer": Buffer,
    "growing": GrowBuffer,
    "guards": Guards,
}
AUTO = "auto"
#: Mixing time of chains for which it was not measured.
USUAL_MIXING_TIME = 20
#: Subchains of so many mixing times are long: a buffer on both sides at most doubles their cost.
LONG = 2
#: Visits of a subchain from which on guards are worth having, and bytes that they may take.
VISITS, GUARD_BYTES = 2.0, 1 << 28


class RunLimits(Protocol):
    """The settings of a stochastic algorithm that say how long subchains are and how often each is visited."""

    boundary: str | Boundary
    starts: str
    max_updates: int | None
    max_passes: float | None


def resolve_boundary(given: str | Boundary) -> Boundary | None:
    """Return a boundary from its name, or itself; None if it is to be chosen."""
    if isinstance(given, Boundary):
        return given
    if isinstance(given, str) and given.lower() == AUTO:
        return None
    if isinstance(given, str) and given.lower() in BOUNDARIES:
        return BOUNDARIES[given.lower()]()
    raise unknown_name("boundary", given, [*BOUNDARIES, AUTO])


def boundary_of(settings: RunLimits, plan: Plan, longest: int, mixing_time: int | None, n_states: int) -> Boundary:
    """Return the boundary that was given, or the best one for such subchains of sequences of at most `longest`."""
    given = resolve_boundary(settings.boundary)
    if given is not None:
        return given
    if plan.length >= longest:
        return Stationary()
    mixing = USUAL_MIXING_TIME if mixing_time is None else mixing_time
    is_long = plan.length >= LONG * mixing
    fits = settings.starts == "grid" and Guards().held_bytes(plan.n_units, n_states) <= GUARD_BYTES
    if not is_long and fits and _visits(settings, plan) >= VISITS:
        return Guards()
    return Buffer(min(mixing, longest - 1))


def _visits(settings: RunLimits, plan: Plan) -> float:
    """Return how often a run visits each subchain, on average; runs without such a limit visit them often."""
    limits = [] if settings.max_passes is None else [settings.max_passes]
    if settings.max_updates is not None:
        limits.append(settings.max_updates * plan.size / plan.n_units)
    return min(limits, default=VISITS)
