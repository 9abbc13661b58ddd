"""How well single observations are foretold."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from small_models import FAMILIES, draw, model_of, sparse_model, steep_model, with_holes

from subchain.errors import ImpossibleSequenceError, InputError


def log_likelihood(model, x, hidden=()):
    """Log probability of a sequence, the hidden observations being summed out."""
    logs = model.emission_.log_likelihood(np.asarray(x)).T.copy()
    logs[list(hidden)] = 0.0
    return naive.marginals(logs, model.initial_, model.transition_).log_likelihood


def left_out(model, x):
    """Each observation's log probability given the others: what its absence changes."""
    return [log_likelihood(model, x) - log_likelihood(model, x, [t]) for t in range(len(x))]


@pytest.mark.parametrize("family", FAMILIES)
def test_steps_are_the_factors_of_the_likelihood(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 20))
    logs = model.emission_.log_likelihood(x).T
    expected = naive.marginals(logs, model.initial_, model.transition_).increments
    np.testing.assert_allclose(model.score_steps(x), expected, atol=1e-12)
    long = [draw(model, n, seed=n) for n in (3000, 1, 20)]
    np.testing.assert_allclose([part.sum() for part in model.score_steps(long)], model.score_sequences(long))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_observation_left_out_is_judged_by_all_others(family):
    model = model_of(family, n_jobs=1)
    x = [with_holes(draw(model, n, seed=n)) for n in (20, 1, 7)]
    for found, part in zip(model.score_samples(x), x, strict=True):
        np.testing.assert_allclose(found, left_out(model, part), rtol=1e-9, atol=1e-9)


def test_states_that_the_observation_itself_rules_out_count_among_those_it_might_have_had():
    model = sparse_model(n_jobs=1)
    for x in ([0, 1, 1, 2, 0], [1, 2], [0, 0, 0], [1], draw(model, 30)):
        np.testing.assert_allclose(model.score_samples(x), left_out(model, x), atol=1e-12)


def test_long_chains_that_are_cut_into_pieces_give_the_same():
    model = model_of("categorical", n_jobs=2)
    x = draw(model, 5000)
    found = model.score_samples(x)
    for t in (0, 1, 2500, 4999, *range(150, 170)):  # a range that holds the end of a piece
        logs = model.emission_.log_likelihood(x).T
        around = slice(max(0, t - 120), t + 120)
        left = t - around.start
        start = model.initial_ if around.start == 0 else np.full(3, 1 / 3)
        totals = []
        for hidden in ([], [left]):
            window = logs[around].copy()
            window[hidden] = 0.0
            totals.append(naive.marginals(window, start, model.transition_).log_likelihood)
        assert found[t] == pytest.approx(totals[0] - totals[1], abs=1e-9)


def test_long_chains_with_forbidden_symbols_give_the_same_whatever_the_pieces():
    transition = np.array([[0.9, 0.1], [0.2, 0.8]])
    emission = model_of("categorical").emission_.take(np.array([0, 1]))
    emission.weights[:] = [[0.5, 0.0], [0.5, 0.3], [0.0, 0.7], [0.0, 0.0]]
    model = sparse_model().from_parameters([0.5, 0.5], transition, emission, n_jobs=1)
    x = draw(model, 4000)
    windows = model.score_samples([x[t - 60 : t + 60] for t in range(60, 3940)])
    np.testing.assert_allclose(model.score_samples(x)[60:3940], [window[60] for window in windows], atol=1e-9)


def test_missing_observations_have_score_zero():
    model = model_of("categorical", n_jobs=1)
    assert (model.score_samples([-1, -1, -1]) == 0.0).all()
    assert model.score_samples([0, -1, 2])[1] == pytest.approx(0.0, abs=1e-12)


def test_sequences_beyond_scaled_probabilities_are_exact():
    model, x = steep_model(n_jobs=1), [0, 0, 1, 1, 1, 2, 2]
    np.testing.assert_allclose(model.score_samples(x), left_out(model, x), rtol=1e-9, atol=1e-9)
    assert model.score_steps(x).sum() == pytest.approx(log_likelihood(model, x))


@pytest.mark.parametrize("family", FAMILIES)
def test_masked_observations_are_judged_by_those_that_are_left(family):
    model = model_of(family, n_jobs=1)
    x = draw(model, 12)
    mask = np.zeros(12, dtype=bool)
    mask[[0, 3, 4, 11]] = True
    hidden = np.flatnonzero(mask)
    found = model.score_samples(x, mask=mask)
    given = log_likelihood(model, x, hidden)
    for t in hidden:
        assert found[t] == pytest.approx(log_likelihood(model, x, [h for h in hidden if h != t]) - given)
    assert (found[~mask] == 0.0).all()
    (in_list,) = model.score_samples([x], mask=[mask])
    assert np.array_equal(in_list, found)


def test_a_masked_observation_that_cannot_be_has_minus_infinity_and_does_no_harm():
    model, x = sparse_model(n_jobs=1), [2, 1, 0, 1]
    assert model.score_samples(x, mask=np.array([False, False, False, True])).tolist() == [0.0, 0.0, 0.0, -np.inf]
    found = model.score_samples(x, mask=np.array([True, False, False, True]))
    assert np.isfinite(found[:3]).all()


def test_mistakes_are_explained():
    model = sparse_model(n_jobs=1)
    with pytest.raises(InputError, match="mask must hold True or False for each of 2 positions"):
        model.score_samples([0, 1], mask=np.array([0, 1]))
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        model.score_samples([0, 1], mask=np.array([True, False, True]))
    for method in (model.score_samples, model.score_steps):
        with pytest.raises(ImpossibleSequenceError, match="position 3"):
            method([2, 1, 0, 1])
