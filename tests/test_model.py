"""The estimator: its life cycle, its errors, and its place among scikit-learn's tools."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn.exceptions
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted
from small_models import FAMILIES, draw, model_of, sparse_model

from subchain import EM, HMM, VI, Categorical, Dirichlet, Gaussian, Poisson, Product
from subchain.errors import InputError, NotFittedError

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")

USES = {
    "predict": ([0, 1],),
    "predict_proba": ([0, 1],),
    "segments": ([0, 1],),
    "predict_proba_blocks": ([0, 1],),
    "filter": ([0, 1],),
    "stream": (),
    "score": ([0, 1],),
    "score_sequences": ([0, 1],),
    "score_samples": ([0, 1],),
    "score_steps": ([0, 1],),
    "sample": (3,),
    "sample_paths": ([0, 1], 2),
    "sample_parameters": (2,),
    "forecast": ([0, 1], 2),
    "impute": ([0, 1],),
    "intervals": (),
    "pseudo_residuals": ([0, 1],),
    "sample_missing": ([0, 1], 2),
    "expected_statistics": ([0, 1],),
    "aic": ([0, 1],),
    "bic": ([0, 1],),
    "effective_states": (),
    "order_states": (),
    "align_to": (sparse_model(),),
    "save": ("nowhere",),
}
RESULTS = [
    "initial_",
    "transition_",
    "emission_",
    "posterior_",
    "n_parameters_",
    "dwell_times_",
    "state_occupancy_",
    "state_names_",
]


def sequences(n=9, length=30):
    source = model_of("categorical")
    return [draw(source, length + i, seed=i) for i in range(n)]


class TestBeforeFit:
    @pytest.mark.parametrize("method", USES)
    def test_a_model_that_was_not_fitted_says_so(self, method):
        with pytest.raises(NotFittedError):
            getattr(HMM(2, "categorical"), method)(*USES[method])

    @pytest.mark.parametrize("result", RESULTS)
    def test_it_has_no_results(self, result):
        with pytest.raises(NotFittedError):
            getattr(HMM(2, "categorical"), result)

    def test_its_states_cannot_be_named(self):
        with pytest.raises(NotFittedError):
            HMM(2, "categorical").state_names_ = ["a", "b"]

    def test_check_is_fitted_knows(self):
        model = HMM(2, "categorical", random_state=0)
        with pytest.raises(sklearn.exceptions.NotFittedError):
            check_is_fitted(model)
        check_is_fitted(model.fit(sequences()))

    def test_every_public_method_is_tried_here(self):
        ours = [kind for kind in HMM.__mro__ if kind.__module__.startswith("subchain")]
        found = {name: value for kind in ours for name, value in vars(kind).items()}
        own = {name for name, value in found.items() if not name.startswith("_") and callable(value)}
        assert own == {*USES, "fit", "fit_predict", "partial_fit", "get_params", "set_params"}


class TestScikitLearn:
    def test_a_clone_is_unfitted_and_learns_the_same(self):
        x = sequences()
        model = HMM(3, Categorical(1.5), Dirichlet(2.0), EM(max_iter=3), random_state=1, n_jobs=1).fit(x)
        copy = clone(model)
        with pytest.raises(sklearn.exceptions.NotFittedError):
            check_is_fitted(copy)
        assert np.array_equal(copy.fit(x).transition_, model.transition_)

    def test_settings_of_components_are_settings_of_the_model(self):
        model = HMM(3, Categorical(concentration=0.5), Dirichlet(stickiness=2.0), VI(max_iter=7))
        settings = model.get_params()
        assert settings["emission__concentration"] == 0.5
        assert settings["transition__stickiness"] == 2.0
        assert settings["inference__max_iter"] == 7
        model.set_params(emission__concentration=0.25, n_states=4)
        assert model.emission.concentration == 0.25
        assert model.n_states == 4

    def test_settings_of_the_parts_of_a_product_are_settings_of_the_model(self):
        model = HMM(3, Product(a=Gaussian(columns=0), b=Poisson(columns=1)))
        assert model.set_params(emission__b__shape=3.0).get_params()["emission__b__shape"] == 3.0
        assert clone(model).get_params()["emission__b__shape"] == 3.0

    def test_a_grid_is_searched_over_lists_of_sequences(self):
        model = HMM(emission=Categorical(n_categories=4), inference=VI(max_iter=5), random_state=0, n_jobs=1)
        grid = {"n_states": [1, 3], "emission__concentration": [0.1, 1.0]}
        search = GridSearchCV(model, grid, cv=3).fit(sequences())
        assert search.cv_results_["mean_test_score"].shape == (4,)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_.predict(sequences())[0].shape == (30,)

    def test_folds_hold_out_whole_sequences(self):
        x, model = sequences(), HMM(2, Categorical(n_categories=4), inference=VI(max_iter=3), random_state=0, n_jobs=1)
        scores = cross_val_score(model, x, cv=KFold(3))
        expected = clone(model).fit(x[3:]).score(x[:3])
        assert scores[0] == pytest.approx(expected)

    def test_it_ends_a_pipeline(self):
        recode = FunctionTransformer(lambda x: [np.minimum(part, 2) for part in x])
        steps = [("recode", recode), ("hmm", HMM(2, "categorical", inference=VI(max_iter=3), random_state=0, n_jobs=1))]
        pipeline = Pipeline(steps).fit(sequences())
        assert len(pipeline.predict(sequences())) == 9
        assert np.isfinite(pipeline.score(sequences()))

    def test_it_can_be_pickled(self):
        model = HMM(2, "categorical", inference=VI(max_iter=3), random_state=0).fit(sequences())
        model.state_names_ = ["a", "b"]
        copy = pickle.loads(pickle.dumps(model))
        assert copy.score(sequences()) == model.score(sequences())
        assert copy.state_names_ == ["a", "b"]


class TestData:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_fit_predict_goes_round_for_every_family(self, family):
        x = [draw(model_of(family), n, seed=n) for n in (40, 1, 25)]
        emission = model_of(family).family_
        model = HMM(3, emission, inference=VI(max_iter=5), random_state=0, n_jobs=1).fit(x)
        assert [len(states) for states in model.predict(x)] == [40, 1, 25]

    def test_a_symbol_that_the_model_does_not_know_is_named_with_its_place(self):
        model = model_of("categorical", n_jobs=1)
        with pytest.raises(InputError, match="too large at sequence 1, position 2: 7; .*only 4.*n_categories=10"):
            model.predict([[0, 1], [0, 1, 7, 9]])

    def test_a_symbol_below_those_seen_at_the_end_is_fine(self):
        model = HMM(2, "categorical", inference=VI(max_iter=3), random_state=0, n_jobs=1).fit([0, 1, 2, 3] * 5)
        assert np.isfinite(model.score([0, 1]))

    @pytest.mark.parametrize("fraction", [0.5, np.inf])
    def test_fractions_are_no_symbols(self, fraction):
        with pytest.raises(InputError):
            model_of("categorical").score(np.array([0.0, fraction]))
        with pytest.raises(InputError, match="needs integer codes"):
            model_of("categorical").stream().update(fraction)

    def test_a_model_of_codes_with_nan_takes_new_codes_without(self):
        x = np.array([0.0, 1.0, np.nan, 1.0, 0.0, 0.0, 1.0])
        model = HMM(2, "categorical", inference=VI(max_iter=3, tolerance=0.0), random_state=0, n_jobs=1).fit(x)
        assert model.score(np.array([0.0, 1.0])) == model.score([0, 1])
        np.testing.assert_array_equal(model.predict(np.array([0.0, 1.0, 1.0])), model.predict([0, 1, 1]))
        np.testing.assert_array_equal(model.stream().update(1.0), model.stream().update(1))

    @pytest.mark.parametrize("family", ["gaussian", "diagonal_gaussian", "poisson", "bernoulli", "product"])
    def test_the_number_of_columns_must_be_that_of_the_training_data(self, family):
        model = model_of(family)
        wide = np.hstack([draw(model, 3), draw(model, 3)])
        found, expected = wide.shape[1], wide.shape[1] // 2
        with pytest.raises(InputError, match=f"{found} columns, but the model was made for {expected}"):
            model.score(wide)

    def test_unseen_words_are_named(self):
        model = HMM(2, "categorical", random_state=0, n_jobs=1).fit([["sun", "rain"] * 10, ["rain", "rain"]])
        assert model.predict([["rain", "sun", "sun"]])[0].shape == (3,)
        with pytest.warns(UserWarning, match="1 of 2 observations hold symbols .* did not have \\('snow'\\)"):
            found = model.predict_proba([["sun", "snow"]])
        np.testing.assert_array_equal(found[0], model.predict_proba([["sun", None]])[0])


class TestGivenParameters:
    def test_they_are_taken_as_they_are(self):
        model = sparse_model()
        assert model.transition_[0].tolist() == [0.6, 0.3, 0.1]
        assert model.n_states_ == 3
        assert isinstance(model.emission, Categorical)
        assert model.emission.n_categories == 3

    @pytest.mark.parametrize("family", FAMILIES)
    def test_their_family_is_found(self, family):
        model = model_of(family)
        assert model.family_.name == family
        assert type(model.emission_) is model.family_.parameters_type

    @pytest.mark.parametrize(
        ("initial", "transition", "message"),
        [
            ([0.5, 0.6], np.eye(2), "initial sums to 1.1, not to 1"),
            ([0.5, 0.5], [[1.0, 0.0], [0.5, 0.4]], "row 1 of transition sums to 0.9"),
            ([1.5, -0.5], np.eye(2), "initial holds -0.5 for state 1"),
            ([0.5, 0.5], np.full((2, 2), np.nan), "row 0 of transition holds nan for state 0"),
            ([0.5, 0.5], np.eye(3), r"transition has the shape \(3, 3\).*expected \(2, 2\)"),
            ([[0.5, 0.5]], np.eye(2), r"initial must hold one probability per state.*\(1, 2\)"),
            ([0.5, 0.5], [[1.0], [0.5, 0.5]], "rectangular"),
            ([0.2, 0.3, 0.5], np.eye(3), "emission has 2 states, but the chain has 3"),
        ],
    )
    def test_what_is_no_chain_is_explained(self, initial, transition, message):
        emission = Categorical.from_parameters([[0.5, 0.5], [0.1, 0.9]])
        with pytest.raises(InputError, match=message):
            HMM.from_parameters(initial, transition, emission)

    def test_parameters_without_a_family_are_refused(self):
        class Orphan(type(sparse_model().emission_)):
            pass

        with pytest.raises(InputError, match="no emission family has parameters of class Orphan"):
            HMM.from_parameters([0.2, 0.3, 0.5], np.eye(3), Orphan(sparse_model().emission_.weights))

    def test_rounding_is_forgiven(self):
        emission = Categorical.from_parameters([[0.5, 0.5], [0.1, 0.9]])
        model = HMM.from_parameters([0.3333333, 0.6666667], np.float32([[0.9, 0.1], [0.2, 0.8]]), emission)
        assert model.predict([0, 1]).shape == (2,)

    def test_a_family_is_not_parameters(self):
        with pytest.raises(InputError, match="must be parameters"):
            HMM.from_parameters([1.0], [[1.0]], Categorical())


def test_no_use_changes_the_model():
    model = HMM(2, "categorical", inference=VI(max_iter=3), random_state=0, n_jobs=1).fit(sequences())
    before = {key: array.copy() for key, array in model.point_.arrays().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, arguments in USES.items():
            if method not in ("order_states", "align_to", "save"):
                getattr(model, method)(*arguments)
    assert all(np.array_equal(before[key], array) for key, array in model.point_.arrays().items())
