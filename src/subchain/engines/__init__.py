"""Who runs propagation over many chains."""

from subchain.engines.cpu.engine import CpuEngine
from subchain.engines.surrogate import Surrogate
from subchain.errors import unknown_name


def resolve_engine(name: str, n_jobs: int | None = None) -> CpuEngine:
    """An engine from its name."""
    if name in ("auto", "cpu"):
        return CpuEngine(n_jobs)
    raise unknown_name("engine", name, ["auto", "cpu"])


__all__ = ["CpuEngine", "Surrogate", "resolve_engine"]
