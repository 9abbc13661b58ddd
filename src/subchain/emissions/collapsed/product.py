"""Counts of a product of families: pairs of the parts' counts for kernels, and their sums by name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from subchain.emissions.collapsed.counts import EmissionCounts, PairCounts
from subchain.emissions.collapsed.shards import Map
from subchain.emissions.product import ProductSums
from subchain.propagation.collapsed.shards import Blocks


class ProductCounts(EmissionCounts):
    """Counts of every part, by name.

    Sums are kept if all parts keep theirs. Otherwise the ledger adds them up anew, in another order, and checkpoints
    keep those that there are.
    """

    def __init__(self, parts: Mapping[str, EmissionCounts]) -> None:
        kernel = _paired([part.kernel for part in parts.values()])
        known = {name: part.live for name, part in parts.items() if part.live is not None}
        carried = {f"{name}.{key}": array for name, part in parts.items() for key, array in part.carried.items()}
        if len(known) < len(parts):
            for name, sums in known.items():
                carried |= {f"{name}.sums.{key}": array for key, array in sums.arrays().items()}
        live = ProductSums(known) if len(known) == len(parts) else None
        super().__init__(kernel, live, carried, all(part.is_exact for part in parts.values()))
        self.parts = dict(parts)

    def shards(self, blocks: Blocks) -> ProductShards:
        return ProductShards(self, blocks)

    def log_evidence(self, prior: Any) -> float | None:
        found = [part.log_evidence(prior.parts[name]) for name, part in self.parts.items()]
        known = [value for value in found if value is not None]
        return sum(known) if len(known) == len(found) else None


class ProductShards:
    """Copies of every part's counts for shards."""

    def __init__(self, counts: ProductCounts, blocks: Blocks) -> None:
        self._parts = {name: part.shards(blocks) for name, part in counts.parts.items()}

    def adopt(self, counts: ProductCounts) -> None:
        for name, part in self._parts.items():
            part.adopt(counts.parts[name])

    def begin(self, shard: int, round_number: int) -> Any:
        return _paired([part.begin(shard, round_number) for part in self._parts.values()])

    def merge(self, round_number: int, map_items: Map) -> None:
        for part in self._parts.values():
            part.merge(round_number, map_items)


def _paired(kernels: list[Any]) -> Any:
    """Return the parts' counts for kernels as pairs of the first and all others."""
    return functools.reduce(lambda others, first: PairCounts(first, others), kernels[::-1])
