"""Forward-backward over many chains side by side."""

from subchain.propagation.lanes.messages import advance, approach, retreat
from subchain.propagation.lanes.panels import mix
from subchain.propagation.lanes.recursions import backward, forward, forward_backward, log_totals
from subchain.propagation.lanes.sums import pair_sums, weigh

__all__ = [
    "advance",
    "approach",
    "backward",
    "forward",
    "forward_backward",
    "log_totals",
    "mix",
    "pair_sums",
    "retreat",
    "weigh",
]
