"""The grid of families, algorithms and shapes once more, through the plain reference engine: the same results.

All that a fit or a task asks of an engine goes through the verbs of `subchain.engines.Engine`, so that another engine
changes nothing but the time that it takes.
"""

import warnings

import numpy as np
import pytest
from examples import FAMILIES, SHAPES, example
from naive_engine import NaiveEngine
from test_grid import BRIEF, build

from subchain import HDP, HMM, SCVI, SVI, Guards
from subchain.errors import ConvergenceWarning
from subchain.structures.chain.boundaries import Buffer
from subchain.structures.chain.growing_buffer import GrowBuffer

#: Algorithms that see parts of a chain, by boundary; the last chooses the length of its subchains by the mixing time.
SUBCHAINS = {
    "no buffer": lambda: SVI(length=8, batch=3, max_updates=5, report_every=1, boundary="stationary"),
    "buffers": lambda: SCVI(length=8, batch=3, max_updates=5, report_every=1, boundary=Buffer(4)),
    "growing buffers": lambda: SVI(length=5, batch=2, max_updates=3, report_every=1, boundary=GrowBuffer(1e-3, 2)),
    "guards": lambda: SCVI(length=8, batch=3, max_updates=5, report_every=1, boundary=Guards()),
    "chosen length": lambda: SVI(batch=3, max_updates=3, report_every=1),
}
CELLS = [
    pytest.param(algorithm, family, shape, states, id=f"{algorithm}-{family}-{shape}-{states}")
    for algorithm in BRIEF
    for family in FAMILIES
    for shape in SHAPES
    for states in ("three states", "one state")
    if (shape == "ragged" and states == "three states")
    or (family == "categorical" and states == "three states" and " of " not in algorithm)
    or (family == "gaussian" and shape == "missing" and algorithm in ("em", "cvi", "svi"))
]


def fit(model, data, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_params(engine=engine).fit(data)


def same(ours, theirs, tolerance=1e-8):
    for name in ("point_", "statistics_", "prior_"):
        one, other = getattr(ours, name).arrays(), getattr(theirs, name).arrays()
        assert one.keys() == other.keys()
        for key in one:
            scale = max(float(np.abs(other[key]).max(initial=0.0)), 1.0)
            np.testing.assert_allclose(one[key], other[key], rtol=tolerance, atol=tolerance * scale, err_msg=key)
    # a run that has arrived may go on for a step, or not, by rounding
    for one, other in zip(ours.trace_.objective, theirs.trace_.objective, strict=False):
        assert one == pytest.approx(other, rel=1e-7, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("algorithm", "family", "shape", "states"), CELLS)
def test_a_cell(algorithm, family, shape, states):
    specification, data = example(family, shape)
    same(*(fit(build(algorithm, specification, states), data, engine) for engine in (NaiveEngine(), "cpu")))


@pytest.mark.parametrize("family", ["categorical", "poisson"])
@pytest.mark.parametrize("boundary", SUBCHAINS)
def test_subchains(boundary, family):
    specification, data = example(family, "one sequence")
    models = (
        fit(HMM(3, specification, inference=SUBCHAINS[boundary](), random_state=2), data, engine)
        for engine in (NaiveEngine(), "cpu")
    )
    same(*models)


@pytest.mark.filterwarnings("ignore:all n_states")
@pytest.mark.parametrize("algorithm", ["cvi", "scvi"])
def test_a_prior_that_asks_whether_transitions_occur(algorithm):
    specification, data = example("categorical", "many")
    prior = HDP(1.0, 1.0, occurrence="exact", merges=False, splits=False)
    same(
        *(
            fit(build(algorithm, specification, "three states", transition=prior), data, engine)
            for engine in (NaiveEngine(), "cpu")
        )
    )


def test_every_task():
    specification, data = example("product", "missing")
    model = fit(build("em", specification, "three states"), data, "cpu")
    mask = [np.arange(length) % 3 == 0 for length in data.lengths]
    tasks = {
        "score": lambda: model.score(data),
        "predict_proba": lambda: np.concatenate(model.predict_proba(data)),
        "filter": lambda: np.concatenate(model.filter(data)),
        "states": lambda: np.concatenate(model.predict(data)),
        "paths": lambda: np.concatenate(model.predict(data, decoding="viterbi")),
        "drawn": lambda: np.concatenate(model.sample_paths(data, 2, random_state=1), axis=-1),
        "steps": lambda: np.concatenate(model.score_steps(data)),
        "left out": lambda: np.concatenate(model.score_samples(data)),
        "masked": lambda: np.concatenate(model.score_samples(data, mask)),
        "blocks": lambda: np.concatenate([rows for _, rows in model.predict_proba_blocks(data, block=7)]),
        "statistics": lambda: model.expected_statistics(data).pairs,
        "imputed": lambda: np.concatenate(model.impute(data)),
        "forecast": lambda: np.concatenate([one.states for one in model.forecast(data, steps=3)]),
    }
    for name, ask in tasks.items():
        ours = ask()
        model.set_params(engine=NaiveEngine())
        np.testing.assert_allclose(ours, ask(), rtol=1e-9, atol=1e-9, err_msg=name)
        model.set_params(engine="cpu")
