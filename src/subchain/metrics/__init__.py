"""Metrics of states against gold tags, from one contingency table, of word alignments, and of trees."""

from subchain.metrics.agreement import adjusted_rand
from subchain.metrics.alignment import AlignmentReport, AlignmentScores, alignment_report
from subchain.metrics.brackets import BracketScores, bracket_scores
from subchain.metrics.confusions import Confusion, confusions
from subchain.metrics.contingency import Contingency
from subchain.metrics.dependencies import DependencyScores, dependency_scores
from subchain.metrics.information import (
    completeness,
    entropy,
    homogeneity,
    state_entropy,
    state_entropy_given_tag,
    tag_entropy,
    tag_entropy_given_state,
    v_measure,
    variation_of_information,
)
from subchain.metrics.mapping import (
    accuracy,
    cross_validated_many_to_one,
    greedy_map,
    greedy_one_to_one,
    many_to_one,
    many_to_one_map,
    mapped_accuracy,
    optimal_map,
    optimal_one_to_one,
)
from subchain.metrics.tagging import TaggingReport, tagging_report

__all__ = [
    "AlignmentReport",
    "AlignmentScores",
    "BracketScores",
    "Confusion",
    "Contingency",
    "DependencyScores",
    "TaggingReport",
    "accuracy",
    "adjusted_rand",
    "alignment_report",
    "bracket_scores",
    "completeness",
    "confusions",
    "cross_validated_many_to_one",
    "dependency_scores",
    "entropy",
    "greedy_map",
    "greedy_one_to_one",
    "homogeneity",
    "many_to_one",
    "many_to_one_map",
    "mapped_accuracy",
    "optimal_map",
    "optimal_one_to_one",
    "state_entropy",
    "state_entropy_given_tag",
    "tag_entropy",
    "tag_entropy_given_state",
    "tagging_report",
    "v_measure",
    "variation_of_information",
]
