"""Gibbs sampling as users meet it: results, starts, knowledge, annealing, resuming, refusals."""

import numpy as np
import pytest
from examples import FAMILIES, example
from gibbs_problems import DATA, marginals_of, problem_of, quiet_fit, results_of, walker_at, words

from subchain import HMM, Categorical, Dirichlet, Gibbs, Poisson, Sequences, left_right
from subchain.data import Evidence
from subchain.data.legal_states import LegalStates
from subchain.engines import CpuEngine
from subchain.errors import ConvergenceWarning, InputError
from subchain.inference.run.chains import ChainProblem
from subchain.structures.chain.model import HMMPosterior
from subchain.structures.chain.sampling.collapsed_walkers import SequenceWalker, StateWalker
from subchain.structures.chain.sampling.sampled_walker import SampledSequences
from subchain.structures.chain.sampling.walkers import Setting
from subchain.structures.chain.structure import Chains

# ---- as users meet them ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentences():
    return example("categorical", "many")[1]


def model(algorithm, **settings):
    return HMM(3, Categorical(n_categories=5), inference=algorithm, random_state=0, **({"n_jobs": 1} | settings))


SAMPLED = {"block": "sequence", "parameters": "sampled"}


def settings_of(**settings):
    return {"n_samples": 6, "burn_in": 3, "n_chains": 2} | settings


@pytest.mark.parametrize(
    ("settings", "kind"),
    [({}, StateWalker), ({"block": "sequence"}, SequenceWalker), (SAMPLED, SampledSequences)],
)
def test_settings_decide_on_the_kind_of_chain(settings, kind):
    walkers = Gibbs(**settings).walkers(problem_of(DATA, Poisson(), Dirichlet()), 0)
    assert type(walkers.walker(0, np.zeros(5))) is kind


class TestResults:
    def test_statistics_are_means_of_the_best_chains_draws(self):
        found = results_of(Gibbs(n_samples=40, burn_in=10, n_chains=3, keep_states=True), words())
        samples = found.samples
        best = samples["log_joint"].mean(axis=1).argmax()
        draws = samples["states"][best]
        assert found.statistics.initial == pytest.approx(
            [(draws[:, [0, 3]] == state).sum(axis=1).mean() for state in (0, 1)]
        )
        assert found.statistics.pairs.sum() == pytest.approx(3.0)
        assert found.statistics.emission.counts[1, 0] == pytest.approx((draws[:, [1, 2]] == 0).sum(axis=1).mean())
        shares = np.stack([(draws == state).mean(axis=0) for state in (0, 1)], axis=1)
        assert marginals_of(found) == pytest.approx(shares)
        expected = found.problem.prior.update(found.statistics).mean()
        assert found.point.chain.transition == pytest.approx(expected.chain.transition)

    def test_draws_have_leading_axes_of_chains_and_draws(self):
        found = results_of(Gibbs(n_samples=7, burn_in=2, thin=2, n_chains=3, keep_states=True), words()).samples
        shapes = {name: array.shape for name, array in found.items()}
        assert shapes == {
            "log_joint": (3, 7), "n_used": (3, 7), "occupancy": (3, 7, 2), "initial": (3, 7, 2),
            "transition": (3, 7, 2, 2), "emission.probabilities": (3, 7, 2, 3), "states": (3, 7, 5),
        }  # fmt: skip
        assert found["states"].dtype == np.uint8
        assert found["transition"].sum(axis=-1) == pytest.approx(np.ones((3, 7, 2)))
        assert (np.diff(found["occupancy"], axis=-1) <= 0.0).all()

    def test_parameters_of_large_vocabularies_are_not_kept_for_every_draw(self):
        problem = problem_of(DATA, Categorical(n_categories=6000), Dirichlet())
        assert "emission.probabilities" not in results_of(Gibbs(**settings_of()), problem).samples

    def test_the_trace_tells_of_every_chain(self, sentences):
        fitted = quiet_fit(model(Gibbs(**settings_of(thin=2))), sentences)
        measures = fitted.trace_.measures
        assert measures["sweeps"] == [2.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]
        assert fitted.trace_.objective == pytest.approx(
            np.mean([measures["log_joint.0"], measures["log_joint.1"]], axis=0)
        )
        assert fitted.runs_[0].objective == pytest.approx(
            max(np.mean(measures[f"log_joint.{chain}"][2:]) for chain in (0, 1))
        )

    def test_threads_change_nothing(self, sentences, monkeypatch):
        monkeypatch.setattr("subchain.structures.chain.sampling.walkers.SMALL", 0)
        one, two = (quiet_fit(model(Gibbs(**settings_of()), n_jobs=n), sentences) for n in (1, 2))
        assert one.trace_.objective == two.trace_.objective
        np.testing.assert_array_equal(one.transition_, two.transition_)

    def test_chains_that_disagree_are_mentioned(self, sentences):
        trace = quiet_fit(model(Gibbs(**settings_of())), sentences).trace_
        for chain, level in enumerate((0.0, 100.0)):
            trace.measures[f"log_joint.{chain}"] = (level + np.random.default_rng(0).normal(size=9)).tolist()
        assert "do not agree" in Gibbs(**settings_of()).complaint(trace, "max_iter")

    def test_a_limit_of_time_may_leave_no_draw(self, sentences):
        with pytest.warns(ConvergenceWarning, match="kept no draw"):
            fitted = model(Gibbs(burn_in=10**6, n_chains=1, time_limit=1e-9)).fit(sentences)
        assert fitted.statistics_.pairs.sum() == pytest.approx(228.0)


class TestStarts:
    def test_states_are_drawn_uniformly_from_the_legal_ones(self, sentences):
        evidence = Evidence.build(sentences, 3, allowed={0: [0], 1: [1, 2], 2: [0, 1, 2], 3: [2], 4: [0, 2]})
        prior = HMMPosterior(Dirichlet().prior(3, flat=False), Categorical().prior(sentences, 3, flat=False))
        setting = Setting(Chains(sentences, evidence, engine=CpuEngine(1)), prior, 0)
        drawn = np.array([setting.draw_legal(number) for number in range(200)])
        shares = np.stack([(drawn == state).mean(axis=0) for state in range(3)], axis=1)
        np.testing.assert_array_equal(shares[sentences.values == 0], [[1.0, 0.0, 0.0]] * (sentences.values == 0).sum())
        assert shares[sentences.values == 1].mean(axis=0) == pytest.approx([0.0, 0.5, 0.5], abs=0.03)
        assert shares[sentences.values == 2].mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.03)

    def test_moves_that_cannot_happen_do_not_begin(self, sentences):
        for init in ("states", "posteriors"):
            masked = model(Gibbs(**settings_of()), init=init, transition=Dirichlet(mask=left_right(3)))
            assert np.tril(quiet_fit(masked, sentences).statistics_.pairs, -1).sum() == 0.0

    @pytest.mark.parametrize("init", ["states", "posteriors", "exponential"])
    def test_chains_begin_apart(self, init, sentences):
        trace = quiet_fit(model(Gibbs(**settings_of()), init=init), sentences).trace_
        assert trace.measures["log_joint.0"][0] != trace.measures["log_joint.1"][0]


class TestKnowledge:
    def test_only_legal_states_are_drawn(self, sentences):
        allowed = {0: [0], 1: [1, 2], 2: [0, 1, 2], 3: [2], 4: [0, 2]}
        for settings in ({}, {"block": "sequence"}, SAMPLED):
            evidence = Evidence.build(sentences, 3, allowed=allowed)
            prior = HMMPosterior(Dirichlet().prior(3, flat=False), Categorical().prior(sentences, 3, flat=False))
            problem = ChainProblem(Chains(sentences, evidence, engine=CpuEngine(1)), prior)
            found = results_of(Gibbs(**settings_of(keep_states=True, **settings)), problem)
            legal = np.zeros((5, 3), dtype=bool)
            for symbol, states in allowed.items():
                legal[symbol, states] = True
            assert legal[sentences.values, found.samples["states"]].all()
            lists = LegalStates.of(evidence, sentences)
            sums = np.add.reduceat(marginals_of(found), lists.offsets[:-1])
            assert sums == pytest.approx(np.ones(sentences.n_observations))

    def test_known_states_stay(self, sentences):
        states = np.arange(sentences.n_observations) % 3
        fitted = quiet_fit(model(Gibbs(**settings_of())), sentences, states=states)
        assert fitted.statistics_.pairs.trace() == 0.0
        assert set(fitted.trace_.measures["changed"]) == {0.0}


class TestAnnealing:
    def test_temperatures_lie_on_straight_lines_through_the_burn_in(self):
        found = Gibbs(burn_in=5, annealing=(2.0, 1.0, 0.5)).temperatures()
        assert found == pytest.approx([2.0, 1.5, 1.0, 0.75, 0.5, 0.5])
        assert Gibbs(burn_in=3, annealing=lambda share: 2.0 - share).temperatures() == pytest.approx([2, 1.5, 1, 1])
        assert Gibbs(burn_in=3).temperatures() == pytest.approx(np.ones(4))
        assert Gibbs(burn_in=0, annealing=0.5).temperatures() == pytest.approx([0.5])

    @pytest.mark.parametrize("settings", [{}, {"block": "sequence"}])
    def test_the_cold_find_a_state_for_which_no_single_change_is_better(self, settings):
        problem = words([[0, 1, 1, 2, 0, 1], [2, 0, 1, 0]])
        cold = Gibbs(n_samples=1, burn_in=60, n_chains=1, annealing=(2.0, 0.01), keep_states=True, **settings)
        states = results_of(cold, problem).samples["states"][0, 0]
        level = walker_at(StateWalker, problem, states).log_joint()
        for position in range(len(states)):
            changed = states.copy()
            changed[position] = 1 - changed[position]
            assert walker_at(StateWalker, problem, changed).log_joint() <= level + 1e-9


class TestResuming:
    @pytest.mark.parametrize(
        ("family", "settings", "transition"),
        [
            ("categorical", {"block": "sequence"}, None),
            ("categorical", SAMPLED, Dirichlet(initial="stationary")),
            ("gaussian", {"block": "sequence", "annealing": (3.0, 1.0)}, None),
            ("gaussian", SAMPLED, None),
        ],
    )
    def test_a_run_that_goes_on_with_more_draws_ends_as_one_that_was_never_stopped(
        self, family, settings, transition, tmp_path
    ):
        specification, data = example(family, "missing")
        for n_samples, more in ((3, {}), (6, {"resume": True})):
            algorithm = Gibbs(n_samples=n_samples, burn_in=2, n_chains=2, **settings)
            fitted = HMM(3, specification, transition, algorithm, random_state=0, n_jobs=1)
            quiet_fit(fitted, data, checkpoint=tmp_path / "c", **more)
        whole = quiet_fit(HMM(3, specification, transition, algorithm, random_state=0, n_jobs=1), data)
        assert fitted.trace_.objective == whole.trace_.objective
        for key, array in whole.statistics_.arrays().items():
            np.testing.assert_array_equal(array, fitted.statistics_.arrays()[key])

    def test_fewer_draws_than_there_are_end_a_run_that_is_resumed(self, sentences, tmp_path, monkeypatch):
        from subchain.inference.run.checkpoint import Checkpoint

        saved, calls = Checkpoint.save, []

        def save_and_die(self, journey, *, force=False):
            saved(self, journey, force=True)
            calls.append(1)
            if len(calls) == 8:
                raise RuntimeError("killed")

        monkeypatch.setattr(Checkpoint, "save", save_and_die)
        with pytest.raises(RuntimeError, match="killed"):
            model(Gibbs(n_samples=9, burn_in=3, n_chains=2)).fit(sentences, checkpoint=tmp_path / "c")
        monkeypatch.undo()
        shorter = model(Gibbs(n_samples=2, burn_in=3, n_chains=2))
        quiet_fit(shorter, sentences, checkpoint=tmp_path / "c", resume=True)
        assert shorter.samples_.n_draws == 5


@pytest.mark.parametrize("settings", [{"block": "sequence"}, SAMPLED])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_drawn_in_every_way(family, settings):
    specification, data = example(family, "missing")
    fitted = HMM(3, specification, inference=Gibbs(**settings_of(n_samples=2, **settings)), random_state=0, n_jobs=1)
    quiet_fit(fitted, data)
    assert fitted.point_.not_finite() is None
    assert fitted.statistics_.pairs.sum() == pytest.approx(75.0)


class TestModels:
    """What a model makes of a run."""

    @pytest.fixture
    def fitted(self, sentences):
        return quiet_fit(model(Gibbs(**settings_of(n_samples=20, keep_states=True))), sentences)

    def test_states_in_another_order_are_so_in_all_draws(self, fitted, sentences):
        before, marginals = fitted.samples_, fitted.predict_proba(sentences)
        order = np.argsort(fitted.state_occupancy_)[::-1]
        fitted.order_states()
        after = fitted.samples_
        np.testing.assert_array_equal(after["transition"], before["transition"][..., order, :][..., order])
        np.testing.assert_array_equal(after["emission.probabilities"], before["emission.probabilities"][:, :, order])
        np.testing.assert_array_equal(order[after["states"]], before["states"])
        for ours, theirs in zip(fitted.predict_proba(sentences), marginals, strict=True):
            np.testing.assert_allclose(ours, theirs[:, order])

    def test_draws_are_saved(self, fitted, tmp_path):
        fitted.save(tmp_path / "model")
        again = HMM.load(tmp_path / "model").samples_
        for name, array in fitted.samples_.items():
            np.testing.assert_array_equal(again[name], array)


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_samples": 0}, "n_samples must be a whole number of at least 1"),
            ({"burn_in": -1}, "burn_in"),
            ({"thin": 0}, "thin"),
            ({"n_chains": 1.5}, "n_chains"),
            ({"block": "sequences"}, "Did you mean 'sequence'"),
            ({"parameters": "colapsed"}, "Did you mean 'collapsed'"),
            ({"block": "state", "parameters": "sampled"}, "block='sequence'"),
            ({"annealing": (2.0, 0.0)}, "temperatures must be positive and finite, but that of sweep 499 is 0.0"),
            ({"annealing": -1.0}, "temperatures must be positive"),
            ({"annealing": "cold"}, "annealing must be"),
            ({"annealing": lambda share: None}, "annealing must be"),
            ({"annealing": (2.0, 1.0), "burn_in": 0}, "burn_in is 0"),
            ({"keep_states": "yes"}, "keep_states"),
            ({"time_limit": 0.0}, "time_limit"),
        ],
    )  # fmt: skip
    def test_settings_out_of_range_are_named(self, settings, message, sentences):
        with pytest.raises(InputError, match=message):
            model(Gibbs(**settings)).fit(sentences)

    def test_sequences_cannot_be_weighed(self, sentences):
        with pytest.raises(InputError, match="sample_weight"):
            model(Gibbs()).fit(sentences, sample_weight=np.arange(12) + 1.0)
        quiet_fit(model(Gibbs(**settings_of())), sentences, sample_weight=np.ones(12))

    def test_a_temperature_at_which_no_proposal_is_accepted_is_named(self, sentences):
        cold = Gibbs(**settings_of(block="sequence", annealing=(1.0, 0.001)))
        with pytest.warns(ConvergenceWarning, match=r"no proposal for any of its 6 draws \(temperature 0.001\)"):
            model(cold).fit(sentences)

    def test_moves_whose_stationary_distribution_counts_cannot_be_summed_out(self, sentences):
        with pytest.raises(InputError, match="parameters='sampled'"):
            model(Gibbs(), transition=Dirichlet(initial="stationary")).fit(sentences)


class TestFrozen:
    @pytest.mark.parametrize("settings", [{}, {"block": "sequence"}, SAMPLED])
    def test_what_is_frozen_stays(self, settings, sentences):
        begin = model("vi").fit(sentences)
        chain = model(Gibbs(**settings_of(**settings)), init=begin, transition=Dirichlet(frozen=True))
        quiet_fit(chain, sentences)
        np.testing.assert_array_equal(chain.transition_, begin.transition_)
        table = HMM(3, Categorical(n_categories=5, frozen=True), inference=Gibbs(**settings_of(**settings)), init=begin)
        quiet_fit(table, sentences)
        np.testing.assert_array_equal(table.emission_.weights, begin.emission_.weights)

    def test_with_all_parameters_known_beliefs_are_those_of_the_model(self):
        begin = HMM(2, Categorical(n_categories=3), random_state=0).fit([0, 1, 1, 2, 0, 1, 0, 0, 2])
        x = [0, 1, 2, 2, 1]
        data = Sequences(np.array(x))
        from subchain.emissions import Frozen
        from subchain.transitions import FrozenChain

        prior = HMMPosterior(FrozenChain(begin.point_.chain), Frozen(begin.emission_))
        for settings in ({}, {"block": "sequence"}, SAMPLED):
            found = results_of(
                Gibbs(n_samples=800, n_chains=1, **settings), ChainProblem(Chains(data, engine=CpuEngine(1)), prior)
            )
            assert np.abs(marginals_of(found) - begin.predict_proba(x)).max() < 0.07
