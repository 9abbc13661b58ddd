"""HMMs with many states whose parameters are functions of embeddings, trained by gradients with PyTorch.

They need the extra `neural`: pip install "subchain[neural]".
"""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError('subchain.neural needs PyTorch, which is not installed: pip install "subchain[neural]".')

from subchain.neural.model import NeuralHMM
from subchain.neural.settings import Training
from subchain.neural.training import NeuralTrace
from subchain.neural.transitions import LowRank, Softmax

__all__ = ["LowRank", "NeuralHMM", "NeuralTrace", "Softmax", "Training"]
