"""A stretch of a chain between the messages at its ends gives its share of the whole chain's statistics."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from chains import left_right, sticky

from subchain.data import Sequences
from subchain.emissions import Categorical
from subchain.engines import Cpu, Part, Surrogate
from subchain.engines.cpu import fused
from subchain.engines.cpu.passes import StretchEnds


def case(kind, n=9000, n_states=4, seed=0):
    rng = np.random.default_rng(seed)
    emission = Categorical.from_parameters(rng.dirichlet(np.ones(6), n_states))
    values = rng.integers(0, 6, n)
    matrix = {
        "mixing": rng.dirichlet(np.ones(n_states), n_states),
        "slow": sticky(n_states, 0.99999),
        "left to right": left_right(n_states, 0.999),
    }[kind]
    if kind == "slow":  # nothing is seen for longer than pieces look ahead
        values[1000:8000] = -1
    return Surrogate(rng.dirichlet(np.ones(n_states)), matrix, emission), values


def exact_messages(surrogate, values, cuts):
    """Filtered marginals before each cut, and backward messages of the same positions, by plain loops."""
    likelihood = np.empty((surrogate.n_states, len(values)))
    surrogate.emission.scaled(values, likelihood)
    matrix, before, after = surrogate.transition.dense(), {}, {}
    alpha = surrogate.initial * likelihood[:, 0]
    for t in range(1, len(values)):
        alpha /= alpha.sum()
        if t in cuts:
            before[t] = alpha
        alpha = (alpha @ matrix) * likelihood[:, t]
    beta = np.ones(surrogate.n_states)
    for t in range(len(values) - 1, 0, -1):
        beta = matrix @ (likelihood[:, t] * beta)
        beta /= beta.sum()
        if t in cuts:
            after[t] = beta
    return before, after


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("kind", ["mixing", "slow", "left to right"])
@pytest.mark.parametrize("cuts", [(4000,), (700, 1500, 8999)])
def test_stretches_add_up_to_the_whole(kind, cuts, is_compiled, monkeypatch):
    if is_compiled:
        monkeypatch.setattr(fused, "LARGE", 0)
    surrogate, values = case(kind)
    before, after = exact_messages(surrogate, values, cuts)
    engine, edges = Cpu(2), [0, *cuts, len(values)]
    whole = engine.statistics(surrogate, Part(Sequences(values)))
    total = None
    for start, stop in pairwise(edges):
        ends = StretchEnds(before.get(start), after.get(stop))
        found, told = engine.stretch(surrogate, Part(Sequences(values[start:stop])), ends)
        total = found if total is None else total + found
        if stop in before:
            np.testing.assert_allclose(told.last, before[stop], rtol=1e-9, atol=1e-300)
        if start in after:
            np.testing.assert_allclose(told.first, after[start], rtol=1e-9, atol=1e-300)
    for name, array in whole.arrays().items():
        np.testing.assert_allclose(total.arrays()[name], array, rtol=1e-9, atol=1e-9)
    assert total.log_normalizer == pytest.approx(whole.log_normalizer, rel=1e-12)
    assert total.n_observations == whole.n_observations
