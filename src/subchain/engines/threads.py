"""Threads for structures other than chains: the helpers of the engine for processors, without the engine."""

from __future__ import annotations

from subchain.engines.cpu.crew import crew, n_cores

#: Run work that threads claim in this thread and in up to `n_jobs` − 1 others; see `Crew.share`.
share = crew.share

__all__ = ["n_cores", "share"]
