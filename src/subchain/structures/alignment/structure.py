"""The structure of word alignment: sentence pairs are clusters, and what is hidden in them are links and jumps."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from subchain.core.parts import Posterior
from subchain.engines.threads import share
from subchain.errors import InputError
from subchain.propagation.alignment.cooccurrence import Cells
from subchain.propagation.alignment.drawing import draw_pairs
from subchain.propagation.alignment.pair import Model, Shares, Table, Totals
from subchain.propagation.alignment.passes import NO_TOTALS, add_shares, expect_pairs
from subchain.structures.alignment.ledger import AlignmentLedger, WordLedger
from subchain.structures.alignment.model import AlignmentPoint, AlignmentStatistics
from subchain.structures.alignment.rounds import RoundLedger
from subchain.structures.alignment.text import AlignedText
from subchain.structures.alignment.walkers import AlignmentWalkers
from subchain.structures.base import Plan
from subchain.structures.cluster_walkers import ClusterWalkers
from subchain.structures.clusters import BATCH_OBSERVATIONS, ClusterStructure
from subchain.structures.settings import CollapsedSettings, SamplingSettings, StochasticSettings
from subchain.tables import JumpSums, PredictiveCounts, TranslationSums

Index = NDArray[np.int64]

#: Cells whose posteriors are computed before they are added to the sums.
BLOCK_CELLS = 1 << 18
#: Minibatches of a pass, at most, if their size was left open: an update takes time for every word pair.
MOST_BATCHES = 20


class Alignments(ClusterStructure):
    """Sentence pairs with hidden alignments in both directions; see `ClusterStructure`.

    Parameters
    ----------
    data : the text
    model : IBM model 1 or the hidden Markov model, its NULL probability, and whether both directions agree
    n_jobs : threads of a pass
    start : shares of an earlier stage, with which collapsed inference begins
    """

    def __init__(self, data: AlignedText, model: Model, n_jobs: int = 1, start: Shares | None = None) -> None:
        self.data = data
        self.model = model
        self.n_jobs = n_jobs
        self.start = start

    @cached_property
    def lengths(self) -> Index:
        """Number of tokens of both sentences, 0 for pairs that are left out."""
        is_used = np.diff(self.data.cells.starts) > 0
        return np.where(is_used, self.data.text.source_lengths + self.data.text.target_lengths, 0)

    # ---- sums --------------------------------------------------------------------------------------------------------

    def tables(self, n_buckets: int) -> tuple[Table, Totals]:
        """Return counts that are all zero."""
        n_sources, n_targets = len(self.data.text.source_words), len(self.data.text.target_words)
        pairs = np.zeros((len(self.data.targets), 2))
        counts = Table(pairs, np.zeros(n_targets), np.zeros(n_sources), np.zeros((2, n_buckets)))
        return counts, Totals(np.zeros(n_sources + 1), np.zeros(n_targets + 1))

    def record(
        self, counts: Table, exposures: NDArray[np.float64], log_normalizer: float, n: float
    ) -> AlignmentStatistics:
        """Return counts as statistics."""
        translation = TranslationSums(counts.pairs, counts.null_target, counts.null_source)
        jumps = JumpSums(counts.jumps, exposures)
        return AlignmentStatistics(translation, jumps, log_normalizer=log_normalizer, n_observations=n)

    def nothing(self, n_buckets: int) -> AlignmentStatistics:
        """Return statistics of no data."""
        return self.record(self.tables(n_buckets)[0], np.zeros((2, n_buckets)), 0.0, 0.0)

    def posteriors(
        self, weights: AlignmentPoint, pairs: Index, shares: Shares, with_exposures: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Write the shares of sentence pairs, one after the other; return exposures and log likelihoods of each."""
        return self._posteriors(weights, *self.data.part(pairs), shares, with_exposures)

    def _posteriors(
        self, weights: AlignmentPoint, cells: Cells, pairs: Index, shares: Shares, with_exposures: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Do what `posteriors` does, for pairs of these cells."""
        jumps = weights.jumps.weights
        sizes = cells.starts[pairs + 1] - cells.starts[pairs]
        places = np.cumsum(sizes) - sizes
        exposures = np.zeros((len(pairs), 2, jumps.shape[1] if with_exposures else 0))
        logs, counter = np.zeros(len(pairs)), np.zeros(1, dtype=np.int64)
        of = weights.translation
        pairs_of = of.pairs if any(of.pairs.strides) else np.zeros(of.pairs.shape)  # zeros that are not written to
        table = Table(np.ascontiguousarray(pairs_of), of.null_target, of.null_source, jumps)
        totals, concentration = NO_TOTALS, 0.0
        if isinstance(of, PredictiveCounts):
            totals, concentration = Totals(of.totals_source, of.totals_target), of.concentration

        def work() -> None:
            expect_pairs(
                cells, pairs, places, table, totals, concentration, self.model, shares, exposures, logs,
                self.data.sizes, counter,
            )  # fmt: skip

        share(work, self.n_jobs)
        return exposures, logs

    def blocks(self, pairs: Index) -> list[Index]:
        """Return the pairs in blocks of about `BLOCK_CELLS` cells, whatever the number of threads."""
        starts = self.data.cells.starts
        ends = np.cumsum(starts[pairs + 1] - starts[pairs])
        n_blocks = math.ceil((ends[-1] if len(ends) else 0) / BLOCK_CELLS) or 1
        cuts = np.searchsorted(ends, np.arange(1, n_blocks) * BLOCK_CELLS)
        return [block for block in np.split(pairs, cuts) if len(block)]

    def expected(self, weights: AlignmentPoint, clusters: Index) -> AlignmentStatistics:  # type: ignore[override]
        n_buckets = weights.jumps.weights.shape[1]
        counts, totals = self.tables(n_buckets)
        exposures, found = np.zeros((2, n_buckets)), 0.0
        for pairs in self.blocks(clusters):
            found += self._add_block(weights, pairs, counts, totals, exposures)
        return self.record(counts, exposures, found, float(self.lengths[clusters].sum()))

    def _add_block(
        self, weights: AlignmentPoint, pairs: Index, counts: Table, totals: Totals, exposures: NDArray[np.float64]
    ) -> float:
        """Add what is expected of some sentence pairs to counts and exposures; return their log likelihood."""
        cells, pairs = self.data.part(pairs)
        sizes, rows = cells.starts[pairs + 1] - cells.starts[pairs], np.arange(len(pairs))
        shares = Shares(np.empty((int(sizes.sum()), 2)), np.empty((len(pairs), 2, exposures.shape[1])))
        of_pairs, logs = self._posteriors(weights, cells, pairs, shares, not self.model.agrees)
        places = np.cumsum(sizes) - sizes
        add_shares(cells, pairs, places, rows, shares, self.model.agrees, counts, totals, self.data.sizes)
        if of_pairs.shape[2]:
            exposures += of_pairs.sum(axis=0)
        return float(logs.sum())

    def draw(  # type: ignore[override]
        self, weights: AlignmentPoint, clusters: Index, rng: np.random.Generator
    ) -> tuple[Index, AlignmentStatistics]:
        """Draw the position of every target word, then of every source word, of each pair; −1 is NULL."""
        cells, of = self.data.cells, weights.translation
        counts, totals = self.tables(weights.jumps.weights.shape[1])
        table = Table(np.ascontiguousarray(of.pairs), of.null_target, of.null_source, weights.jumps.weights)
        hidden, uniforms = self.nothing_drawn(), rng.random((self.n_tokens, 2))
        draw_pairs(cells, clusters, table, self.model, uniforms, hidden, counts, totals, self.data.sizes)
        exposures = np.zeros_like(counts.jumps)
        return hidden, self.record(counts, exposures, 0.0, float(self.lengths[clusters].sum()))

    @property
    def n_tokens(self) -> int:
        """Number of tokens of both sides, those of pairs that are left out included."""
        return len(self.data.cells.source) + len(self.data.cells.target)

    def nothing_drawn(self) -> Index:
        """Return an alignment of all words to NULL, (n_tokens,)."""
        return np.full(self.n_tokens, -1, dtype=np.int64)

    # ---- algorithms --------------------------------------------------------------------------------------------------

    def plan(self, algorithm: StochasticSettings) -> Plan:
        mean = self.n_observations / max(self.n_clusters, 1)
        least = max(math.ceil(BATCH_OBSERVATIONS / max(mean, 1.0)), math.ceil(self.n_clusters / MOST_BATCHES))
        size = least if algorithm.batch is None else int(algorithm.batch)
        return Plan(self.n_clusters, size, int(self.lengths.max(initial=1)), mean * size)

    def ledger(self, algorithm: CollapsedSettings, prior: Posterior) -> AlignmentLedger:  # type: ignore[override]
        if algorithm.cluster not in ("auto", "sequence", "state"):
            raise InputError(
                f"CVI: cluster={algorithm.cluster!r} is for chains; alignments have 'sequence', or 'state' for words."
            )
        if algorithm.cluster_size != 1 or algorithm.storage is not None:
            raise InputError("CVI: cluster_size= and storage= are for chains, not for alignments.")
        if algorithm.neighbour_weighting is not None or not algorithm.corrections:
            raise InputError("CVI: neighbour_weighting= and corrections= are for chains, not for alignments.")
        if algorithm.order != "shards":
            return (WordLedger if algorithm.cluster == "state" else AlignmentLedger)(self, prior)
        if algorithm.cluster == "state":
            raise InputError("CVI: order='shards' is for whole sentence pairs, not for cluster='state'.")
        return RoundLedger(self, prior)

    def walkers(self, algorithm: SamplingSettings, prior: Posterior, seed: int) -> ClusterWalkers:
        if algorithm.parameters == "sampled":
            return super().walkers(algorithm, prior, seed)
        if algorithm.block != "sequence" or (algorithm.temperatures() != 1.0).any():
            raise InputError("Gibbs: alignments are drawn with block='sequence' and without annealing=.")
        return AlignmentWalkers(self, algorithm, prior, seed)
