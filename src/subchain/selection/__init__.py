"""What the data do not give away by themselves: how many states, and how strong the priors are."""

from subchain.selection.concentrations import Concentrations, learn_concentrations
from subchain.selection.grid import Trial
from subchain.selection.priors import PriorSelection, select_priors
from subchain.selection.states import Row, Selection, select_states
from subchain.selection.turns import ConcentrationFit, Round, fit_concentrations

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
