"""Model selection: the number of states, and hyperparameters of the priors."""

from subchain.selection.alternation import ConcentrationFit, Round, fit_concentrations
from subchain.selection.concentrations import Concentrations, learn_concentrations
from subchain.selection.grid import Trial
from subchain.selection.priors import PriorSelection, select_priors
from subchain.selection.states import Row, Selection, select_states

__all__ = [
    "ConcentrationFit",
    "Concentrations",
    "PriorSelection",
    "Round",
    "Row",
    "Selection",
    "Trial",
    "fit_concentrations",
    "learn_concentrations",
    "select_priors",
    "select_states",
]
