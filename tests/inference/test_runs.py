"""What happens around iterations: restarts, stopping, interruption, checkpoints, what is frozen, what is known."""

import contextlib
import os
import time

import numpy as np
import pytest
from examples import FAMILIES, example

from subchain import EM, HMM, VI, Categorical, Dirichlet, Gaussian, Product, left_right
from subchain.errors import ConvergenceWarning, FileFormatError, InferenceError, InputError, SubchainError
from subchain.inference import resolve_inference
from subchain.structures.chain.structure import Chains

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


@pytest.fixture
def data():
    return example("categorical", "many")[1]


def model(**settings):
    settings = {"inference": VI(max_iter=5, tolerance=0.0), "random_state": 0, "n_jobs": 1} | settings
    return HMM(3, settings.pop("emission", Categorical(n_categories=5)), **settings)


class TestStopping:
    def test_convergence_is_a_small_relative_change(self, data):
        fitted = model(inference=VI(max_iter=500, tolerance=1e-4)).fit(data)
        objective = fitted.trace_.objective
        assert fitted.status_ == "converged"
        assert abs(objective[-1] - objective[-2]) <= 1e-4 * abs(objective[-1])
        assert abs(objective[-2] - objective[-3]) > 1e-4 * abs(objective[-2])

    def test_running_out_of_iterations_warns_with_advice(self, data):
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            fitted = model(inference=VI(max_iter=2)).fit(data)
        assert fitted.status_ == "max_iter"
        assert len(fitted.trace_) == 2

    def test_time_is_limited(self, data):
        fitted = model(inference=VI(max_iter=10**6, tolerance=0.0, time_limit=1e-6)).fit(data)
        assert fitted.status_ == "time_limit"

    def test_a_held_out_score_that_no_longer_improves_ends_the_run(self, data):
        rng = np.random.default_rng(0)
        noise = [rng.integers(0, 5, 30) for _ in range(5)]
        fitted = model(inference=EM(max_iter=300, tolerance=0.0, patience=3), emission=Categorical(n_categories=5))
        fitted.fit(noise, validation=[rng.integers(0, 5, 30) for _ in range(5)])
        assert fitted.status_ == "stopped_improving"
        scores = fitted.trace_.validation
        assert len(scores) - 1 - scores.index(max(scores)) == 3

    @pytest.mark.parametrize(
        "setting", [{"max_iter": 0}, {"max_iter": 2.5}, {"tolerance": -1}, {"time_limit": 0}, {"patience": 0}]
    )
    def test_settings_out_of_range_are_refused(self, setting, data):
        with pytest.raises(InputError, match=next(iter(setting))):
            model(inference=VI(**setting)).fit(data)

    def test_a_misspelt_algorithm_is_guessed(self):
        with pytest.raises(InputError, match="Did you mean 'vi'"):
            resolve_inference("v")


class TestRestarts:
    def test_the_best_is_kept_and_all_are_remembered(self, data):
        fitted = model(n_init=4).fit(data)
        objectives = [run.objective for run in fitted.runs_]
        assert len(set(objectives)) == 4
        assert fitted.trace_.objective[-1] == max(objectives)

    def test_restarts_have_their_own_seeds_and_the_first_does_not_depend_on_their_number(self, data):
        one, four = model(n_init=1).fit(data), model(n_init=4).fit(data)
        assert one.runs_[0] == four.runs_[0]

    @pytest.mark.parametrize("init", ["auto", "random", "kmeans", "exponential"])
    @pytest.mark.parametrize("family", FAMILIES)
    def test_every_start_works_for_every_family(self, family, init):
        specification, data = example(family, "many")
        fitted = HMM(3, specification, init=init, inference=VI(max_iter=2, tolerance=0.0), random_state=0).fit(data)
        assert fitted.point_.not_finite() is None

    def test_no_seed_gives_different_runs(self, data):
        assert model(random_state=None).fit(data).runs_ != model(random_state=None).fit(data).runs_


class TestInterruption:
    def interrupt_after(self, iterations, monkeypatch):
        count = 0
        original = Chains.statistics

        def interrupted(*arguments):
            nonlocal count
            count += 1
            if count > iterations:
                raise KeyboardInterrupt
            return original(*arguments)

        monkeypatch.setattr(Chains, "statistics", interrupted)

    def test_the_model_is_that_of_the_last_whole_iteration(self, data, monkeypatch, tmp_path):
        whole = model(inference=VI(max_iter=2, tolerance=0.0)).fit(data)
        self.interrupt_after(2, monkeypatch)
        with pytest.warns(UserWarning, match="interrupted"):
            fitted = model(inference=VI(max_iter=9, tolerance=0.0)).fit(data, checkpoint=tmp_path / "c")
        assert fitted.status_ == "interrupted"
        assert np.array_equal(fitted.transition_, whole.transition_)
        monkeypatch.undo()
        resumed = model(inference=VI(max_iter=9, tolerance=0.0)).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert np.array_equal(resumed.transition_, model(inference=VI(max_iter=9, tolerance=0.0)).fit(data).transition_)


class TestCheckpoints:
    def test_resuming_a_finished_run_returns_it(self, data, tmp_path):
        fitted = model(n_init=2).fit(data, checkpoint=tmp_path / "c")
        again = model(n_init=2).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert again.runs_ == fitted.runs_
        assert np.array_equal(again.transition_, fitted.transition_)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"random_state": 1}, "random_state"),
            ({"n_init": 3}, "n_init"),
            ({"emission": Categorical(0.7, n_categories=5)}, "emission"),
            ({"inference": EM()}, "inference"),
        ],
    )
    def test_another_fit_is_not_resumed(self, change, message, data, tmp_path):
        model().fit(data, checkpoint=tmp_path / "c")
        with pytest.raises(InputError, match=f"its {message} was"):
            model(**change).fit(data, checkpoint=tmp_path / "c", resume=True)

    def test_other_data_are_not_resumed(self, data, tmp_path):
        model().fit(data, checkpoint=tmp_path / "c")
        with pytest.raises(InputError, match="its data was"):
            model().fit(data[:5], checkpoint=tmp_path / "c", resume=True)

    def test_resuming_needs_a_file_that_is_a_checkpoint(self, data, tmp_path):
        with pytest.raises(InputError, match="needs checkpoint="):
            model().fit(data, resume=True)
        with pytest.warns(UserWarning, match="begins afresh"):
            model().fit(data, checkpoint=tmp_path / "none", resume=True)
        model().fit(data).save(tmp_path / "model")
        with pytest.raises(FileFormatError, match="holds a model, not a checkpoint"):
            model().fit(data, checkpoint=tmp_path / "model", resume=True)

    def test_a_run_that_a_limit_ended_goes_on_when_the_limit_is_raised(self, data, tmp_path):
        model(inference=VI(max_iter=3, tolerance=0.0)).fit(data, checkpoint=tmp_path / "c")
        longer = model(inference=VI(max_iter=8, tolerance=0.0))
        longer.fit(data, checkpoint=tmp_path / "c", resume=True)
        whole = model(inference=VI(max_iter=8, tolerance=0.0)).fit(data)
        assert np.array_equal(longer.transition_, whole.transition_)
        assert longer.runs_ == whole.runs_

    def test_other_weights_and_knowledge_are_noticed(self, data, tmp_path):
        model().fit(data, checkpoint=tmp_path / "c")
        with pytest.raises(InputError, match="its sample_weight was"):
            model().fit(data, checkpoint=tmp_path / "c", resume=True, sample_weight=np.arange(12) + 1.0)
        with pytest.raises(InputError, match="its knowledge of the states was"):
            model().fit(data, checkpoint=tmp_path / "c", resume=True, states=np.zeros(data.n_observations, dtype=int))

    def test_no_temporary_files_are_left(self, data, tmp_path):
        model().fit(data, checkpoint=tmp_path / "c")
        assert os.listdir(tmp_path) == ["c"]

    def test_writing_takes_a_small_share_of_the_time(self, data, tmp_path, monkeypatch):
        from subchain.inference.run import checkpoint

        writes = []
        slow = checkpoint.write_arrays

        def write(*arguments):
            writes.append(time.perf_counter())
            time.sleep(0.02)
            slow(*arguments)

        monkeypatch.setattr(checkpoint, "write_arrays", write)
        model(inference=VI(max_iter=30, tolerance=0.0)).fit(data, checkpoint=tmp_path / "c")
        assert len(writes) <= 3

    def test_a_fit_without_a_seed_is_resumed_with_the_seed_it_had(self, data, tmp_path):
        first = model(random_state=None, n_init=2).fit(data, checkpoint=tmp_path / "c")
        again = model(random_state=None, n_init=2).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert again.runs_ == first.runs_

    def test_a_damaged_checkpoint_gives_a_message(self, data, tmp_path):
        path = tmp_path / "c"
        model().fit(data, checkpoint=path)
        content = path.read_bytes()
        rng = np.random.default_rng(0)
        for position in rng.integers(0, len(content), 60):
            changed = bytearray(content)
            changed[position] = rng.integers(256)
            path.write_bytes(changed)
            with contextlib.suppress(SubchainError):
                model().fit(data, checkpoint=path, resume=True)


class TestStarts:
    def test_a_start_brings_its_symbols_and_columns(self):
        start = HMM(2, "categorical", random_state=0).fit([list("aabac"), list("bba")])
        later = HMM(2, "categorical", init=start, inference=EM(max_iter=1, tolerance=0.0))
        later.fit([list("ccca"), list("c")])
        assert later.vocabularies_[0] == start.vocabularies_[0]
        assert later.emission_.n_categories == 3

    def test_symbols_that_the_start_or_the_training_data_do_not_have_are_refused(self, data):
        start = HMM(2, "categorical", random_state=0).fit([0, 1, 2, 0])
        with pytest.raises(InputError, match="40"):
            HMM(2, "categorical", init=start).fit([0, 1, 40])
        with pytest.raises(InputError, match="1000000"):
            model().fit(data, validation=[0, 1000000])
        assert HMM(2, "categorical", init=start).fit([0, 1, 0, 1]).emission_.n_categories == 3

    def test_known_states_name_the_clusters(self):
        rng = np.random.default_rng(0)
        states = np.repeat(rng.integers(0, 3, 100), 10)
        x = np.array([0.0, 5.0, 10.0])[states] + rng.normal(size=1000)
        known = np.where(rng.random(1000) < 0.03, states, -1)
        for seed in range(5):
            fitted = HMM(3, "gaussian", inference="em", random_state=seed).fit(x, states=known)
            assert (fitted.predict(x) == states).mean() > 0.95

    def test_a_clone_keeps_its_start(self, data):
        from sklearn.base import clone

        start = model().fit(data)
        assert clone(model(init=start)).fit(data).n_states_ == 3

    def test_a_run_begins_exactly_at_another_model(self, data):
        begin = model().fit(data)
        fitted = model(init=begin, inference=EM(max_iter=1, tolerance=0.0)).fit(data)
        expected = begin.expected_statistics(data)
        assert np.array_equal(fitted.statistics_.pairs, expected.pairs)

    def test_another_number_of_states_or_family_is_refused(self, data):
        begin = model().fit(data)
        with pytest.raises(InputError, match="init has 3 states, but the model has n_states=4"):
            HMM(4, Categorical(n_categories=5), init=begin).fit(data)
        with pytest.raises(InputError, match="init emits"):
            HMM(3, "poisson", init=begin).fit(data)
        with pytest.raises(InputError, match="init must be one of"):
            HMM(3, "categorical", init=7).fit(data)
        with pytest.raises(InputError, match="Did you mean 'kmeans'"):
            HMM(3, "categorical", init="kmean").fit(data)


class TestFrozen:
    @pytest.mark.parametrize("algorithm", [EM, VI])
    @pytest.mark.parametrize("family", FAMILIES)
    def test_frozen_emissions_stay_as_they_were(self, family, algorithm):
        specification, data = example(family, "many")
        begin = HMM(3, specification, inference=VI(max_iter=2, tolerance=0.0), random_state=0).fit(data)
        if family == "product":
            parts = {name: part.set_params(frozen=True) for name, part in specification.families.items()}
            frozen = Product(**parts)
        else:
            frozen = type(specification)(**{**specification.get_params(), "frozen": True})
        fitted = HMM(3, frozen, init=begin, inference=algorithm(max_iter=3, tolerance=0.0)).fit(data)
        for key, array in begin.emission_.arrays().items():
            assert np.array_equal(array, fitted.emission_.arrays()[key])
        assert not np.allclose(begin.transition_, fitted.transition_)

    @pytest.mark.parametrize("algorithm", [EM, VI])
    def test_a_frozen_chain_stays_as_it_was(self, algorithm, data):
        begin = model().fit(data)
        fitted = model(init=begin, transition=Dirichlet(frozen=True), inference=algorithm(max_iter=3, tolerance=0.0))
        fitted.fit(data)
        assert np.array_equal(begin.transition_, fitted.transition_)
        assert np.array_equal(begin.initial_, fitted.initial_)
        assert not np.allclose(begin.emission_.weights, fitted.emission_.weights)

    def test_one_part_of_a_product_can_be_frozen(self):
        _, data = example("product", "many")
        begin = HMM(3, FAMILIES["product"][0], inference=VI(max_iter=2, tolerance=0.0), random_state=0).fit(data)
        half = Product(a=Gaussian(columns=[0, 1], frozen=True), b=Categorical(n_categories=5, columns=2))
        fitted = HMM(3, half, init=begin, inference=VI(max_iter=3, tolerance=0.0)).fit(data)
        assert np.array_equal(begin.emission_.parts["a"].means, fitted.emission_.parts["a"].means)
        assert not np.allclose(begin.emission_.parts["b"].weights, fitted.emission_.parts["b"].weights)


class TestKnowledge:
    def test_known_states_are_counted(self, data):
        rng = np.random.default_rng(0)
        states = rng.integers(0, 3, data.n_observations)
        fitted = model(inference=EM(max_iter=1, tolerance=0.0)).fit(data, states=states)
        pairs = np.zeros((3, 3))
        for path in data.split(states):
            np.add.at(pairs, (path[:-1], path[1:]), 1.0)
        assert np.allclose(fitted.statistics_.pairs, pairs)
        assert np.array_equal(np.concatenate(fitted.predict(data, states=states)), states)

    def test_forbidden_states_are_never_visited(self, data):
        allowed = np.ones((5, 3), dtype=bool)
        allowed[0, 2] = allowed[1, 0] = False
        fitted = model().fit(data, allowed=allowed)
        assert not fitted.statistics_.emission.counts[~allowed].any()

    def test_soft_evidence_moves_marginals(self, data):
        weights = np.zeros((data.n_observations, 3))
        fitted = model().fit(data)
        before = np.concatenate(fitted.predict_proba(data))
        weights[:, 1] = 2.0
        assert (np.concatenate(fitted.predict_proba(data, evidence=weights))[:, 1] >= before[:, 1] - 1e-12).all()
        assert np.allclose(np.concatenate(fitted.predict_proba(data, evidence=np.zeros_like(weights))), before)


class TestChains:
    @pytest.mark.parametrize("algorithm", [EM, VI])
    def test_structural_zeros_stay_exact_zeros(self, algorithm, data):
        mask = left_right(3)
        fitted = model(
            transition=Dirichlet(mask=mask, initial=[1, 0, 0]), inference=algorithm(max_iter=4, tolerance=0.0)
        ).fit(data)
        assert (fitted.transition_[~mask] == 0.0).all()
        assert np.array_equal(fitted.initial_, [1, 0, 0])
        assert all((np.diff(path) >= 0).all() for path in fitted.predict(data, decoding="viterbi"))

    @pytest.mark.parametrize("algorithm", [EM, VI])
    def test_the_stationary_beginning_follows_the_moves(self, algorithm, data):
        fitted = model(transition=Dirichlet(initial="stationary"), inference=algorithm(max_iter=4, tolerance=0.0))
        fitted.fit(data)
        assert np.allclose(fitted.initial_ @ fitted.transition_, fitted.initial_)


class TestTrouble:
    def test_a_falling_objective_is_an_error(self, data, monkeypatch):
        values = iter([-10.0, -11.0, -12.0])
        monkeypatch.setattr(VI, "objective", lambda *_: next(values))
        with pytest.raises(InferenceError, match="iteration 2: the objective of VI fell by 1 to -11"):
            model().fit(data)

    def test_a_value_that_is_not_finite_is_an_error_that_names_it(self, data, monkeypatch):
        original = Chains.statistics

        def spoiled(self, weights):
            statistics = original(self, weights)
            statistics.emission.counts[3, 1] = np.nan
            return statistics

        monkeypatch.setattr(Chains, "statistics", spoiled)
        with pytest.raises(InferenceError, match="iteration 1: emission.counts of state 1 is not finite"):
            model().fit(data)

    def test_a_state_that_dies_keeps_its_parameters_and_the_trace_says_so(self):
        table = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
        begin = HMM.from_parameters(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), Categorical.from_parameters(table))
        fitted = model(init=begin, inference=EM(max_iter=3, tolerance=0.0), emission=Categorical(n_categories=3))
        fitted.fit(np.array([0, 1, 1, 0, 1]))
        assert np.array_equal(fitted.emission_.probabilities[2], [0, 0, 1])
        assert [event.message for event in fitted.trace_.events] == [
            "state 2 has no observations left; it keeps its parameters"
        ]
        assert fitted.point_.not_finite() is None

    @pytest.mark.filterwarnings("ignore:one state explains")
    def test_a_constant_column_does_no_harm(self):
        x = np.column_stack((np.random.default_rng(0).normal(size=200), np.full(200, 3.0)))
        for family in ("gaussian", "diagonal_gaussian"):
            for inference in (EM(max_iter=20), VI(max_iter=20)):
                assert HMM(3, family, inference=inference, random_state=0).fit(x).point_.not_finite() is None


@pytest.mark.parametrize(
    ("settings", "x", "message"),
    [
        ({"n_states": 0}, [0, 1], "n_states must be a whole number of at least 1, not 0"),
        ({"n_states": 2.5}, [0, 1], "n_states"),
        ({"n_init": 0}, [0, 1], "n_init"),
        ({"emission": "categoricl"}, [0, 1], "Did you mean 'categorical'"),
        ({"transition": "dirichet"}, [0, 1], "Did you mean 'dirichlet'"),
        ({"engine": "gpu"}, [0, 1], "unknown engine"),
        ({"n_jobs": 0}, [0, 1], "n_jobs"),
        ({"random_state": "x"}, [0, 1], "random_state"),
        ({}, [0, -2, 1], "−2|-2"),
        ({"emission": Categorical(n_categories=2)}, [0, 5], "symbol too large at sequence 0, position 1: 5"),
        ({}, [0.5, 1.5], "integer codes"),
        ({}, [0.0, 1.0], "integer codes"),
        ({"emission": "gaussian"}, ["a", "b"], "needs numbers"),
        ({"emission": Gaussian(columns=["z"])}, np.zeros((3, 2)), "z"),
        ({}, [], "empty|no observations"),
        ({"emission": "gaussian"}, [[0.0, np.inf]], "position 1 holds inf"),
        ({"emission": "poisson"}, [1, -3], "-3"),
        ({"emission": "poisson"}, [1.5, 2.0], "1.5"),
        ({"emission": "bernoulli"}, [0, 2], "2"),
        ({}, "no/such/file.npy", "no/such/file.npy"),
        ({}, (np.arange(5), [2, 2]), "add up|sum"),
        ({}, np.zeros((2, 2, 2)), "dimension|shape"),
    ],
)
def test_bad_input_gets_one_clear_error(settings, x, message):
    with pytest.raises(InputError, match=message):
        HMM(**{"n_states": 2, "emission": "categorical", "random_state": 0} | settings).fit(x)


def test_a_weight_for_every_sequence_is_needed(data):
    with pytest.raises(InputError, match="expected one for each of 12 sequences"):
        model().fit(data, sample_weight=[1.0, 2.0])
    with pytest.raises(InputError, match="not negative"):
        model().fit(data, sample_weight=-np.ones(12))


def test_gaps_in_integers_are_missing_and_not_minus_one():
    fitted = HMM(1, "gaussian", inference="em").fit([100, None, 101, 102, None, 105])
    assert np.isclose(fitted.emission_.means[0, 0], 102.0)
    assert HMM(2, "categorical", random_state=0).fit([0, None, 1, 1]).emission_.n_categories == 2


def test_a_family_sees_the_columns_it_names():
    table = np.column_stack((np.arange(20.0), np.full(20, 7.0) + np.arange(20) % 2))
    fitted = HMM(1, Gaussian(columns=[1]), inference="em").fit(table)
    assert np.allclose(fitted.emission_.means, [[7.5]])
    assert np.isfinite(fitted.score(table))


def test_partial_fit_refuses_what_it_cannot_learn_from(data):
    with pytest.raises(InputError, match="total must be"):
        model().partial_fit(data, total=-5)
    given = HMM.from_parameters([0.5, 0.5], np.full((2, 2), 0.5), Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]]))
    with pytest.raises(InputError, match="no prior, so it cannot learn"):
        given.partial_fit([0, 1])


def test_partial_fit_goes_on_from_a_fit(data):
    fitted = model().fit(data[:6])
    fitted.partial_fit(data[6:])
    assert fitted.statistics_.n_observations == data.n_observations


def test_partial_fit_adds_up_or_steps_towards_each_batch(data):
    added = model(inference=VI())
    for batch in (data[:4], data[4:8], data[8:]):
        added.partial_fit(batch)
    assert added.statistics_.n_observations == data.n_observations
    assert np.isclose(added.statistics_.pairs.sum(), data.n_observations - data.n_sequences)
    stepped = model(inference=VI())
    for _ in range(3):
        stepped.partial_fit(data[:4], total=1000.0)
    assert np.isclose(stepped.statistics_.n_observations, 1000.0)
    assert np.isfinite(stepped.score(data))
