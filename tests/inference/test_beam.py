"""Beam sampling draws from the posterior of the infinite model: by enumeration, by joint simulation, and in use."""

import warnings

import naive_infinite as naive
import numpy as np
import pytest
from examples import FAMILIES, example
from scipy import stats

from subchain import HDP, HMM, Beam, Categorical, Dirichlet, Gaussian, Gibbs, Poisson, Sequences
from subchain.core.samples import ess_bulk
from subchain.data import Evidence
from subchain.datasets.published import four_state
from subchain.engines import CpuEngine
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference.run.chains import ChainProblem
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.sampling.beam_walker import BeamWalker
from subchain.structures.chain.sampling.walkers import Setting
from subchain.structures.chain.structure import Chains

DATA = [np.array([0, 1, 0]), np.array([1, 1, 0, 0])]
HIERARCHY = naive.Hierarchy(0.8, 1.3)
BETA = 0.5


def problem_of(values, offsets, emission, transition, n_states=3, *, named=False):
    data = Sequences(values, offsets)
    prior = HMMPosterior(transition.prior(n_states, flat=False), emission.prior(data, n_states, flat=False))
    evidence = Evidence.build(data, n_states, evidence=np.zeros((len(values), n_states))) if named else None
    return ChainProblem(Chains(data, evidence, engine=CpuEngine(1)), prior)


def walker_of(problem, states, seed=0, n_all=np.inf, shape=1.0, rate=1.0):
    return BeamWalker(Setting(problem.structure, problem.prior, seed), 0, np.asarray(states), n_all, shape, rate)


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
    found = np.empty(3000, dtype=int)
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
        self.data, self.n_all = self.problem.structure.data, n_all
        self.settings = self.problem.prior.chain.hierarchy

    def setting(self, values, seed):
        whole = self.problem.structure
        part = Chains(Sequences(values, self.data.offsets), whole.evidence, engine=CpuEngine(1))
        return Setting(part, self.problem.prior, seed)

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
            if walker.setting.has_incomplete_rows:
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


# ---- as users meet it ------------------------------------------------------------------------------------------------


def model(algorithm=None, n_states=3, emission=None, transition=None, **settings):
    return HMM(
        n_states, emission or Categorical(n_categories=5), transition or HDP("learned", "learned"),
        algorithm or Beam(**brief()), **({"random_state": 0, "n_jobs": 1} | settings),
    )  # fmt: skip


def brief(**settings):
    return {"n_samples": 6, "burn_in": 3, "n_chains": 2} | settings


@pytest.fixture(scope="module")
def sentences():
    return example("categorical", "many")[1]


@pytest.fixture
def fitted(sentences):
    return quiet_fit(model(Beam(**brief(n_samples=20, keep_states=True)), n_states=6), sentences)


@pytest.mark.parametrize("kind", ["positive", "negative"])
def test_four_states_are_found(kind):
    chain = four_state(kind, n_sequences=10, random_state=0)
    beam = Beam(n_samples=50, burn_in=450, n_chains=1)
    found = quiet_fit(model(beam, 6, Categorical(1.0), HDP()), chain.observations)
    assert found.effective_states() == 4
    assert found.samples_["n_states"].mean() == pytest.approx(4.0, abs=1.0)


class TestResults:
    def test_the_best_draw_is_reported(self, fitted, sentences):
        samples = fitted.samples_
        best = np.unravel_index(samples["log_joint"].argmax(), samples["log_joint"].shape)
        states, n_states = samples["states"][best], int(samples["n_states"][best])
        assert fitted.n_states_ == n_states == states.max() + 1
        pairs = np.zeros((n_states, n_states))
        inside = ~np.isin(np.arange(1, len(states)), sentences.offsets)
        np.add.at(pairs, (states[:-1][inside], states[1:][inside]), 1.0)
        np.testing.assert_array_equal(fitted.statistics_.pairs, pairs)
        assert fitted.posterior_.mean().chain.transition == pytest.approx(fitted.transition_)
        concentration = samples["concentration"][best] * samples["top"][best][:n_states]
        assert fitted.prior_.chain.initial.concentration == pytest.approx(concentration)

    def test_states_stand_in_order_of_use(self, fitted):
        for chain, draw in np.ndindex(2, 20):
            visits = np.bincount(fitted.samples_["states"][chain, draw])
            assert (np.diff(visits) <= 0).all()
            assert len(visits) == fitted.samples_["n_states"][chain, draw] == np.count_nonzero(visits)

    def test_draws_have_room_for_the_largest_and_nan_where_they_are_smaller(self, fitted):
        samples = fitted.samples_
        sizes = samples["n_states"]
        for name in ("initial", "top", "transition", "emission.probabilities"):
            assert samples[name].shape[2] == sizes.max()
            there = ~np.isnan(samples[name].reshape(2, 20, sizes.max(), -1)).all(axis=-1)
            np.testing.assert_array_equal(there.sum(axis=-1), sizes)
        assert np.nansum(samples["transition"], axis=-1)[:, :, 0] == pytest.approx(np.ones((2, 20)))
        assert samples["occupancy"].sum(axis=-1) == pytest.approx(np.ones((2, 20)))

    def test_the_summary_tells_of_states_and_concentrations(self, fitted):
        names = fitted.samples_.summary().names
        assert names[:4] == ["log_joint", "n_states", "concentration", "top_concentration"]
        assert np.isfinite(fitted.samples_.summary()["mean"]).all()

    def test_arviz_reads_the_draws(self, fitted):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip("arviz", reason="ArviZ is not installed; it is an extra")
            posterior = fitted.samples_.to_arviz().posterior
        np.testing.assert_array_equal(posterior["n_states"], fitted.samples_["n_states"])
        assert posterior["transition"].dims[2:] == ("state", "next_state")

    def test_draws_keep_their_states_when_those_of_the_model_are_put_in_order(self, fitted, sentences):
        before, score = dict(fitted.samples_), fitted.score(sentences)
        fitted.order_states(by="dwell")
        assert fitted.score(sentences) == pytest.approx(score)
        for name, array in fitted.samples_.items():
            np.testing.assert_array_equal(array, before[name])

    def test_the_model_goes_on_with_the_states_that_were_found(self, fitted, sentences, tmp_path):
        fitted.save(tmp_path / "model")
        again = HMM.load(tmp_path / "model")
        assert again.score(sentences) == fitted.score(sentences)
        for ours, theirs in zip(again.predict(sentences), fitted.predict(sentences), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert again.effective_states() <= again.n_states_
        assert again.partial_fit(sentences).n_states_ == fitted.n_states_

    def test_threads_change_nothing(self, sentences, monkeypatch):
        monkeypatch.setattr("subchain.structures.chain.sampling.walkers.SMALL", 0)
        one, two = (quiet_fit(model(n_jobs=n), sentences) for n in (1, 2))
        assert one.trace_.objective == two.trace_.objective
        np.testing.assert_array_equal(one.samples_["transition"], two.samples_["transition"])

    def test_pieces_change_nothing(self, sentences, monkeypatch):
        whole = quiet_fit(model(), sentences)
        monkeypatch.setattr("subchain.structures.chain.sampling.beam_walker.PIECE", 7)
        np.testing.assert_array_equal(whole.transition_, quiet_fit(model(), sentences).transition_)

    def test_concentrations_are_kept_where_they_are_learned(self, sentences):
        found = quiet_fit(model(transition=HDP("learned", 2.0)), sentences).samples_
        assert "concentration" in found
        assert "top_concentration" not in found

    def test_a_limit_of_time_may_leave_no_draw(self, sentences):
        with pytest.warns(ConvergenceWarning, match="kept no draw"):
            found = model(Beam(burn_in=10**6, n_chains=1, time_limit=1e-9)).fit(sentences)
        assert found.statistics_.pairs.sum() == pytest.approx(228.0)
        assert found.prior_.chain.initial.concentration.shape == (found.n_states_,)


class TestLimits:
    def test_a_full_house_is_mentioned(self, sentences):
        with pytest.warns(ConvergenceWarning, match=r"used all of max_states=2 states.*raise max_states"):
            found = model(Beam(**brief(max_states=2)), n_states=2, transition=HDP(5.0, 50.0)).fit(sentences)
        assert found.samples_["n_states"].max() == 2

    def test_without_a_limit_there_may_be_any_number(self, sentences):
        found = quiet_fit(model(Beam(**brief(max_states=None)), transition=HDP(20.0, 20.0)), sentences)
        assert found.samples_["n_states"].max() > 3

    def test_no_fewer_than_the_run_begins_with(self, sentences):
        with pytest.raises(InputError, match="max_states=2 is less than the 3 states"):
            model(Beam(max_states=2)).fit(sentences)


class TestKnowledge:
    def test_only_legal_states_are_drawn_and_they_keep_their_names(self, sentences):
        allowed = {0: [0], 1: [1, 2], 2: [0, 1, 2], 3: [2], 4: [0, 2]}
        found = quiet_fit(model(Beam(**brief(keep_states=True))), sentences, allowed=allowed)
        legal = np.zeros((5, 3), dtype=bool)
        for symbol, states in allowed.items():
            legal[symbol, states] = True
        assert legal[sentences.values, found.samples_["states"]].all()
        assert found.n_states_ == 3
        assert legal[sentences.values, np.concatenate(found.predict(sentences, allowed=allowed))].all()

    def test_known_states_stay(self, sentences):
        states = np.arange(sentences.n_observations) % 3
        found = quiet_fit(model(), sentences, states=states)
        assert found.statistics_.pairs.trace() == 0.0
        assert set(found.trace_.measures["changed"]) == {0.0}


class TestResuming:
    @pytest.mark.parametrize("family", ["categorical", "gaussian"])
    def test_a_run_that_goes_on_with_more_draws_ends_as_one_that_was_never_stopped(self, family, tmp_path):
        specification, data = example(family, "missing")
        for n_samples, more in ((3, {}), (6, {"resume": True})):
            found = model(Beam(**brief(n_samples=n_samples, annealing=(3.0, 1.0))), emission=specification)
            quiet_fit(found, data, checkpoint=tmp_path / "c", **more)
        whole = quiet_fit(model(Beam(**brief(annealing=(3.0, 1.0))), emission=specification), data)
        assert found.trace_.objective == whole.trace_.objective
        for name, array in whole.samples_.items():
            np.testing.assert_array_equal(array, found.samples_[name])
        for key, array in whole.prior_.arrays().items():
            np.testing.assert_array_equal(array, found.prior_.arrays()[key])


@pytest.mark.parametrize("init", ["states", "posteriors", "exponential"])
def test_runs_begin_with_so_many_states(init, sentences):
    trace = quiet_fit(model(n_states=8, init=init), sentences).trace_
    assert trace.measures["n_states.0"][0] > 3
    assert trace.measures["log_joint.0"][0] != trace.measures["log_joint.1"][0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_any_family_can_be_the_start(family):
    specification, data = example(family, "missing")
    begin = HMM(3, specification, random_state=0, n_jobs=1).fit(data)
    found = quiet_fit(model(emission=specification, init=begin), data)
    assert found.point_.not_finite() is None
    assert found.statistics_.pairs.sum() == pytest.approx(75.0)


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_samples": 0}, "Beam: n_samples must be a whole number of at least 1"),
            ({"max_states": 0}, "max_states"),
            ({"hyperprior": (1.0, 0.0)}, "shape and the rate"),
            ({"hyperprior": 1.0}, "shape and the rate"),
            ({"annealing": -1.0}, "Beam: temperatures must be positive"),
        ],
    )
    def test_settings_out_of_range_are_named(self, settings, message, sentences):
        with pytest.raises(InputError, match=message):
            model(Beam(**settings)).fit(sentences)

    def test_a_fixed_number_of_states_is_for_gibbs(self, sentences):
        with pytest.raises(InputError, match=r"needs transition=HDP\(\.\.\.\).*use Gibbs"):
            model(transition=Dirichlet()).fit(sentences)

    @pytest.mark.filterwarnings("ignore:the chains of Beam")
    def test_states_need_the_same_prior(self, sentences):
        with pytest.raises(InputError, match="one prior for all states"):
            model(emission=Categorical(1.0 + np.arange(15.0).reshape(3, 5))).fit(sentences)
        start = HMM.from_parameters([1 / 3] * 3, np.ones((3, 3)) / 3, Categorical.from_parameters(np.ones((3, 5)) / 5))
        with pytest.raises(InputError, match="freeze none"):
            model(emission=Categorical(n_categories=5, frozen=True), init=start).fit(sentences)

    def test_emissions_need_a_concentration(self, sentences):
        for algorithm, chain in ((Beam(), HDP()), (Gibbs(), Dirichlet())):
            with pytest.raises(InputError, match=r"needs vi, svi, cvi or scvi.*as a number"):
                HMM(3, Categorical("learned"), chain, algorithm).fit(sentences)

    def test_sequences_cannot_be_weighed(self, sentences):
        with pytest.raises(InputError, match="Beam cannot weigh sequences"):
            model().fit(sentences, sample_weight=np.arange(12) + 1.0)
