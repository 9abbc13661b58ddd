"""The number of workers changes no bit: fits, decoding, marginals and scores, of many short chains and of long ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from brief import same
from examples import FAMILIES

from subchain import CVI, EM, HDP, HMM, SCVI, SVI, VI, Beam, Gibbs
from subchain.core.components import clone
from subchain.data import Sequences

STEPS = {"max_iter": 3, "tolerance": 0.0}
DRAWS = {"n_samples": 2, "burn_in": 1, "n_chains": 2}
UPDATES = {"length": 20, "batch": 128, "max_updates": 4, "report_every": 2}
ALGORITHMS: dict[str, Any] = {
    "em": EM(**STEPS),
    "vi": VI(**STEPS),
    "vi of states": VI(cluster="state", **STEPS),
    "svi": SVI(boundary="buffer", **UPDATES),
    "scvi": SCVI(boundary="guards", **UPDATES),
    "cvi": CVI(cluster="subchain", length=20, **STEPS),
    "cvi at once": CVI(cluster="subchain", length=20, order="batch", **STEPS),
    "gibbs": Gibbs(block="sequence", parameters="sampled", **DRAWS),
    "beam": Beam(**DRAWS),
}
SHAPES = {"long": [30_000, 4_000], "short": [40] * 400}
CELLS = [
    (algorithm, family, shape)
    for algorithm in ALGORITHMS
    for family in FAMILIES
    for shape in SHAPES
    if family in ("categorical", "gaussian") or (algorithm == "vi" and family != "exponential")
]


def data_of(family: str, shape: str) -> Sequences:
    lengths = SHAPES[shape]
    return Sequences(FAMILIES[family][1](np.random.default_rng(0), sum(lengths)), np.cumsum([0, *lengths]))


def fitted(algorithm: str, family: str, data: Sequences, n_jobs: int) -> HMM:
    prior = HDP() if algorithm == "beam" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HMM(3, clone(FAMILIES[family][0]), prior, clone(ALGORITHMS[algorithm]), random_state=0, n_jobs=n_jobs)
        return model.fit(data)


@pytest.mark.parametrize(("algorithm", "family", "shape"), CELLS)
def test_fits_and_what_is_asked_of_them_do_not_depend_on_the_number_of_workers(
    algorithm: str, family: str, shape: str
) -> None:
    data = data_of(family, shape)
    one, two = (fitted(algorithm, family, data, n_jobs) for n_jobs in (1, 2))
    same(one, two)
    assert np.array_equal(one.trace_.objective, two.trace_.objective, equal_nan=True)
    for ask in (HMM.predict_proba, HMM.predict, HMM.filter, lambda model, x: [model.score_sequences(x)]):
        answers = zip(ask(one, data[:]), ask(two, data[:]), strict=True)
        assert all(np.array_equal(*pair) for pair in answers)
