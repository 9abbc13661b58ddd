"""What the structures of all grammars share: statistics are counts of rules, collapsed visits take whole sentences."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from subchain.core.parts import Posterior
from subchain.core.statistics import Statistics
from subchain.errors import InputError
from subchain.structures.clusters import ClusterStructure
from subchain.structures.counted_ledger import CountedLedger
from subchain.structures.settings import CollapsedSettings


class HiddenTrees(ClusterStructure):
    """Base of structures whose clusters hide trees, or annotations of trees; see `ClusterStructure`."""

    #: Whether several clusters may be excluded together.
    has_groups: ClassVar[bool] = False

    @abstractmethod
    def record(self, counts: Any, log_normalizer: float, n: float) -> Statistics:
        """Return counts of rules as statistics."""

    @abstractmethod
    def ledger_of(self, prior: Posterior, cluster_size: int) -> CountedLedger:
        """Return the ledger of collapsed inference."""

    def ledger(self, algorithm: CollapsedSettings, prior: Posterior) -> CountedLedger:  # type: ignore[override]
        if algorithm.cluster not in ("auto", "sequence"):
            raise InputError(f"CVI: cluster={algorithm.cluster!r} is for chains; grammars have cluster='sequence'.")
        if algorithm.cluster_size != 1 and not self.has_groups:
            raise InputError("CVI: cluster_size= is for chains and treebanks; sentences are visited one by one.")
        if algorithm.storage is not None:
            raise InputError("CVI: storage= is for chains, not for grammars.")
        if algorithm.order == "shards":
            raise InputError(
                "CVI: order='shards' is for chains and alignments; grammars have 'incremental', 'shuffled' or 'batch'."
            )
        return self.ledger_of(prior, int(algorithm.cluster_size))
