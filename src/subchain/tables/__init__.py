"""Conjugate tables of parameters: the parts of models that are no chains of states."""

from subchain.tables.jumps import JumpSums, JumpWeights, JumpWidths
from subchain.tables.translation import PredictiveCounts, TranslationSums, TranslationTable, TranslationWeights

__all__ = [
    "JumpSums",
    "JumpWeights",
    "JumpWidths",
    "PredictiveCounts",
    "TranslationSums",
    "TranslationTable",
    "TranslationWeights",
]
