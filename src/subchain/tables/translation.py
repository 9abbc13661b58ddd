"""Translation tables of both directions over the word pairs that occur together.

Each source word has a distribution over all target words, and each target word one over all source words; so has NULL,
the position that words without a counterpart are aligned to. The prior is symmetric over the whole vocabulary, V words
of concentration β; only pairs that occur together are stored, the others keep β. Pairs are sorted by source word: those
of word w are `rows[w]` … `rows[w + 1] − 1`. Column 0 of all tables is p(target | source), column 1 the reverse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.hyperparameters import FixedHyperparameters
from subchain.core.ranges import COUNTS, NOT_NEGATIVE, POSITIVE, WHOLE_NUMBERS, Range
from subchain.core.records import Record, Sums, array, number
from subchain.emissions.incremental import Incremental
from subchain.numerics.special import digamma_and_gammaln
from subchain.propagation.alignment.counts import add_rows, add_scaled

Array = NDArray[np.float64]

#: Weights below this are taken to be this: exp(ψ(β)) underflows for small β.
LEAST = 1e-100


@dataclasses.dataclass
class TranslationSums(Sums):
    """Expected numbers of links: of word pairs (E, 2), and of target and source words with NULL, (T,) and (S,)."""

    pairs: Array = array("E2", COUNTS)
    null_target: Array = array("T", COUNTS)
    null_source: Array = array("S", COUNTS)


@dataclasses.dataclass
class TranslationWeights(Record):
    """Probabilities, or surrogate weights, of word pairs (E, 2) and of words given NULL, (T,) and (S,)."""

    pairs: Array = array("E2", NOT_NEGATIVE)
    null_target: Array = array("T", NOT_NEGATIVE)
    null_source: Array = array("S", NOT_NEGATIVE)


@dataclasses.dataclass
class PredictiveCounts(Record):
    """Counts that stand for the posterior predictive weights (C + β) / (C of all words + V β).

    Kernels compute these where they are read, so that there is no table of them. The fields are those of
    `TranslationTable`.
    """

    pairs: Array = array("E2", COUNTS)
    null_target: Array = array("T", COUNTS)
    null_source: Array = array("S", COUNTS)
    totals_source: Array = array("A", COUNTS)
    totals_target: Array = array("B", COUNTS)
    concentration: float = number(POSITIVE, 1.0)


class Rows(NamedTuple):
    """Rows of a table that are stored alike.

    Attributes
    ----------
    counts : counts of the stored entries
    of : row of each entry, or 0 if there is one row
    totals : counts of each row, over all words
    n_words : words that each row is a distribution over
    """

    counts: Array
    of: NDArray[np.integer] | int
    totals: Array
    n_words: int


@dataclasses.dataclass
class TranslationTable(FixedHyperparameters, Record):
    """Dirichlet distributions over the translations of every word and of NULL.

    Attributes
    ----------
    rows, targets : (S + 1,), (E,) the word pairs
    pairs, null_target, null_source : counts, zero for a prior without any
    totals_source, totals_target : (S + 1,), (T + 1,) counts of each row, those of pairs that are not stored included;
        the last row is that of NULL
    concentration : β
    """

    rows: NDArray[np.int64] = array("A", WHOLE_NUMBERS)
    targets: NDArray[np.int32] = array("E", Range("int32", least=0))
    pairs: Array = array("E2", COUNTS)
    null_target: Array = array("T", COUNTS)
    null_source: Array = array("S", COUNTS)
    totals_source: Array = array("A", COUNTS)
    totals_target: Array = array("B", COUNTS)
    concentration: float = number(POSITIVE, 1.0)

    @classmethod
    def prior(cls, rows: NDArray[np.int64], targets: NDArray[np.int32], n_targets: int, concentration: float) -> Self:
        """Return the prior without counts; those of pairs are a single zero, which cannot be written to."""
        n_sources = len(rows) - 1
        return cls(
            rows, targets, np.broadcast_to(np.zeros(()), (len(targets), 2)), np.zeros(n_targets), np.zeros(n_sources),
            np.zeros(n_sources + 1), np.zeros(n_targets + 1), concentration,
        )  # fmt: skip

    def check_fields(self) -> None:
        counts = np.diff(self.rows)
        fits = self.rows[0] == 0 and self.rows[-1] == len(self.targets) and bool((counts >= 0).all())
        words = len(self.null_source), len(self.null_target)
        if not fits or words != (len(self.rows) - 1, len(self.totals_target) - 1):
            raise ValueError("the word pairs of the translation table do not fit together")
        if len(self.targets) and self.targets.max() >= len(self.null_target):
            raise ValueError("the translation table has a target word that does not exist")

    # ---- rows --------------------------------------------------------------------------------------------------------

    @property
    def has_counts(self) -> bool:
        """Whether there are counts of pairs, and not a single zero for all."""
        return any(self.pairs.strides)

    def sources(self) -> NDArray[np.int64]:
        """Return the source word of each pair, (E,)."""
        return np.repeat(np.arange(len(self.rows) - 1), np.diff(self.rows))

    def _blocks(self) -> Iterator[Rows]:
        """Yield the rows of both directions: those of words, then those of NULL."""
        n_sources, n_targets = len(self.null_source), len(self.null_target)
        yield Rows(self.pairs[:, 0], self.sources(), self.totals_source[:-1], n_targets)
        yield Rows(self.pairs[:, 1], self.targets, self.totals_target[:-1], n_sources)
        yield Rows(self.null_target, 0, self.totals_source[-1:], n_targets)
        yield Rows(self.null_source, 0, self.totals_target[-1:], n_sources)

    def _weights(self, found: list[Array]) -> TranslationWeights:
        return TranslationWeights(np.stack(found[:2], axis=1), found[2], found[3])

    def update(self, sums: TranslationSums) -> Self:
        of_source, of_target = np.zeros(len(self.null_source)), np.zeros(len(self.null_target))
        add_rows(self.rows, self.targets, sums.pairs, of_source, of_target)
        return dataclasses.replace(
            self,
            pairs=self.pairs + sums.pairs if self.has_counts else sums.pairs,
            null_target=self.null_target + sums.null_target,
            null_source=self.null_source + sums.null_source,
            totals_source=self.totals_source + np.append(of_source, sums.null_target.sum()),
            totals_target=self.totals_target + np.append(of_target, sums.null_source.sum()),
        )

    def with_pairs_of(self, known: Self) -> Self:
        """Return the table with the word pairs of a known one that it lacks, and their counts; the codes are the same.

        Totals are kept: those of a table whose prior was the known one have the counts of all its pairs.
        """
        n_targets = len(self.null_target)
        own = self.sources() * n_targets + self.targets
        theirs = known.sources() * n_targets + known.targets
        is_new = np.isin(theirs, own, assume_unique=True, invert=True)
        keys = np.concatenate([own, theirs[is_new]])
        order = np.argsort(keys, kind="stable")
        counts = np.bincount(keys // n_targets, minlength=len(self.null_source))
        return dataclasses.replace(
            self,
            rows=np.concatenate([[0], np.cumsum(counts)]),
            targets=(keys[order] % n_targets).astype(np.int32),
            pairs=np.concatenate([self.pairs, known.pairs[is_new]])[order],
        )

    # ---- weights -----------------------------------------------------------------------------------------------------

    def mean(self) -> TranslationWeights:
        beta, found = self.concentration, []
        for block in self._blocks():
            scales = 1.0 / (np.maximum(block.totals, 0.0) + block.n_words * beta)
            found.append((np.maximum(block.counts, 0.0) + beta) * scales[block.of])
        return self._weights(found)

    def predictive(self) -> PredictiveCounts:
        """Return the weights of `mean` as counts, which take no room of their own."""
        counts = self.pairs, self.null_target, self.null_source
        return PredictiveCounts(*counts, self.totals_source, self.totals_target, self.concentration)

    def mode(self) -> TranslationWeights:
        """Return the mode; words without counts keep equal weights. A concentration below 1 is taken as 1."""
        extra, found = max(self.concentration - 1.0, 0.0), []
        for block in self._blocks():
            totals = np.maximum(block.totals, 0.0) + block.n_words * extra
            weights = (np.maximum(block.counts, 0.0) + extra) / np.where(totals > 0.0, totals, 1.0)[block.of]
            found.append(np.where(totals[block.of] > 0.0, weights, 1.0 / max(block.n_words, 1)))
        return self._weights(found)

    def expected_log(self) -> TranslationWeights:
        beta, found = self.concentration, []
        for block in self._blocks():
            of_rows = digamma_and_gammaln(np.maximum(block.totals, 0.0) + block.n_words * beta)[0]
            logs = digamma_and_gammaln(np.maximum(block.counts, 0.0) + beta)[0] - of_rows[block.of]
            found.append(np.maximum(np.exp(logs), LEAST))
        return self._weights(found)

    def sample(self, rng: np.random.Generator) -> TranslationWeights:
        """Draw the stored entries; all others together have the rest of each row."""
        beta, found = self.concentration, []
        for block in self._blocks():
            shape = np.maximum(block.counts, 0.0) + beta
            # a gamma draw of a small shape underflows: Gamma(a) = Gamma(a + 1) · U^(1/a)
            logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(len(shape))) / shape
            draws = np.maximum(np.exp(logs), LEAST)
            of = np.zeros(len(shape), dtype=np.int64) if isinstance(block.of, int) else block.of
            stored, n_rows = np.bincount(of, minlength=len(block.totals)), len(block.totals)
            in_stored = np.bincount(of, shape, n_rows)
            others = block.totals + block.n_words * beta - in_stored
            rest = rng.standard_gamma(np.where(stored < block.n_words, np.maximum(others, 0.0), 0.0))
            found.append(draws / (np.bincount(of, draws, n_rows) + rest)[of])
        return self._weights(found)

    # ---- densities ---------------------------------------------------------------------------------------------------

    def kl(self, prior: Self) -> float:
        """Return the divergence from the prior; entries that are not stored are alike and add nothing to the sums."""
        beta, found = self.concentration, 0.0
        for own, given in zip(self._blocks(), prior._blocks(), strict=True):
            a, b = np.maximum(own.counts, 0.0) + beta, np.maximum(given.counts, 0.0) + beta
            of_rows, rows = digamma_and_gammaln(own.totals + own.n_words * beta)
            digamma, entries = digamma_and_gammaln(a)
            found += rows.sum() - digamma_and_gammaln(given.totals + own.n_words * beta)[1].sum()
            found += digamma_and_gammaln(b)[1].sum() - entries.sum() + ((a - b) * (digamma - of_rows[own.of])).sum()
        return float(found)

    def log_density(self, values: TranslationWeights) -> float:
        """Return the log density of the stored entries; a concentration below 1 is taken as 1, as in `mode`."""
        extra = max(self.concentration - 1.0, 0.0)
        weights = values.pairs[:, 0], values.pairs[:, 1], values.null_target, values.null_source
        pairs = zip(self._blocks(), weights, strict=True)
        return float(sum(((block.counts + extra) * np.log(np.maximum(w, LEAST))).sum() for block, w in pairs))

    def log_evidence(self, sums: TranslationSums) -> float | None:
        beta, found = self.concentration, 0.0
        for own, given in zip(self.update(sums)._blocks(), self._blocks(), strict=True):
            for sign, block in ((1.0, own), (-1.0, given)):
                found += sign * digamma_and_gammaln(np.maximum(block.counts, 0.0) + beta)[1].sum()
                found -= sign * digamma_and_gammaln(np.maximum(block.totals, 0.0) + block.n_words * beta)[1].sum()
        return float(found)

    def incremental(self, sums: TranslationSums) -> IncrementalTranslation:
        return IncrementalTranslation(self, sums)  # type: ignore[arg-type]


class IncrementalTranslation(Incremental):
    """A translation table that changes in small steps, of which each takes the place of the fresh sums."""

    def blend(self, keep: float, gain: float, fresh: TranslationSums) -> None:
        """Let fresh sums enter the old ones, and take their arrays: a step needs no third table."""
        for name, old in self._sums.arrays().items():
            new = getattr(fresh, name)
            new *= gain
            add_scaled(new.reshape(-1), keep, np.ravel(old))
        self._sums = fresh
