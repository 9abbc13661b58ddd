"""Which walkers a Gibbs sampler of chains has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subchain.errors import InputError
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.sampling.collapsed_walkers import SequenceWalker, StateWalker
from subchain.structures.chain.sampling.sampled_walker import SampledSequences
from subchain.structures.chain.sampling.walkers import Setting, refuse_weights
from subchain.structures.settings import SamplingSettings

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains


def gibbs_setting(chains: Chains, algorithm: SamplingSettings, prior: HMMPosterior, seed: int) -> Setting:
    """Return a setting whose walkers do what `algorithm` asks for; refuse data that none can draw."""
    refuse_weights(chains, "Gibbs")
    setting = Setting(chains, prior, seed)
    if algorithm.parameters == "sampled":
        setting.make = SampledSequences
    elif setting.is_stationary:
        raise InputError(
            "Gibbs: where chains begin in the stationary distribution of their transitions, these cannot be summed "
            "out; use Gibbs(block='sequence', parameters='sampled')."
        )
    else:
        setting.make = SequenceWalker if algorithm.block == "sequence" else StateWalker
    return setting
