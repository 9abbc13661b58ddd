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


# ---- joint simulation (Geweke 2004) ----------------------------------------------------------------------------------


def functions_of(values, states, top, offsets):
    """Bounded numbers that depend on everything that is drawn, but not on what states are called."""
    rows = np.nan_to_num(np.asarray(values, dtype=np.float64)).reshape(len(states), -1)
    numbers, same = np.tanh(rows.sum(axis=1)), states[:, None] == states[None, :]
    n_used, stays = len(np.unique(states)), np.mean(states[1:] == states[:-1])
    firsts = states[offsets[0]] == states[offsets[1]]
    weights = top.weights[np.unique(states)]
    return [
        n_used, n_used == 1, stays, stays**2, same.mean(), firsts, firsts * stays, numbers @ same @ numbers,
        numbers.mean() ** 2, weights.max(), (weights**2).sum(), np.tanh(top.concentration),
        np.tanh(top.top_concentration), n_used * np.tanh(top.top_concentration), stays * np.tanh(top.concentration),
    ]  # fmt: skip


class Simulation:
    """Draws from the joint prior, and from sweeps given observations that are drawn anew given states, in turn."""

    def __init__(self, emission, values, transition, n_all=None, *, is_named=False):
        self.problem = problem_of(values, SHORT, emission, transition, n_all or 3, named=is_named)
        self.data, self.n_all = self.problem.whole.data, n_all
        self.settings = self.problem.prior.chain.hierarchy

    def setting(self, values, seed):
        whole = self.problem.whole
        part = Part(Sequences(values, self.data.offsets), whole.evidence)
        return Setting.of(Problem(part, self.problem.prior, self.problem.engine), seed)

    def hierarchy(self, rng):
        settings = self.settings
        concentration = rng.gamma(2.0, 0.5) if settings.learns_concentration else settings.concentration
        of_top = rng.gamma(2.0, 0.5) if settings.learns_top_concentration else settings.top_concentration
        return naive.Hierarchy(concentration, of_top, settings.stickiness)

    def observe(self, emission, states, rng):
        values = self.data.values
        is_real = values.dtype.kind == "f"
        missing = np.isnan(values) if is_real else values < 0
        drawn = emission.sample(states.astype(np.int64), rng).reshape(values.shape)
        return np.where(missing, np.nan if is_real else -1, drawn).astype(values.dtype)

    def draw(self, rng):
        """A walker at a draw from the prior."""
        hierarchy = self.hierarchy(rng)
        drawn = naive.draw_prior(hierarchy, self.data.offsets, rng, self.n_all)
        walker = BeamWalker(
            self.setting(self.data.values, 0), 0, drawn.states, self.n_all or np.inf, shape=2.0, rate=2.0
        )
        top = walker.top._replace(
            weights=drawn.top, rest=drawn.rest, concentration=hierarchy.concentration,
            top_concentration=hierarchy.top_concentration,
        )  # fmt: skip
        if walker.named:
            weights = np.append(drawn.top, drawn.others)
            top = top._replace(weights=weights, rest=0.0)
        walker.top = top
        walker._adopt()
        emission = walker.prior.emission.sample(rng)
        walker.values = self.observe(emission, walker.states, rng)
        return walker, emission

    def run(self, n_steps, seed):
        rng, marginal, successive = np.random.default_rng(seed), [], []
        for _ in range(2 * n_steps):
            walker, _ = self.draw(rng)
            marginal.append(functions_of(walker.values, walker.states, walker.top, self.data.offsets))
        walker, emission = self.draw(rng)
        for step in range(n_steps):
            before = walker
            walker = BeamWalker(
                self.setting(before.values, 1000 * seed + step), 0, before.states, self.n_all or np.inf, 2.0, 2.0
            )
            walker.top = before.top
            walker._adopt()
            if walker.setting.has_holes:
                walker._fill(emission, step)
            walker.sweep(step, 1.0)
            emission = walker.draw_emission(walker.statistics(), step)
            walker.values = self.observe(emission, walker.states, rng)
            successive.append(functions_of(walker.values, walker.states, walker.top, self.data.offsets))
        return np.array(marginal, dtype=float), np.array(successive, dtype=float)


SHORT = np.array([0, 4, 7])
NAN = np.nan
HOLES = np.array([[0.0, 0.0], [NAN, 0.0], [0.0, NAN], [NAN, NAN], [0.0, NAN], [0.0, NAN], [NAN, 0.0]])
GAUSSIAN = Gaussian(mean=[0.0, 0.0], mean_strength=0.5, degrees=4.0, scale=np.eye(2))
SYMBOLS, MISSING = Categorical(0.6, n_categories=3), np.array([0, 0, -1, 0, 0, 0, 0])
SIMULATIONS = {
    "symbols": lambda: Simulation(SYMBOLS, MISSING, HDP("learned", "learned")),
    "sticky": lambda: Simulation(SYMBOLS, MISSING, HDP("learned", "learned", stickiness=1.5)),
    "counts": lambda: Simulation(Poisson(shape=2.0, rate=1.0), np.zeros(7, int), HDP(2.0, "learned", stickiness=0.5)),
    "few states": lambda: Simulation(SYMBOLS, MISSING, HDP("learned", "learned"), n_all=3),
    "named states": lambda: Simulation(SYMBOLS, MISSING, HDP("learned", "learned"), n_all=3, is_named=True),
    "incomplete vectors": lambda: Simulation(GAUSSIAN, HOLES, HDP(0.7, 1.5)),
}


def deviations(name, n_steps, seed=5):
    """How far means are apart, in standard errors."""
    marginal, successive = SIMULATIONS[name]().run(n_steps, seed)
    found = []
    for ours, theirs in zip(successive.T, marginal.T, strict=True):
        if np.ptp(theirs) > 0.0:
            size = min(ess_bulk(ours.reshape(1, -1)), len(ours))
            error = np.sqrt(ours.var() / size + theirs.var() / len(theirs))
            found.append((ours.mean() - theirs.mean()) / error)
        else:
            assert ours.mean() == pytest.approx(theirs.mean())
    return np.array(found)


@pytest.mark.parametrize("name", SIMULATIONS)
def test_everything_has_its_joint_distribution(name):
    assert np.abs(deviations(name, 1000)).max() < 4.0
