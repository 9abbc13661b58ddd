"""HMMs with many states whose parameters are functions of embeddings, trained by gradients with PyTorch.

They need the extra `neural`: pip install "subchain[neural]".
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if find_spec("torch") is None:
    raise ImportError('subchain.neural needs PyTorch, which is not installed: pip install "subchain[neural]".')

#: Modules of the public names; each is loaded when it is first used.
_HOME = {
    "LowRank": "subchain.transitions",
    "NeuralHMM": "subchain.neural.model",
    "NeuralTrace": "subchain.neural.training",
    "Softmax": "subchain.neural.transitions",
    "Training": "subchain.neural.settings",
}

if TYPE_CHECKING:
    from subchain.neural.model import NeuralHMM
    from subchain.neural.settings import Training
    from subchain.neural.training import NeuralTrace
    from subchain.neural.transitions import Softmax
    from subchain.transitions import LowRank

__all__ = ["LowRank", "NeuralHMM", "NeuralTrace", "Softmax", "Training"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
