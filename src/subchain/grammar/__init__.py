"""Grammars: everything for sentences with hidden trees in one place."""

from subchain.data.brackets import parse_bracketed, read_trees, write_trees
from subchain.data.dependencies import Dependencies, read_dependencies
from subchain.data.dependency_writing import drawn_tree, write_dependencies
from subchain.data.tree import Tree
from subchain.data.treebank import clean_tree
from subchain.metrics.brackets import BracketScores, bracket_scores
from subchain.metrics.dependencies import DependencyScores, dependency_scores
from subchain.models.any_grammar import load_grammar
from subchain.models.dmv import DMV
from subchain.models.latent_pcfg import LatentPCFG
from subchain.models.pcfg import PCFG
from subchain.tasks.latent_parsing import Span

__all__ = [
    "DMV",
    "PCFG",
    "BracketScores",
    "Dependencies",
    "DependencyScores",
    "LatentPCFG",
    "Span",
    "Tree",
    "bracket_scores",
    "clean_tree",
    "dependency_scores",
    "drawn_tree",
    "load_grammar",
    "parse_bracketed",
    "read_dependencies",
    "read_trees",
    "write_dependencies",
    "write_trees",
]
