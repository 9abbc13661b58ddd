"""Hidden Markov models on data too large, too long or too little understood for the usual tools.

Everything a user needs can be imported from here; modules are loaded when their names are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from subchain.core import moved

__version__ = "0.1.0"

_ROOMS = {
    "subchain.models.hmm": ["HMM"],
    "subchain.selection": ["fit_concentrations", "select_priors", "select_states"],
    "subchain.models.memory": ["memory_estimate"],
    "subchain.reports": ["report"],
    "subchain.inference": [
        "CVI",
        "EM",
        "SCVI",
        "SVI",
        "VI",
        "Beam",
        "Buffer",
        "Gibbs",
        "GrowBuffer",
        "Guards",
        "Hastings",
        "Stationary",
    ],
    "subchain.transitions": [
        "HDP",
        "Dirichlet",
        "LowRank",
        "banded",
        "cyclic",
        "left_right",
        "stationary_distribution",
    ],
    "subchain.emissions": [
        "Bernoulli",
        "BlockSparse",
        "Categorical",
        "DiagonalGaussian",
        "Gaussian",
        "Poisson",
        "Product",
    ],
    "subchain.engines": ["Cluster", "Cpu"],
    "subchain.data": [
        "HoldOut",
        "Sequences",
        "TagDictionary",
        "Vocabulary",
        "as_sequences",
        "read",
        "read_conllu",
        "read_csv",
        "read_parquet",
        "read_tagged",
        "read_text",
    ],
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = [
    "alignment",
    "data",
    "datasets",
    "emissions",
    "engines",
    "errors",
    "grammar",
    "inference",
    "metrics",
    "neural",
    "plot",
    "propagation",
    "reports",
    "selection",
    "transitions",
]

if TYPE_CHECKING:
    from subchain.data import (
        HoldOut,
        Sequences,
        TagDictionary,
        Vocabulary,
        as_sequences,
        read,
        read_conllu,
        read_csv,
        read_parquet,
        read_tagged,
        read_text,
    )
    from subchain.emissions import (
        Bernoulli,
        BlockSparse,
        Categorical,
        DiagonalGaussian,
        Gaussian,
        Poisson,
        Product,
    )
    from subchain.engines import Cluster, Cpu
    from subchain.inference import (
        CVI,
        EM,
        SCVI,
        SVI,
        VI,
        Beam,
        Buffer,
        Gibbs,
        GrowBuffer,
        Guards,
        Hastings,
        Stationary,
    )
    from subchain.models.hmm import HMM
    from subchain.models.memory import memory_estimate
    from subchain.reports import report
    from subchain.selection import fit_concentrations, select_priors, select_states
    from subchain.transitions import (
        HDP,
        Dirichlet,
        LowRank,
        banded,
        cyclic,
        left_right,
        stationary_distribution,
    )

__all__ = [
    "CVI",
    "EM",
    "HDP",
    "HMM",
    "SCVI",
    "SVI",
    "VI",
    "Beam",
    "Bernoulli",
    "BlockSparse",
    "Buffer",
    "Categorical",
    "Cluster",
    "Cpu",
    "DiagonalGaussian",
    "Dirichlet",
    "Gaussian",
    "Gibbs",
    "GrowBuffer",
    "Guards",
    "Hastings",
    "HoldOut",
    "LowRank",
    "Poisson",
    "Product",
    "Sequences",
    "Stationary",
    "TagDictionary",
    "Vocabulary",
    "as_sequences",
    "banded",
    "cyclic",
    "fit_concentrations",
    "left_right",
    "memory_estimate",
    "read",
    "read_conllu",
    "read_csv",
    "read_parquet",
    "read_tagged",
    "read_text",
    "report",
    "select_priors",
    "select_states",
    "stationary_distribution",
]

moved.install()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"subchain.{name}")
    raise AttributeError(f"module 'subchain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])
