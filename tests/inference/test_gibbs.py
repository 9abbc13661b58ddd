"""Gibbs samplers draw from the posterior: by enumeration, by joint simulation, and as a user meets them."""

import itertools

import naive_collapsed as naive
import numpy as np
import pytest
from examples import FAMILIES, example
from gibbs_problems import (
    ALPHA,
    BETA,
    COLLAPSED,
    DATA,
    FIRST,
    SequencesInPython,
    StatesInPython,
    problem_of,
    results_of,
    walker_at,
    words,
)
from scipy import stats

from subchain import Categorical, Dirichlet, Gaussian, Gibbs, Poisson, Sequences
from subchain.core.samples import ess_bulk
from subchain.data import Evidence
from subchain.emissions.frozen import Frozen
from subchain.engines import CpuEngine
from subchain.inference.run.chains import ChainProblem
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.sampling.collapsed_walkers import SequenceWalker, StateWalker
from subchain.structures.chain.sampling.joint import emission_sums, log_joint_of_emissions
from subchain.structures.chain.sampling.sampled_walker import SampledSequences
from subchain.structures.chain.sampling.walkers import Setting
from subchain.structures.chain.structure import Chains

# ---- against enumeration ---------------------------------------------------------------------------------------------


def assert_leaves_alone(kind, problem, paths, probability, replicates, n_sweeps, temperature=1.0, seed=0):
    """Exact draws stay exact draws when they are swept; many independent ones are compared with the truth."""
    rng = np.random.default_rng(seed)
    walker = walker_at(kind, problem, paths[0], seed)
    index = {tuple(path): i for i, path in enumerate(paths.tolist())}
    counts, changed = np.zeros(len(paths)), 0
    for number, start in enumerate(rng.choice(len(paths), replicates, p=probability)):
        walker.states = paths[start].astype(np.int32)
        walker.restore({})
        walker.sweeps(number * n_sweeps + 1, np.full(n_sweeps, temperature))
        end = index[tuple(walker.states.tolist())]
        counts[end] += 1
        changed += start != end
    expected = probability * replicates
    order = np.argsort(expected)
    groups = np.minimum(np.cumsum(expected[order]) // 10, 40).astype(int)  # at least ten are expected in each
    seen, told = (np.bincount(groups, part[order]) for part in (counts, expected))
    full = told > 0
    assert stats.chisquare(seen[full], told[full]).pvalue > 1e-3
    assert changed > replicates / 4


def annealed(posterior, temperature):
    weights = posterior.probability ** (1.0 / temperature)
    return weights / weights.sum()


def exact(data=DATA, n_states=2, legal=None):
    return naive.exact_posterior(
        data, np.full(n_states, FIRST), np.full((n_states, n_states), ALPHA), np.full((3, n_states), BETA), legal
    )


@pytest.mark.parametrize(
    ("kind", "replicates", "n_sweeps"),
    [(StateWalker, 4000, 5), (SequenceWalker, 4000, 5), (StatesInPython, 500, 2), (SequencesInPython, 500, 2)],
)
@pytest.mark.parametrize("temperature", [1.0, 2.0, 0.5])
def test_the_exact_posterior_is_left_alone(kind, replicates, n_sweeps, temperature):
    posterior = exact()
    probability = annealed(posterior, temperature)
    assert_leaves_alone(kind, words(), posterior.paths, probability, replicates, n_sweeps, temperature)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_drawn_parameters_leave_it_alone_too(temperature):
    """Annealed, the likelihood is raised to the power and the prior is not: counts are divided by the temperature."""
    problem = naive.symmetric(DATA, 2, 3, ALPHA, BETA)._replace(alpha_initial=np.full(2, FIRST))
    posterior, alpha = exact(), naive.concentration(problem)
    logs = []
    for path in posterior.paths:
        counts = [naive.count(path[:3], DATA[0], alpha), naive.count(path[3:], DATA[1], alpha)]
        scaled = naive.Table(*(sum(part) / temperature for part in zip(*counts, strict=True)))
        logs.append(float(naive.log_joint_of_counts(scaled, alpha)))
    probability = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    assert_leaves_alone(SampledSequences, words(), posterior.paths, probability, 600, 2, temperature)


FACTORS = [np.array([[1.0, 0.3, 1.0], [1.0, 0.0, 0.0], [0.5, 1.0, 0.0]]), np.array([[1.0, 1.0, 0.2], [0.0, 1.0, 0.7]])]


@pytest.mark.parametrize(
    ("kind", "replicates", "temperature"),
    [
        (StateWalker, 4000, 1.0), (StateWalker, 4000, 0.5), (SequenceWalker, 4000, 1.0), (SequenceWalker, 4000, 0.5),
        (StatesInPython, 500, 1.0), (SequencesInPython, 500, 0.5), (SampledSequences, 500, 1.0),
    ],
)  # fmt: skip
def test_so_is_that_of_states_of_which_something_is_known(kind, replicates, temperature):
    posterior = exact(n_states=3, legal=FACTORS)
    with np.errstate(divide="ignore"):
        problem = words(n_states=3, evidence=np.log(np.vstack(FACTORS)))
    probability = annealed(posterior, temperature)
    assert_leaves_alone(kind, problem, posterior.paths, probability, replicates, 3, temperature)


@pytest.mark.parametrize(
    ("kind", "replicates"), [(SequenceWalker, 4000), (StatesInPython, 500), (SequencesInPython, 500)]
)
def test_and_that_of_chains_whose_moves_are_partly_fixed(kind, replicates):
    fixed = np.array([[np.nan, np.nan, 0.2], [0.0, np.nan, np.nan], [0.5, 0.5, 0.0]])
    data = [[0, 1, 1], [2, -1]]
    problem = problem_of(
        data, Categorical(BETA, n_categories=3), Dirichlet(ALPHA, fixed=fixed, initial=[0.5, 0.3, 0.2]), n_states=3
    )
    paths = np.array(list(itertools.product(range(3), repeat=5)))
    logs = np.array([walker_at(kind, problem, path).log_joint() for path in paths])
    assert np.isneginf(logs).any()
    possible = np.isfinite(logs)
    probability = np.exp(logs[possible] - np.logaddexp.reduce(logs[possible]))
    assert_leaves_alone(kind, problem, paths[possible], probability, replicates, 3)


@pytest.mark.parametrize("legal", [None, [[1, 1], [1, 1], [1, 1], [1, 1], [0, 1]]])
def test_and_that_of_chains_whose_filtered_marginals_underflow(legal):
    """State 0 cannot be returned to. It explains the second observation with a density of e^-1800 relative to state 1,
    which explains the third no better, so that both are in the game although only one survives as a plain number."""
    x = np.array([[0.0], [60.0], [0.0], [60.0], [60.0]])
    data = Sequences(x, np.array([0, 5]))
    legal = None if legal is None else np.array(legal, dtype=bool)
    evidence = Evidence.build(data, 2, n_symbols=0, evidence=None if legal is None else np.where(legal, 0.0, -np.inf))
    chain = Dirichlet(ALPHA, fixed=[[0.6, 0.4], [0.0, 1.0]], initial=[1.0, 0.0]).prior(2, flat=False)
    emission = Frozen(Gaussian.from_parameters([[0.0], [60.0]], np.ones((2, 1, 1))))
    problem = ChainProblem(Chains(data, evidence, engine=CpuEngine(1)), HMMPosterior(chain, emission))
    paths = np.array([[0] * n + [1] * (5 - n) for n in range(1, 6)])
    likely = np.array([0.4, 0.0, 0.6**2 * 0.4, 0.0, 0.0])
    walker, seen = walker_at(SequenceWalker, problem, paths[0]), np.zeros(5)
    for sweep in range(2000):
        walker.sweep(sweep + 1, 1.0)
        seen[int((walker.states == 0).sum()) - 1] += 1
    possible = likely > 0.0
    assert seen[~possible].sum() == 0
    assert stats.chisquare(seen[possible], 2000 * likely[possible] / likely.sum()).pvalue > 1e-3


def test_drawn_moves_may_tell_where_chains_begin():
    """Chains that begin in their stationary distribution: the exact posterior is an integral over all moves."""
    data = [[0, 0], [0, 0], [0, 1], [1, 1]]
    problem = problem_of(data, Categorical(BETA, n_categories=2), Dirichlet(ALPHA, initial="stationary"))
    paths = np.array(list(itertools.product((0, 1), repeat=8)))
    mass = np.diff(stats.beta(ALPHA, ALPHA).cdf(np.linspace(0.0, 1.0, 301)))
    leave = np.meshgrid((np.arange(300) + 0.5) / 300, (np.arange(300) + 0.5) / 300, indexing="ij")
    begin = [leave[1] / (leave[0] + leave[1]), leave[0] / (leave[0] + leave[1])]
    logs = []
    for path in paths:
        weights = np.outer(mass, mass)
        for before, after in path.reshape(4, 2):
            weights = weights * begin[before] * (1.0 - leave[before] if before == after else leave[before])
        emissions = walker_at(SampledSequences, problem, path).log_joint_of_emissions()
        logs.append(np.log(weights.sum()) + emissions)
    probability = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    expected = np.tensordot(probability, paths[:, :, None] == paths[:, None, :], 1)
    walker, together = walker_at(SampledSequences, problem, paths[0]), np.zeros((8, 8))
    for sweep in range(1, 2001):
        walker.sweep(sweep, 1.0)
        together += walker.states[:, None] == walker.states[None, :]
    assert np.abs(together / 2000 - expected).max() < 0.055


@pytest.mark.parametrize("kind", COLLAPSED)
def test_the_log_joint_is_that_of_the_definition(kind):
    posterior, problem = exact(), words()
    for path, expected in zip(posterior.paths[:8], posterior.log_joint, strict=False):
        assert walker_at(kind, problem, path).log_joint() == pytest.approx(expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_log_joint_of_any_family_is_a_product_of_predictives(family):
    specification, data = example(family, "ragged")
    values, rng = np.asarray(data.values[:9]), np.random.default_rng(0)
    prior, states = specification.prior(data, 3, flat=False), rng.integers(0, 3, 9)
    posterior, expected = prior, 0.0
    for t, state in enumerate(states):
        expected += posterior.predictive().log_likelihood(values[t : t + 1])[state, 0]
        posterior = prior.update(emission_sums(prior.mean(), values[: t + 1], states[: t + 1]))
    sums = emission_sums(prior.mean(), values, states)
    assert log_joint_of_emissions(prior, sums, values, states) == pytest.approx(expected)


def test_a_run_finds_the_exact_posterior():
    """From one start to the end, as users run it."""
    found = results_of(Gibbs(n_samples=800, burn_in=50, thin=5, n_chains=4, keep_states=True), words()).samples
    together = (found["states"][..., :, None] == found["states"][..., None, :]).mean(axis=(0, 1))
    assert np.abs(together - exact().co_clustering).max() < 0.04


# ---- joint simulation (Geweke 2004) ----------------------------------------------------------------------------------


def functions_of(values, states, offsets):
    """Bounded numbers that depend on states and observations in different ways."""
    rows = np.nan_to_num(np.asarray(values, dtype=np.float64)).reshape(len(states), -1)
    numbers, sizes = np.tanh(rows.sum(axis=1)), np.tanh(np.abs(rows).mean(axis=1))
    stays, first = np.mean(states[1:] == states[:-1]), states[offsets[:-1]].mean()
    return [stays, stays**2, stays * first, first**2, states.mean(), numbers.mean(), numbers @ states, sizes.mean()]


def geweke(kind, problem, n_steps, seed):
    """Numbers from the joint prior, and from sweeps given observations that are drawn anew given states, in turn."""
    rng, data = np.random.default_rng(seed), problem.structure.data
    missing = np.isnan(data.values) if data.values.dtype.kind == "f" else data.values < 0
    nothing = np.nan if data.values.dtype.kind == "f" else -1

    def observe(point, states):
        values = point.emission.sample(states.astype(np.int64), rng).reshape(data.values.shape)
        return np.where(missing, nothing, values).astype(data.values.dtype)

    def draw():
        point, states = problem.prior.sample(rng), np.empty(data.n_observations, dtype=np.int32)
        for first, stop in itertools.pairwise(data.offsets):
            for t in range(first, stop):
                law = point.chain.initial if t == first else point.chain.transition[states[t - 1]]
                states[t] = min(np.searchsorted(np.cumsum(law), rng.random()), len(law) - 1)
        return point, states, observe(point, states)

    marginal, successive = [], []
    for _ in range(2 * n_steps):
        _, states, values = draw()
        marginal.append(functions_of(values, states, data.offsets))
    point, states, values = draw()
    for step in range(n_steps):
        part = Chains(Sequences(values, data.offsets), engine=CpuEngine(1))
        walker = kind(Setting(part, problem.prior, 1000 * seed + step), 0, states)
        walker.begin(point)
        walker.sweep(step + 1, 1.0)
        statistics = walker.statistics()
        point.emission = walker.draw_emission(statistics, step + 1)
        point.chain = walker.draw_chain(statistics, step + 1)
        states, values = walker.states, observe(point, walker.states)
        successive.append(functions_of(values, states, data.offsets))
    return np.array(marginal), np.array(successive)


SHORT = np.array([0, 4, 7])


NAN = np.nan


HOLES = np.array([[0.0, 0.0], [NAN, 0.0], [0.0, NAN], [NAN, NAN], [0.0, NAN], [0.0, NAN], [NAN, 0.0]])


GAUSSIAN = Gaussian(mean=[0.0, 0.0], mean_strength=0.5, degrees=4.0, scale=np.eye(2))


SIMULATIONS = {
    "words": (StateWalker, Categorical(0.6, n_categories=3), np.array([0, 0, -1, 0, 0, 0, 0]), 1800),
    "sentences": (SequenceWalker, Categorical(0.6, n_categories=3), np.zeros(7, int), 1800),
    "counts": (SequencesInPython, Poisson(shape=2.0, rate=1.0), np.zeros(7, int), 700),
    "incomplete vectors": (StatesInPython, GAUSSIAN, HOLES, 400),
    "incomplete vectors, drawn parameters": (SampledSequences, GAUSSIAN, HOLES, 600),
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_states_and_observations_have_their_joint_distribution(name):
    kind, emission, values, n_steps = SIMULATIONS[name]
    data = Sequences(values, SHORT)
    prior = HMMPosterior(Dirichlet(0.8).prior(2, flat=False), emission.prior(data, 2, flat=False))
    marginal, successive = geweke(kind, ChainProblem(Chains(data, engine=CpuEngine(1)), prior), n_steps, seed=5)
    for ours, theirs in zip(successive.T, marginal.T, strict=True):
        size = min(ess_bulk(ours.reshape(1, -1)), len(ours))
        error = np.sqrt(ours.var() / size + theirs.var() / len(theirs))
        assert abs(ours.mean() - theirs.mean()) < 4.0 * error
