"""The states themselves: duration, occupancy, order, names."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import FAMILIES, draw, model_of, sparse_model, with_holes

from subchain import HMM, Categorical, Dirichlet, Gaussian, Poisson, Product
from subchain.errors import InputError


def fitted(family="gaussian", n_states=3, **settings):
    x = draw(model_of(family), 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HMM(n_states, family, random_state=0, n_jobs=1, **settings).fit(x), x


def test_a_state_lasts_for_the_inverse_of_the_chance_to_leave_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(sparse_model().dwell_times_, [2.5, 10 / 3, np.inf])


def test_occupancy_is_the_share_of_expected_visits():
    model, x = fitted()
    shares = model.state_occupancy_
    assert shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(shares, model.predict_proba(x).mean(axis=0), atol=0.02)


def test_a_model_without_data_is_occupied_as_in_the_long_run():
    model = model_of("categorical")
    np.testing.assert_allclose(model.state_occupancy_ @ model.transition_, model.state_occupancy_)


@given(shares=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), coverage=st.floats(0.01, 1.0))
def test_effective_states_are_the_fewest_that_cover(shares, coverage):
    occupancy = np.array(shares) / np.sum(shares)
    transition = np.tile(occupancy, (len(shares), 1))
    emission = model_of("categorical").emission_.take(np.zeros(len(shares), dtype=int))
    number = HMM.from_parameters(occupancy, transition, emission).effective_states(coverage)
    held = np.cumsum(np.sort(occupancy)[::-1])
    assert held[number - 1] >= coverage - 1e-9
    assert number == 1 or held[number - 2] < coverage + 1e-9


def test_coverage_is_a_share():
    with pytest.raises(InputError, match="coverage must be above 0 and at most 1"):
        sparse_model().effective_states(1.5)


class TestOrder:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_reordering_changes_names_and_numbers_and_nothing_else(self, family):
        model = model_of(family, n_jobs=1)
        x = with_holes(draw(model, 20))
        before, score, names = model.predict_proba(x), model.score(x), ["a", "b", "c"]
        model.state_names_ = names
        keys = np.array([2.0, 0.0, 1.0])
        assert model.order_states(by=lambda _: keys) is model
        assert model.state_names_ == ["b", "c", "a"]
        np.testing.assert_allclose(model.predict_proba(x), before[:, [1, 2, 0]])
        assert model.score(x) == pytest.approx(score)

    def test_the_posterior_moves_along(self):
        mask = np.triu(np.ones((3, 3), dtype=bool)) | np.eye(3, k=-2, dtype=bool)
        model, _ = fitted(transition=Dirichlet(mask=mask))
        transition, means, counts = model.transition_, model.emission_.means, model.statistics_.pairs
        model.order_states(by=lambda model: [2, 1, 0])
        assert np.array_equal(model.transition_, transition[::-1, ::-1])
        assert np.array_equal(model.emission_.means, means[::-1])
        assert np.array_equal(model.statistics_.pairs, counts[::-1, ::-1])
        np.testing.assert_allclose(model.posterior_.mean().chain.transition, model.transition_)
        np.testing.assert_allclose(model.posterior_.mean().emission.means, model.emission_.means)

    def test_orders_by_name(self):
        model, _ = fitted()
        assert (np.diff(model.order_states().state_occupancy_) <= 0).all()
        assert (np.diff(model.order_states("mean").emission_.means[:, 0]) >= 0).all()
        assert (np.diff(model.order_states("mean", column=1).emission_.means[:, 1]) >= 0).all()
        assert (np.diff(model.order_states("dwell").dwell_times_) <= 0).all()

    def test_columns_may_be_named(self):
        import pandas as pd

        table = pd.DataFrame(draw(model_of("gaussian"), 100), columns=["calm", "stress"])
        model = HMM(3, "gaussian", random_state=0, n_jobs=1).fit(table).order_states("mean", column="stress")
        assert (np.diff(model.emission_.means[:, 1]) >= 0).all()

    def test_states_of_a_mixed_table_are_ordered_by_any_column_of_numbers(self):
        import pandas as pd

        rng = np.random.default_rng(0)
        state = np.repeat([0, 1, 2, 1, 0, 2], 40)
        table = pd.DataFrame(
            {
                "activity": np.array(["rest", "walk", "run"])[state],
                "heart_rate": rng.normal([60.0, 90.0, 150.0], 3.0, (len(state), 3))[np.arange(len(state)), state],
                "steps": rng.poisson(np.array([0.2, 40.0, 80.0])[state]),
            }
        )
        parts = Product(
            what=Categorical(columns="activity"), heart_rate=Gaussian(columns="heart_rate"), steps=Poisson(columns=2)
        )
        model = HMM(3, parts, random_state=0, n_jobs=1).fit(table)
        emission = model.order_states("mean", column="heart_rate").emission_
        assert (np.diff(emission.heart_rate.means[:, 0]) > 0).all()
        assert emission.heart_rate is emission["heart_rate"]
        assert (np.diff(model.order_states("mean", column=2).emission_.steps.rates[:, 0]) > 0).all()
        with pytest.raises(InputError, match="CategoricalParameters have no means"):
            model.order_states("mean", column="activity")

    def test_a_part_with_one_column_stands_for_it(self):
        x = np.column_stack([draw(model_of("gaussian"), 50), np.arange(50) % 3])
        parts = Product(place=Gaussian(columns=[0, 1]), count=Poisson(columns=2))
        model = HMM(2, parts, random_state=0, n_jobs=1).fit(x).order_states("mean", column="count")
        assert model.emission_.count.rates[0, 0] <= model.emission_.count.rates[1, 0]
        with pytest.raises(InputError, match="part 'place' of the Product has several columns"):
            model.order_states("mean", column="place")

    def test_mistakes_are_explained(self):
        with pytest.raises(InputError, match="unknown order of states 'means'.*Did you mean 'mean'"):
            sparse_model().order_states("means")
        with pytest.raises(InputError, match="have no means to order states by"):
            sparse_model().order_states("mean")
        with pytest.raises(InputError, match=r"shape \(2,\); expected one key for each of 3 states"):
            sparse_model().order_states(lambda _: [1, 2])
        with pytest.raises(InputError, match="column 7"):
            model_of("gaussian").order_states("mean", column=7)


class TestNames:
    def test_names_can_be_given_and_survive_the_file(self, tmp_path):
        model, _ = fitted()
        assert model.state_names_ == ["0", "1", "2"]
        model.state_names_ = ["calm", "busy", "wild"]
        model.save(tmp_path / "model")
        assert HMM.load(tmp_path / "model").state_names_ == ["calm", "busy", "wild"]

    @pytest.mark.parametrize("names", [["a", "b"], ["a", "b", 3], "abc", ["a", "b", "a"]])
    def test_there_is_one_name_for_each_state(self, names):
        with pytest.raises(InputError, match="state"):
            sparse_model().state_names_ = names


class TestAlignment:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_shuffled_model_is_put_back_in_order(self, family):
        reference, shuffled = model_of(family), model_of(family)
        reference.state_names_ = ["x", "y", "z"]
        shuffled.order_states(by=lambda _: [1, 2, 0])
        shuffled.align_to(reference)
        np.testing.assert_allclose(shuffled.transition_, reference.transition_)
        assert shuffled.state_names_ == ["x", "y", "z"]

    def test_a_refit_is_matched_by_where_its_states_are_found(self):
        model, x = fitted(n_states=3)
        other, _ = fitted(n_states=3)
        other.order_states(by=lambda _: [2, 0, 1])
        other.align_to(model, x)
        np.testing.assert_allclose(other.emission_.means, model.emission_.means)

    def test_states_without_a_counterpart_come_last(self):
        small, large = model_of("gaussian"), model_of("gaussian")
        small.point_, small.n_states_ = small.point_.take(np.array([2, 0])), 2
        small.state_names_ = ["1", "late"]
        large.align_to(small)
        assert np.array_equal(large.emission_.means, model_of("gaussian").emission_.means[[2, 0, 1]])
        assert large.state_names_ == ["1", "late", "2"]
        small.align_to(model_of("gaussian"))
        assert small.state_names_ == ["0", "2"]

    def test_families_must_agree(self):
        with pytest.raises(InputError, match="cannot be compared"):
            sparse_model().align_to(model_of("gaussian"))
