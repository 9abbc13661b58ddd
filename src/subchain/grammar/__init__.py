"""Grammars: everything for sentences with hidden trees in one place."""

from subchain.data.dependencies import Dependencies, read_dependencies
from subchain.data.dependency_writing import drawn_tree, write_dependencies
from subchain.metrics.dependencies import DependencyScores, dependency_scores
from subchain.models.dmv import DMV

__all__ = [
    "DMV",
    "Dependencies",
    "DependencyScores",
    "dependency_scores",
    "drawn_tree",
    "read_dependencies",
    "write_dependencies",
]
