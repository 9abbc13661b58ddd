"""The mathematics of hidden chains on plain arrays: forward-backward, filtering, decoding, sampling; knows no model."""

from subchain.propagation.user.functions import (
    Filtered,
    ForwardBackward,
    ViterbiPath,
    filter,
    forward_backward,
    sample_paths,
    viterbi,
)

__all__ = ["Filtered", "ForwardBackward", "ViterbiPath", "filter", "forward_backward", "sample_paths", "viterbi"]
