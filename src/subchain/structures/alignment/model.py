"""The parts of an alignment model: a translation table and jump widths, each of both directions."""

from __future__ import annotations

import dataclasses

from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Statistics
from subchain.tables import JumpSums, JumpWeights, JumpWidths, TranslationSums, TranslationTable, TranslationWeights


@dataclasses.dataclass
class AlignmentPoint(Point):
    """Weights of word pairs and of jump widths."""

    translation: TranslationWeights
    jumps: JumpWeights


@dataclasses.dataclass
class AlignmentPosterior(Posterior):
    """Distribution over translation tables and jump widths, prior or posterior."""

    point_type = AlignmentPoint
    translation: TranslationTable
    jumps: JumpWidths


@dataclasses.dataclass
class AlignmentStatistics(Statistics):
    """Expected numbers of links and of jumps."""

    translation: TranslationSums
    jumps: JumpSums
