"""Who runs hidden chains over data: the protocol, the engines that have names, and what they take and return."""

from __future__ import annotations

from collections.abc import Callable

from subchain.engines.base import Engine, check_engine
from subchain.engines.cluster.engine import Cluster
from subchain.engines.cpu.engine import Cpu, CpuEngine
from subchain.engines.part import Part
from subchain.engines.surrogate import Surrogate
from subchain.errors import unknown_name

#: Engines that have a name, made for a number of jobs (None for all cores).
ENGINES: dict[str, Callable[[int | None], Engine]] = {"auto": Cpu, "cpu": Cpu}


def resolve_engine(given: str | Engine, n_jobs: int | None = None) -> Engine:
    """Return the engine with this name, with so many jobs; an object with all verbs of `Engine` is returned itself.

    Examples
    --------
    >>> resolve_engine("cpu", 1)
    Cpu(n_jobs=1)
    """
    if isinstance(given, Cpu):
        return given.with_jobs(n_jobs)
    if not isinstance(given, str):
        return check_engine(given)
    if given not in ENGINES:
        raise unknown_name("engine", given, ENGINES)
    return ENGINES[given](n_jobs)


__all__ = ["ENGINES", "Cluster", "Cpu", "CpuEngine", "Engine", "Part", "Surrogate", "resolve_engine"]
