"""A small text, a model of it, and all boundaries of subchains."""

from __future__ import annotations

from typing import Any

from subchain import HMM, Buffer, Categorical, Dirichlet, GrowBuffer, Guards
from subchain.datasets import categorical_chain

BOUNDARIES = {
    "stationary": "stationary",
    "buffer": Buffer(3),
    "growing": GrowBuffer(),
    "messages": Guards(),
    "marginals": Guards("marginals"),
}


def text(n: int = 2000, seed: int = 0) -> Any:
    return categorical_chain(n, n_states=3, n_symbols=7, random_state=seed).observations.values


def words(inference: Any, **settings: Any) -> HMM:
    settings = {"random_state": 1, "n_jobs": 1} | settings
    return HMM(3, Categorical(0.2, n_categories=7), Dirichlet(0.5), inference, **settings)
