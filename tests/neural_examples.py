"""A small text, small neural models of it, and their comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")

from subchain.data import Sequences  # noqa: E402
from subchain.neural import NeuralHMM, Training  # noqa: E402

GROUPS = np.array([0, 0, 1, 1, 2])


def text(seed: int = 0, n: int = 60) -> Sequences:
    """Sentences of codes 0 to 3, in turns of low and high ones, that end with 4."""
    rng = np.random.default_rng(seed)
    sentences = [[*(2 * ((start + i) % 2) + rng.integers(0, 2) for i in range(rng.integers(1, 7))), 4]
                 for start in rng.integers(0, 2, n)]  # fmt: skip
    values = np.concatenate([np.array(sentence) for sentence in sentences])
    return Sequences(values, np.concatenate(([0], np.cumsum([len(sentence) for sentence in sentences]))))


def model(epochs: int = 3, **settings: Any) -> NeuralHMM:
    training = {
        "epochs": epochs, "streams": 4, "length": 8, "learning_rate": 1e-2, "averaging": 0.9, "precision": "double",
    }  # fmt: skip
    training |= {name: settings.pop(name) for name in list(settings) if name in Training().get_params()}
    given = {"n_states": 12, "groups": GROUPS, "embedding": 16, "random_state": 0, "device": "cpu"} | settings
    return NeuralHMM(training=Training(**training), **given)


def same(one: NeuralHMM, other: NeuralHMM) -> None:
    theirs = other.networks_.state_dict()
    for name, value in one.networks_.state_dict().items():
        assert torch.equal(value, theirs[name]), name
