"""Every algorithm with every family on data of every shape: finite results, right shapes, the same from files.

Algorithms join by being registered in `subchain.inference.ALGORITHMS`, families by a line in `examples.py`.
"""

import warnings

import numpy as np
import pytest
from brief import BRIEF, STATES, build, same
from examples import EVERY_FAMILY as FAMILIES
from examples import SHAPES, example
from sklearn.base import clone

from subchain import HDP, HMM, Categorical
from subchain.core import hyperparameters
from subchain.emissions import learned_table
from subchain.errors import ConvergenceWarning
from subchain.inference import ALGORITHMS, resolve_inference
from subchain.inference.batch.passes import Batch
from subchain.inference.run.checkpoint import Checkpoint
from subchain.inference.search.search import StateSearch

CELLS = [
    pytest.param(algorithm, family, shape, states, id=f"{algorithm}-{family}-{shape}-{states}")
    for algorithm in BRIEF
    for family in FAMILIES
    for shape in SHAPES
    for states in STATES
    if (states == "three states" or shape in ("ragged", "one observation", "missing"))
    and not (FAMILIES[family][0].names_states and (algorithm == "beam" or states == "one state"))
    and (" of " not in algorithm or (states == "three states" and shape in ("ragged", "missing")))
]


def test_every_algorithm_is_here():
    assert set(ALGORITHMS) <= set(BRIEF)


@pytest.mark.parametrize(("algorithm", "family", "shape", "states"), CELLS)
def test_a_cell(algorithm, family, shape, states, tmp_path):
    specification, data = example(family, shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = build(algorithm, specification, states).fit(data)
        n_states = model.n_states_
        assert n_states == STATES[states] or algorithm == "beam"
        assert model.point_.not_finite() is None
        assert model.statistics_.not_finite() is None
        assert model.transition_.shape == (n_states, n_states)
        assert np.allclose(model.transition_.sum(axis=1), 1.0)
        assert np.isclose(model.initial_.sum(), 1.0)
        objective = np.array(model.trace_.objective)
        if isinstance(resolve_inference(BRIEF[algorithm]()), Batch):
            assert np.isclose(model.statistics_.initial.sum(), (data.lengths > 0).sum())
            assert np.isclose(model.statistics_.pairs.sum(), np.maximum(data.lengths - 1, 0).sum())
            assert np.diff(objective).min() >= -1e-9 * np.abs(objective).max()

        marginals = model.predict_proba(data)
        parts = marginals if data.n_sequences > 1 else [marginals]
        assert [len(part) for part in parts] == data.lengths.tolist()
        stacked = np.concatenate(marginals) if isinstance(marginals, list) else marginals
        assert stacked.shape == (data.n_observations, n_states)
        assert np.allclose(stacked.sum(axis=1), 1.0)
        assert np.isfinite(model.score(data))
        assert np.concatenate([np.atleast_1d(part) for part in model.predict(data)]).max(initial=0) < n_states

        same(model, clone(model).fit(data))
        same(model, build(algorithm, specification, states).set_params(n_jobs=2).fit(data))

        model.save(tmp_path / "model")
        same(model, HMM.load(tmp_path / "model"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("algorithm", BRIEF)
def test_a_run_that_is_killed_and_resumed_ends_in_the_same_bits(algorithm, family, tmp_path, monkeypatch):
    specification, data = example(family)
    if algorithm == "beam" and specification.names_states:
        pytest.skip("states of groups are not for priors over their number")

    def fit(**arguments):
        model = build(algorithm, specification, "three states", n_init=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(data, **arguments)

    kill_and_resume(fit, (1, 2, 5, 7, 9), tmp_path / "checkpoint", monkeypatch)


@pytest.mark.parametrize(
    ("algorithm", "family"),
    [(name, "categorical") for name in BRIEF if not {"em", "gibbs", "hastings", "beam"} & set(name.split())]
    + [
        (name, family)
        for name in ("cvi", "svi")
        for family in FAMILIES
        if family not in ("categorical", "block_sparse")
    ],
)
def test_and_so_does_one_that_learns_its_prior_and_searches(algorithm, family, tmp_path, monkeypatch):
    specification, data = example(family)
    if family == "categorical":
        specification = Categorical("learned", n_categories=5)

    def fit(**arguments):
        prior = HDP("learned", "learned", stickiness=0.5)
        model = build(algorithm, specification, "more states than data", transition=prior)
        model.n_states = 4
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(data, **arguments)

    monkeypatch.setattr(StateSearch, "is_due", lambda self, trials, state, step: state.iteration % 2 == 1)
    monkeypatch.setattr(hyperparameters, "LATE", 2)
    monkeypatch.setattr(learned_table, "LATE", 2)
    monkeypatch.setattr(hyperparameters, "EARLY", 2)
    kill_and_resume(fit, (1, 4), tmp_path / "checkpoint", monkeypatch)


def kill_and_resume(fit, kills, path, monkeypatch):
    """Runs that die right after a checkpoint, at several of them, and go on from there."""

    class Killed(Exception):
        pass

    whole, saved = fit(), Checkpoint.save
    for kill_at in kills:
        calls = 0

        def save_and_die(self, journey, *, force=False, kill_at=kill_at):
            nonlocal calls
            saved(self, journey, force=True)
            calls += 1
            if calls == kill_at:
                raise Killed

        monkeypatch.setattr(Checkpoint, "save", save_and_die)
        with pytest.raises(Killed):
            fit(checkpoint=path, resume=False)
        monkeypatch.setattr(Checkpoint, "save", saved)
        resumed = fit(checkpoint=path, resume=True)
        same(whole, resumed)
        assert resumed.trace_.objective == whole.trace_.objective
        assert resumed.trace_.events == whole.trace_.events
        assert resumed.runs_ == whole.runs_
