"""The bound on what a scaled forward pass loses to underflow, against the pass in log space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from subchain.engines.cpu.kernels import Kernels
from subchain.propagation.layout import Walks
from subchain.propagation.underflow import exponentiate, reached
from subchain.transitions import cyclic, layout
from subchain.transitions.operators import Banded, Dense


def lossy_chain(rng: np.random.Generator, n_states: int, n: int) -> tuple[Any, Any, Any]:
    """First states, transitions and log likelihoods of a sparse chain that underflows."""
    transition = np.where(rng.random((n_states, n_states)) < 1.0 / n_states, rng.random((n_states, n_states)), 0.0)
    transition += np.eye(n_states) * rng.random() + np.eye(n_states, k=1)
    transition[-1, 0] += rng.integers(2)
    transition *= np.where(rng.random((n_states, n_states)) < 0.1, 1e-120, 1.0)
    initial = rng.random(n_states) * (rng.random(n_states) < 0.5) * rng.integers(2) + np.eye(n_states)[0]
    visits = rng.integers(n_states, size=n // 20 + 1).repeat(20)[:n]
    logs = -rng.choice([3.0, 60.0, 300.0]) * rng.random((n, n_states))
    logs[rng.random((n, n_states)) < 0.02] = -np.inf
    logs[:, np.unique(visits)] = rng.choice([-3.0, -60.0])  # neither is as unlikely as what lies between them
    logs[np.arange(n), visits] = 0.0
    return initial / initial.sum(), transition / transition.sum(axis=1, keepdims=True), logs


def scaled(start: Any, transition: Any, likelihood: Any) -> tuple[Any, Any]:
    """Filtered marginals (n, K) and normalisers (n,) in doubles, whatever underflows."""
    alpha, scale = np.empty_like(likelihood), np.empty(len(likelihood))
    for t, row in enumerate(likelihood):
        alpha[t] = (start if t == 0 else alpha[t - 1] @ transition) * row
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t] if scale[t] > 0.0 else 1.0
    return alpha, scale


@pytest.mark.parametrize("n_states", [3, 6, 66])
@pytest.mark.parametrize("is_banded", [False, True])
def test_the_bound_on_lost_weight_is_one(n_states: int, is_banded: bool) -> None:
    """For whole chains, and for chains in pieces, of which none knows what was lost before it."""
    noticed = lost_anything = harmless = 0
    for seed in range(100 if n_states < 60 else 20):
        rng = np.random.default_rng([n_states, seed])
        n = 60
        initial, transition, logs = lossy_chain(rng, n_states, n)
        if is_banded or n_states > 6:
            transition *= cyclic(n_states, 1)
        moves = banded_operator(transition) if is_banded else Dense(transition)
        likelihood = exponentiate(logs)
        alpha, scale = scaled(initial, transition, likelihood)
        if not scale.min() > 1e-100:
            continue  # noticed anyway
        with np.errstate(divide="ignore"):
            joint = log_forward(np.log(initial), np.log(transition), logs)
        kept, true = np.cumsum(np.log(scale)), np.logaddexp.reduce(joint, axis=1)
        lost = np.expm1(np.minimum(true - kept, 700.0)).max()
        bounds = np.linspace(0, n, 4).astype(int) if seed % 2 else np.array([0, n])
        starts, possible = bounds[:-1], reached(transition, initial > 0.0)
        before = np.array([initial if t == 0 else alpha[t - 1] @ transition + 1e-290 * possible for t in starts])
        walks = Walks(np.diff(bounds), starts, np.arange(n), starts)
        found = Kernels(moves).growth(likelihood.T.copy(), before.T, walks, alpha.T.copy(), scale, starts > 0)
        is_noticed = bool(found.matters_along(starts > 0).any())
        assert is_noticed or lost < 1e-9, (seed, lost)
        noticed, harmless = noticed + is_noticed, harmless + (not is_noticed)
        lost_anything += bool((alpha[:, possible] < 1e-290).any())
    assert min(noticed, lost_anything, harmless) > 0, "the cases do not test anything"


def banded_operator(transition: Any) -> Banded:
    band = layout.Layout(*layout.windows(*np.nonzero(transition), len(transition)))
    return Banded(band, band.gather(transition))


def log_forward(initial: Any, transition: Any, logs: Any) -> Any:
    """Log forward messages (n, K)."""
    out = np.empty_like(logs)
    for t, row in enumerate(logs):
        out[t] = row + (initial if t == 0 else np.logaddexp.reduce(out[t - 1][:, None] + transition, axis=0))
    return out
