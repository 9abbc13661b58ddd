"""Counts of a product of families: pairs of the parts' counts for kernels, and their sums by name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from subchain.emissions.collapsed.counts import EmissionCounts, PairCounts
from subchain.emissions.product import ProductSums


class ProductCounts(EmissionCounts):
    """Counts of every part, by name.

    Sums are kept if all parts keep theirs. Otherwise the ledger adds them up anew, in another order, and checkpoints
    keep those that there are.
    """

    def __init__(self, parts: Mapping[str, EmissionCounts]) -> None:
        kernel = functools.reduce(lambda others, first: PairCounts(first, others), _kernels(parts))
        known = {name: part.live for name, part in parts.items() if part.live is not None}
        carried = {f"{name}.{key}": array for name, part in parts.items() for key, array in part.carried.items()}
        if len(known) < len(parts):
            for name, sums in known.items():
                carried |= {f"{name}.sums.{key}": array for key, array in sums.arrays().items()}
        live = ProductSums(known) if len(known) == len(parts) else None
        super().__init__(kernel, live, carried, all(part.is_exact for part in parts.values()))
        self.parts = dict(parts)

    def log_evidence(self, prior: Any) -> float | None:
        found = [part.log_evidence(prior.parts[name]) for name, part in self.parts.items()]
        known = [value for value in found if value is not None]
        return sum(known) if len(known) == len(found) else None


def _kernels(parts: Mapping[str, EmissionCounts]) -> list[Any]:
    """The parts' counts for kernels, the last part first."""
    return [part.kernel for part in parts.values()][::-1]
