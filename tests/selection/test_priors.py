"""Which settings are best: what is scored, on what, and what is said of the result."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from subchain import EM, HMM, VI, Categorical, Dirichlet, Gaussian, HoldOut, Poisson, Product
from subchain.data import Sequences
from subchain.errors import InputError
from subchain.selection import select_priors

pytestmark = pytest.mark.filterwarnings("ignore:the best")

NAME = "emission__concentration"
SYMBOLS = 6


def text(n_sequences=6, length=20, seed=0):
    """Sequences of which no two symbols are alike in frequency."""
    rng = np.random.default_rng(seed)
    return [rng.choice(SYMBOLS, length, p=[0.5, 0.3, 0.1, 0.06, 0.03, 0.01]) for _ in range(n_sequences)]


def single(concentration=0.1, **settings):
    """A model with one state, whose every answer can be written down."""
    emission = Categorical(concentration, n_categories=SYMBOLS)
    return HMM(1, emission, inference=VI(max_iter=1, tolerance=0.0), n_jobs=1, random_state=0, **settings)


def sticky_pair(**settings):
    settings = {"inference": VI(max_iter=8, tolerance=0.0), "n_jobs": 1, "random_state": 0} | settings
    return HMM(2, Categorical(n_categories=SYMBOLS), **settings)


def predictive(x, concentration, weights=None):
    """Log probabilities of the symbols after having seen `x`."""
    weights = [1.0] * len(x) if weights is None else weights
    counts = sum(w * np.bincount(row, minlength=SYMBOLS) for row, w in zip(x, weights, strict=True)) + concentration
    return np.log(counts / counts.sum())


def scores(found):
    return {trial.settings[NAME]: trial.values for trial in found.trials}


class TestWhatIsScored:
    def test_folds_of_sequences(self):
        x, grid = text(), [0.01, 1.0, 100.0]
        found = select_priors(x, single(), {NAME: grid}, cv=3)
        for value in grid:
            for fold, score in enumerate(scores(found)[value]):
                seen = [row for i, row in enumerate(x) if i % 3 != fold]
                unseen = np.concatenate(x[fold::3])
                assert score == pytest.approx(predictive(seen, value)[unseen].mean())
        assert found.settings == {NAME: max(grid, key=lambda value: np.mean(scores(found)[value]))}

    def test_blocks_of_a_single_chain(self):
        (x,) = text(1, 120)
        found = select_priors(x, single(), {NAME: [0.5]}, cv=2)
        fold = np.arange(120) // 6 % 2 == 0
        assert scores(found)[0.5][0] == pytest.approx(predictive([x[~fold]], 0.5)[x[fold]].mean())

    def test_validation_data(self):
        x, unseen = text(), text(2, seed=1)
        found = select_priors(x, single(), {NAME: [0.5, 2.0]}, validation=unseen)
        for value in (0.5, 2.0):
            assert scores(found)[value] == [pytest.approx(predictive(x, value)[np.concatenate(unseen)].mean())]

    def test_positions_inside_the_data(self):
        (x,) = text(1, 120)
        held = HoldOut(0.2, random_state=3)
        found = select_priors(x, single(), {NAME: [0.5]}, validation=held)
        hidden = np.isin(np.arange(120), held.positions(Sequences(x)))
        assert scores(found)[0.5] == [pytest.approx(predictive([x[~hidden]], 0.5)[x[hidden]].mean())]
        assert found.best_.statistics_.emission.counts.sum() == pytest.approx(120)  # the last fit sees all

    def test_a_function_of_models_that_were_fitted_to_all_data(self):
        x, seen = text(), []

        def nearness(model):
            seen.append(model)
            return -abs(model.emission.concentration - 0.9)

        found = select_priors(x, sticky_pair(), {NAME: [0.1, 1.0, 10.0]}, nearness, repeats=2)
        assert found.criterion == "nearness"
        assert found.settings == {NAME: 1.0}
        assert len(seen) == 6
        assert found.best_ in seen
        assert all(model.n_sequences_ == len(x) for model in seen)
        assert len({model.random_state for model in seen}) == 2

    def test_sequences_count_as_often_as_their_weights_say(self):
        x, weights = text(4), np.array([1.0, 3.0, 0.0, 2.0])
        found = select_priors(x, single(), {NAME: [0.5]}, cv=2, sample_weight=weights)
        logs = predictive(x[1::2], 0.5, weights[1::2])
        assert scores(found)[0.5][0] == pytest.approx(logs[x[0]].mean())

    def test_known_states_are_cut_with_their_folds_and_scored_with_them(self):
        x = text()
        states = [row % 2 for row in x]
        model = sticky_pair(transition=Dirichlet(2.0, initial_concentration=3.0))
        found = select_priors(x, model, {NAME: [0.5]}, cv=3, states=states)
        pairs, first, table = np.full((2, 2), 2.0), np.full(2, 3.0), np.full((2, SYMBOLS), 0.5)
        for i in (1, 2, 4, 5):
            np.add.at(pairs, (states[i][:-1], states[i][1:]), 1.0)
            first[states[i][0]] += 1.0
            np.add.at(table, (states[i], x[i]), 1.0)
        log_pairs, log_table = (np.log(t / t.sum(axis=1, keepdims=True)) for t in (pairs, table))
        log_first = np.log(first / first.sum())
        expected = sum(
            log_first[states[i][0]] + log_pairs[states[i][:-1], states[i][1:]].sum() + log_table[states[i], x[i]].sum()
            for i in (0, 3)
        )
        assert scores(found)[0.5][0] == pytest.approx(expected / 40)

    @pytest.mark.parametrize("n_sequences", [6, 1])
    def test_legal_states_mean_the_same_per_symbol_and_per_position(self, n_sequences):
        x = text(n_sequences, 40)
        legal = np.array([[1, 0], [1, 1], [0, 1], [1, 1], [1, 1], [0, 1]], dtype=bool)
        known = {"allowed": legal}, {"allowed": {code: np.flatnonzero(row) for code, row in enumerate(legal)}}
        found = [select_priors(x, sticky_pair(), {NAME: [0.1, 1.0]}, cv=2, **given) for given in known]
        assert found[0].trials == found[1].trials
        if n_sequences > 1:
            positions = select_priors(x, sticky_pair(), {NAME: [0.1, 1.0]}, cv=2, allowed=[legal[row] for row in x])
            assert positions.trials == found[0].trials


class TestTheGrid:
    def test_all_combinations_are_tried_and_come_as_a_table(self):
        grid = {"transition__concentration": [0.5, 2.0], NAME: np.array([0.01, 0.1, 1.0])}
        found = select_priors(text(), sticky_pair(), grid, cv=2)
        assert [tuple(trial.settings.values()) for trial in found.trials] == [
            (a, b) for a in (0.5, 2.0) for b in (0.01, 0.1, 1.0)
        ]
        best = max(found.table, key=lambda row: row["mean"])
        assert found.settings == {name: best[name] for name in grid}
        assert found.best_.transition.concentration == found.settings["transition__concentration"]
        assert found.best_.emission.concentration == found.settings[NAME]
        assert found.best_.n_sequences_ == 6
        assert best["spread"] == pytest.approx(np.std(best["values"]))

    def test_any_setting_can_be_tried(self):
        x = np.column_stack([np.concatenate(text()), np.random.default_rng(0).normal(size=120)])
        emission = Product(a=Categorical(columns=0), b=Gaussian(columns=1))
        model = HMM(2, emission, inference="vi", n_jobs=1, random_state=0)
        grid = {"n_states": [1, 2], "emission__a__concentration": [0.1, 1.0], "inference__max_iter": [3]}
        found = select_priors((x, [20] * 6), model, grid, cv=2)
        assert len(found.trials) == 4
        assert found.best_.emission.families["a"].concentration == found.settings["emission__a__concentration"]
        assert found.best_.n_states_ == found.settings["n_states"]

    def test_components_can_be_tried(self):
        priors = [Dirichlet(), Dirichlet(stickiness=5.0)]
        found = select_priors(text(), sticky_pair(), {"transition": priors, NAME: [0.1]}, cv=2)
        assert found.settings["transition"] in priors
        assert not found.edges

    def test_all_settings_are_compared_on_the_same_seeds(self):
        found = select_priors(text(), sticky_pair(), {"progress": [False, "auto"]}, cv=3)
        assert found.trials[0].values == found.trials[1].values
        again = select_priors(text(), sticky_pair(random_state=7), {"progress": [False]}, cv=3, random_state=0)
        assert again.trials[0].values == found.trials[0].values

    def test_symbols_that_a_fold_does_not_show_are_no_trouble(self):
        x = text()
        x[0][0] = 30
        model = HMM(2, "categorical", inference=VI(max_iter=2, tolerance=0.0), n_jobs=1)
        found = select_priors(x, model, {NAME: [0.1, 1.0]}, cv=6)
        assert np.isfinite([trial.mean for trial in found.trials]).all()
        assert found.best_.emission.n_categories == 31

    def test_a_start_that_is_a_model_serves_all_fits(self):
        x = text()
        start = sticky_pair().fit(x)
        found = select_priors(x, sticky_pair(init=start), {NAME: [0.1, 1.0]}, cv=2)
        assert found.best_.init is start

    def test_the_model_that_was_given_is_left_alone(self):
        model = HMM(2, "categorical", inference=VI(max_iter=1, tolerance=0.0))
        select_priors(text(), model, {NAME: [0.5]}, cv=2, n_init=2)
        assert (model.emission, model.n_init, model.transition) == ("categorical", 1, None)
        assert not hasattr(model, "point_")

    def test_an_interruption_ends_the_search_and_not_just_a_fit(self, monkeypatch):
        fits = []

        def interrupted(model, x, **known):
            fits.append(model)
            model.status_ = "interrupted"

        monkeypatch.setattr(HMM, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            select_priors(text(), single(), {NAME: [0.1, 1.0]}, cv=2)
        assert len(fits) == 1

    def test_the_space_around_the_best_is_refined(self):
        def nearness(model):
            return -abs(np.log(model.emission.concentration / 0.3))

        found = select_priors(text(), single(), {NAME: [0.01, 0.1, 1, 10], "n_states": [1, 2]}, nearness, refine=3)
        tried = sorted({trial.settings[NAME] for trial in found.trials})
        np.testing.assert_allclose(tried, [0.01, 0.1**1.5, *np.geomspace(0.1, 1.0, 9)[[0, 2, 3, 4, 5, 6, 8]], 10])
        assert found.settings[NAME] == pytest.approx(0.1 * 10**0.5)
        assert {trial.settings["n_states"] for trial in found.trials} == {1, 2}


class TestWhatIsSaidOfTheResult:
    @pytest.mark.parametrize(("best", "which"), [(0.01, "smallest"), (0.1, None), (1.0, "largest")])
    def test_a_best_value_at_the_edge(self, best, which):
        def nearness(model):
            return -abs(np.log10(model.emission.concentration / best))

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = select_priors(text(), single(), {NAME: [0.01, 0.1, 1.0], "n_states": [1]}, nearness)
        assert found.settings[NAME] == best
        said = [str(warning.message) for warning in caught]
        assert said == found.edges
        if which is None:
            assert not said
        else:
            assert f"the best {NAME}, {best:g}, is the {which} that was tried" in said[0]
            assert "the next, 0.1, scores 1 less" in said[0]

    @pytest.mark.filterwarnings("ignore:one state explains")
    def test_runs_that_collapse_are_not_chosen(self):
        x = text(4, 30)
        grid = {NAME: [0.01, 0.1, 1.0, 1000.0], "transition__concentration": [0.01]}

        def greed(model):
            return float(model.emission.concentration)

        inference = VI(max_iter=60, search=False)
        model = HMM(4, Categorical(n_categories=SYMBOLS), inference=inference, n_jobs=1, random_state=0)
        freely = select_priors(x, model, grid, greed)
        counts = {trial.settings[NAME]: trial.effective for trial in freely.trials}
        assert freely.settings[NAME] == 1000.0
        assert not any(trial.collapsed for trial in freely.trials)
        least = int(counts[1000.0]) + 1
        bound = select_priors(x, model, grid, greed, min_states=least)
        assert bound.settings[NAME] == max(value for value, count in counts.items() if count >= least)
        assert [trial.collapsed for trial in bound.trials] == [count < least for count in counts.values()]
        assert bound.effective >= least
        with pytest.raises(InputError, match="every combination in the grid has collapsed to fewer than min_states=5"):
            select_priors(x, model, grid, greed, min_states=5)


class TestMistakes:
    def test_names_and_values(self):
        x = text()
        with pytest.raises(InputError, match="unknown setting of the model 'emission__concentraton'.*Did you mean"):
            select_priors(x, single(), {"emission__concentraton": [0.1]})
        with pytest.raises(InputError, match="Did you mean 'emission__concentration'"):
            select_priors(x, single(), {"emission.concentration": [0.1]})
        with pytest.raises(InputError, match="unknown setting of the model 'random_state'"):
            select_priors(x, single(), {"random_state": [0, 1]})
        for grid in ({}, [], None):
            with pytest.raises(InputError, match="grid must map names of settings to the values to try"):
                select_priors(x, single(), grid)
        with pytest.raises(InputError, match="the grid has no value for emission__concentration"):
            select_priors(x, single(), {NAME: []})
        with pytest.raises(InputError, match=r"needs a list of values for emission__concentration, not 0.1"):
            select_priors(x, single(), {NAME: 0.1})
        with pytest.raises(InputError, match="needs a list of values for inference, not 'vi'"):
            select_priors(x, single(), {"inference": "vi"})

    @pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "much"])
    def test_values_out_of_range_are_refused_before_anything_is_fitted(self, value):
        fitted = []
        with pytest.raises(InputError, match="with emission__concentration=.*must be a?.?positive"):
            select_priors(text(), single(), {NAME: [0.1, value]}, fitted.append)
        assert not fitted

    def test_values_that_the_algorithm_cannot_take(self):
        with pytest.raises(InputError, match="with emission__concentration=0.1: .*EM"):
            select_priors(text(), single(1.0).set_params(inference=EM()), {NAME: [2.0, 0.1]})

    @pytest.mark.parametrize("answer", [np.nan, np.inf, None, "good", [1.0, 2.0]])
    def test_criteria_that_are_no_numbers(self, answer):
        with pytest.raises(InputError, match=r"the criterion is .* with emission__concentration=0.1; it must be a"):
            select_priors(text(), single(), {NAME: [0.1]}, lambda model: answer)

    def test_held_out_data_that_are_impossible(self):
        model = HMM(1, Poisson(), inference=EM(max_iter=1), n_jobs=1)
        with (
            pytest.warns(UserWarning, match="probability zero"),
            pytest.raises(InputError, match="probability zero under"),
        ):
            select_priors([[0, 0], [1, 1]], model, {"inference__tolerance": [0.1, 0.2]}, cv=2)

    def test_settings_that_nothing_would_read(self):
        x, grid = text(), {NAME: [0.1]}
        with pytest.raises(InputError, match="repeats= needs validation data"):
            select_priors(x, single(), grid, repeats=2)
        with pytest.raises(InputError, match="cv= needs folds"):
            select_priors(x, single(), grid, validation=x, cv=3)
        with pytest.raises(InputError, match="cv= needs folds"):
            select_priors(x, single(), grid, lambda model: 1.0, cv=3)
        with pytest.raises(InputError, match="refine= needs a setting with several positive values"):
            select_priors(x, single(), grid | {"n_states": [1, 2]}, refine=1)

    def test_other_settings(self):
        x, grid = text(), {NAME: [0.1]}
        with pytest.raises(InputError, match="unknown criterion 'heldout'.*Did you mean 'held_out'"):
            select_priors(x, single(), grid, "heldout")
        for name, value in {"cv": 1, "n_init": 0, "min_states": 0, "refine": -1}.items():
            with pytest.raises(InputError, match=f"{name} must be a whole number of at least"):
                select_priors(x, single(), grid, **{name: value})
        with pytest.raises(InputError, match="repeats must be a whole number of at least 1"):
            select_priors(x, single(), grid, validation=x, repeats=0)
        with pytest.raises(InputError, match="states is a list of 3, but there are 6 sequences"):
            select_priors(x, single(), grid, states=[None] * 3)
        with pytest.raises(InputError, match="model must be an HMM"):
            select_priors(x, HMM, grid)
        with pytest.raises(InputError, match="sample_weight has shape"):
            select_priors(x, single(), grid, sample_weight=[1.0])
