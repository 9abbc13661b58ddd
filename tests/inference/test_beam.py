"""Beam sampling draws from the posterior of the infinite model: by enumeration, by joint simulation, and in use."""

import itertools
import warnings

import naive_hdp as naive
import numpy as np
import pytest
from scipy import stats

from examples import FAMILIES, example
from subchain import HMM, Beam, Categorical, Dirichlet, Gaussian, Poisson, Sequences
from subchain.data import Evidence
from subchain.datasets.published import four_state
from subchain.engines.cpu import CpuEngine
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference.beam_walker import BeamWalker
from subchain.inference.posterior import ModelPosterior
from subchain.inference.problem import Part, Problem
from subchain.inference.walkers import Setting
from subchain.samples import ess_bulk
from subchain.transitions.hdp import HDP

DATA = [np.array([0, 1, 0]), np.array([1, 1, 0, 0])]
HIERARCHY = naive.Hierarchy(0.8, 1.3)
BETA = 0.5


def problem_of(values, offsets, emission, transition, n_states=3, *, named=False):
    data = Sequences(values, offsets)
    prior = ModelPosterior(transition.prior(n_states, flat=False), emission.prior(data, n_states, flat=False))
    evidence = Evidence.build(data, n_states, evidence=np.zeros((len(values), n_states))) if named else None
    return Problem(Part(data, evidence), prior, CpuEngine(1))


def walker_of(problem, states, seed=0, n_all=np.inf, shape=1.0, rate=1.0):
    return BeamWalker(Setting.of(problem, seed), 0, np.asarray(states), n_all, shape, rate)


def quiet_fit(model, data, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data, **arguments)


# ---- against enumeration ---------------------------------------------------------------------------------------------


def named(states):
    """States named by their appearance."""
    names = list(dict.fromkeys(states.tolist()))
    return tuple(names.index(state) for state in states.tolist())


@pytest.mark.parametrize("n_all", [None, 4])
def test_paths_have_their_exact_posterior(n_all):
    """All partitions of seven positions."""
    exact = naive.exact_posterior(DATA, 2, HIERARCHY, BETA, n_all)
    problem = problem_of(np.concatenate(DATA), [0, 3, 7], Categorical(BETA, n_categories=2), HDP(0.8, 1.3))
    walker = walker_of(problem, [0, 1, 2, 0, 1, 2, 0], n_all=n_all or np.inf)
    walker.begin(problem.prior.mean())
    index = {tuple(path): number for number, path in enumerate(exact.paths.tolist())}
    found = np.empty(6000, dtype=int)
    for sweep in range(len(found)):
        walker.sweep(sweep, 1.0)
        found[sweep] = index[named(walker.states)]
    sizes = exact.paths.max(axis=1) + 1
    for size in range(1, 6):
        is_so = (sizes[found] == size).astype(float)
        error = np.sqrt(is_so.var() / ess_bulk(is_so.reshape(1, -1)))
        assert abs(is_so.mean() - exact.n_states[size]) <= 4.0 * error
    common = np.argsort(exact.probability)[-40:]
    seen, told = np.bincount(found, minlength=len(sizes))[common], len(found) * exact.probability[common]
    assert np.abs((seen - told) / np.sqrt(told)).max() < 10.0
    assert stats.pearsonr(seen, told).statistic > 0.97
