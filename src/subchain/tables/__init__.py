"""Conjugate tables of parameters: the parts of models that are no chains of states."""

from subchain.tables.grouped import GroupedDirichlet, GroupedSums, GroupedWeights
from subchain.tables.jumps import JumpSums, JumpWeights, JumpWidths
from subchain.tables.rows import DirichletRowTable, RowWeights, RuleSums
from subchain.tables.translation import PredictiveCounts, TranslationSums, TranslationTable, TranslationWeights

__all__ = [
    "DirichletRowTable",
    "GroupedDirichlet",
    "GroupedSums",
    "GroupedWeights",
    "JumpSums",
    "JumpWeights",
    "JumpWidths",
    "PredictiveCounts",
    "RowWeights",
    "RuleSums",
    "TranslationSums",
    "TranslationTable",
    "TranslationWeights",
]
