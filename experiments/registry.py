"""All experiments by name, in the order of the papers."""

from __future__ import annotations

from experiments.alice_chapters import AliceChapters
from experiments.alice_truncations import AliceTruncations
from experiments.alignment_settings import AlignmentSettings
from experiments.boundary_choice import BoundaryChoice
from experiments.chromatin import Chromatin
from experiments.dictionary_tagging import DictionaryTagging
from experiments.dmv import DependencyGrammar
from experiments.experiment import Experiment
from experiments.hyperparameters import Hyperparameters
from experiments.interval_coverage import IntervalCoverage
from experiments.joint_predictive import JointPredictive
from experiments.latent_annotations import LatentAnnotations
from experiments.local_optima import LocalOptima
from experiments.long_chain_table import LongChainTable
from experiments.music import Music
from experiments.occurrence_in_text import OccurrenceInText
from experiments.occurrence_simulated import OccurrenceSimulated
from experiments.reversed_cycles import ReversedCycles
from experiments.sentences import Sentences
from experiments.shards import Shards
from experiments.states_found import StatesFound
from experiments.stochastic_grammars import StochasticGrammars
from experiments.subchains_of_text import SubchainsOfText
from experiments.tagging_convergence import TaggingConvergence
from experiments.tagging_ingredients import TaggingIngredients
from experiments.unsupervised_tagging import UnsupervisedTagging
from experiments.vanilla import Vanilla
from experiments.very_large import VeryLarge, VeryLargeWikiText
from experiments.word_alignment import WordAlignment
from experiments.word_grammar import WordGrammar

KINDS: list[type[Experiment]] = [
    SubchainsOfText, Sentences, Vanilla, ReversedCycles, LongChainTable, Chromatin, JointPredictive, DictionaryTagging,
    TaggingConvergence, UnsupervisedTagging, TaggingIngredients, WordAlignment, OccurrenceSimulated, OccurrenceInText,
    StatesFound, AliceChapters, AliceTruncations, Music, Hyperparameters, BoundaryChoice, LocalOptima, IntervalCoverage,
    Shards, AlignmentSettings, VeryLarge, VeryLargeWikiText, DependencyGrammar, WordGrammar,
    LatentAnnotations, StochasticGrammars,
]  # fmt: skip
EXPERIMENTS = {kind.name: kind for kind in KINDS}
