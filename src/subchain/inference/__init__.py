"""How posteriors are found: the loop, and the algorithms that run in it."""

from subchain.errors import unknown_name
from subchain.inference.beam import Beam
from subchain.inference.cvi import CVI
from subchain.inference.em import EM
from subchain.inference.gibbs import Gibbs
from subchain.inference.hastings import Hastings
from subchain.inference.run.algorithm import Algorithm
from subchain.inference.scvi import SCVI
from subchain.inference.svi import SVI
from subchain.inference.vi import VI
from subchain.structures.chain.boundaries import Boundary, Buffer, Stationary
from subchain.structures.chain.growing_buffer import GrowBuffer
from subchain.structures.chain.guards import Guards

ALGORITHMS: dict[str, type[Algorithm]] = {
    "beam": Beam,
    "cvi": CVI,
    "em": EM,
    "gibbs": Gibbs,
    "hastings": Hastings,
    "scvi": SCVI,
    "svi": SVI,
    "vi": VI,
}


def resolve_inference(given: str | Algorithm | None) -> Algorithm:
    """An algorithm from its name, itself, or the default (variational inference)."""
    if given is None:
        return VI()
    if isinstance(given, Algorithm):
        return given
    if isinstance(given, str) and given.lower() in ALGORITHMS:
        return ALGORITHMS[given.lower()]()
    raise unknown_name("inference algorithm", given, ALGORITHMS)


__all__ = [
    "ALGORITHMS",
    "CVI",
    "EM",
    "SCVI",
    "SVI",
    "VI",
    "Algorithm",
    "Beam",
    "Boundary",
    "Buffer",
    "Gibbs",
    "GrowBuffer",
    "Guards",
    "Hastings",
    "Stationary",
    "resolve_inference",
]
