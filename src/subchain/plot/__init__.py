"""Plots of fitted models; each function returns matplotlib axes.

Pass `ax` to draw into an existing figure. Colours are those of the report and suit all kinds of colour vision.
"""

from subchain.plot.along import dwell_times, pairs, predictive_check, segmentation
from subchain.plot.parameters import convergence, emissions, occupancy, states, transition
from subchain.tasks.colours import COLOURS

__all__ = [
    "COLOURS",
    "convergence",
    "dwell_times",
    "emissions",
    "occupancy",
    "pairs",
    "predictive_check",
    "segmentation",
    "states",
    "transition",
]
