"""Conjugate tables of parameters: the parts of models that are no chains of states."""

from subchain.tables.jumps import JumpSums, JumpWeights, JumpWidths
from subchain.tables.rows import DirichletRowTable, RowWeights, RuleSums
from subchain.tables.translation import PredictiveCounts, TranslationSums, TranslationTable, TranslationWeights

__all__ = [
    "DirichletRowTable",
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
