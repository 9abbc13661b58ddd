"""All experiments by name, in the order of the papers."""

from __future__ import annotations

from subchain.experiments.alice_chapters import AliceChapters
from subchain.experiments.alice_truncations import AliceTruncations
from subchain.experiments.chromatin import Chromatin
from subchain.experiments.dictionary_tagging import DictionaryTagging
from subchain.experiments.experiment import Experiment
from subchain.experiments.hyperparameters import Hyperparameters
from subchain.experiments.joint_predictive import JointPredictive
from subchain.experiments.long_chain_table import LongChainTable
from subchain.experiments.music import Music
from subchain.experiments.occurrence_in_text import OccurrenceInText
from subchain.experiments.occurrence_simulated import OccurrenceSimulated
from subchain.experiments.reversed_cycles import ReversedCycles
from subchain.experiments.sentences import Sentences
from subchain.experiments.states_found import StatesFound
from subchain.experiments.subchains_of_text import SubchainsOfText
from subchain.experiments.tagging_convergence import TaggingConvergence
from subchain.experiments.tagging_ingredients import TaggingIngredients
from subchain.experiments.unsupervised_tagging import UnsupervisedTagging
from subchain.experiments.vanilla import Vanilla

KINDS: list[type[Experiment]] = [
    SubchainsOfText, Sentences, Vanilla, ReversedCycles, LongChainTable, Chromatin, JointPredictive, DictionaryTagging,
    TaggingConvergence, UnsupervisedTagging, TaggingIngredients, OccurrenceSimulated, OccurrenceInText, StatesFound,
    AliceChapters, AliceTruncations, Music, Hyperparameters,
]  # fmt: skip
EXPERIMENTS = {kind.name: kind for kind in KINDS}
