"""The filter, one observation at a time."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import FAMILIES, draw, followed, model_of, sparse_model, steep_model, with_holes

from subchain import HMM
from subchain.errors import ImpossibleSequenceError, InputError


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_agrees_with_the_filter(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 40))
    stream = model.stream()
    found = np.array([stream.update(row) for row in x])
    np.testing.assert_allclose(found, model.filter(x), rtol=1e-9)
    assert stream.n_observations == 40
    assert stream.log_likelihood == pytest.approx(model.score(x))
    assert stream.step_log_likelihood == pytest.approx(model.score_steps(x)[-1])
    np.testing.assert_allclose(stream.probabilities, found[-1])
    np.testing.assert_allclose(stream.predicted, model.forecast(x, 1).states[0])


@pytest.mark.parametrize("lag", [0, 1, 5])
def test_looking_back_over_a_lag_is_smoothing_of_the_prefix(lag):
    model = model_of("gaussian", n_jobs=1)
    x, stream = draw(model, 12), model.stream(lag=lag)
    for t in range(12):
        stream.update(x[t])
        if t < lag:
            assert stream.smoothed is None
        else:
            np.testing.assert_allclose(stream.smoothed, model.predict_proba(x[: t + 1])[t - lag], rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lag", [0, 3])
def test_a_stream_continues_a_past_as_if_it_had_seen_it(family, lag):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 40))
    for n in (1, 3, 30):
        stream, whole = model.stream(lag, given=x[:n]), model.stream(lag)
        for row in x[:n]:
            whole.update(row)
        for row in [None, *x[n:]]:
            assert stream.n_observations == whole.n_observations
            assert stream.log_likelihood == pytest.approx(whole.log_likelihood)
            np.testing.assert_allclose(stream.probabilities, whole.probabilities, rtol=1e-9)
            np.testing.assert_allclose(stream.predicted, whole.predicted, rtol=1e-9)
            assert (stream.smoothed is None) == (whole.smoothed is None)
            if whole.smoothed is not None:
                np.testing.assert_allclose(stream.smoothed, whole.smoothed, rtol=1e-9)
            stream.update(row)
            whole.update(row)


def test_a_past_may_be_words_or_one_row_of_a_table():
    model = HMM(2, "categorical", random_state=0, n_jobs=1).fit([["sun", "sun", "rain"] * 10, ["rain", "sun"] * 5])
    stream = model.stream(given=["sun", "rain"])
    np.testing.assert_allclose(stream.update("sun"), model.filter(["sun", "rain", "sun"])[-1])
    with pytest.raises(InputError, match="a stream continues one sequence, but 2 were given"):
        model.stream(given=[["sun"], ["rain"]])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_forecasts_what_the_model_forecasts(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 20))
    stream = model.stream(given=x[:-1])
    stream.update(x[-1])
    np.testing.assert_allclose(stream.forecast(4).states, model.forecast(x, 4).states, rtol=1e-9)
    np.testing.assert_allclose(stream.forecast(4).mean, model.forecast(x, 4).mean, rtol=1e-9)
    np.testing.assert_allclose(model.stream().forecast(1).states[0], model.initial_)
    with pytest.raises(InputError, match="steps must be"):
        stream.forecast(0)


def test_an_improbable_past_that_was_given_is_not_forgotten():
    model = steep_model(n_jobs=1)
    stream = model.stream(given=[0] * 10 + [1] * 10)
    np.testing.assert_allclose(stream.update(2), [0.0, 0.0, 1.0], atol=1e-12)


def test_nothing_observed_moves_the_chain():
    model = model_of("gaussian", n_jobs=1)
    stream = model.stream()
    np.testing.assert_allclose(stream.probabilities, model.initial_)
    np.testing.assert_allclose(stream.predicted, model.initial_)
    np.testing.assert_allclose(stream.update(None), model.initial_)
    np.testing.assert_allclose(stream.update(None), model.initial_ @ model.transition_)
    assert stream.log_likelihood == pytest.approx(0.0, abs=1e-12)


def test_very_improbable_pasts_are_not_forgotten():
    model = steep_model(n_jobs=1)
    x = [0] * 10 + [1] * 10 + [2]
    stream = model.stream()
    found = np.array([stream.update(symbol) for symbol in x])
    np.testing.assert_allclose(found, followed(model, x).filtered, atol=1e-12)
    assert stream.log_likelihood == pytest.approx(followed(model, x).log_likelihood)


def test_an_impossible_observation_is_refused_and_can_be_passed_over():
    stream = sparse_model(n_jobs=1).stream()
    for symbol in (2, 1, 0):
        stream.update(symbol)
    before = stream.probabilities
    with pytest.raises(ImpossibleSequenceError, match="observation 3, 1, has probability zero"):
        stream.update(1)
    assert np.array_equal(stream.probabilities, before)
    assert stream.n_observations == 3
    stream.update(None)


def test_words_are_coded_by_the_vocabulary_of_the_training_data():
    model = HMM(2, "categorical", random_state=0, n_jobs=1).fit([["sun", "sun", "rain"] * 10, ["rain", "sun"] * 5])
    stream = model.stream()
    found = [stream.update(word) for word in ["rain", "sun"]]
    np.testing.assert_allclose(found, model.filter(["rain", "sun"]))
    with pytest.raises(InputError, match="'snow' is not among"):
        stream.update("snow")
    with pytest.raises(InputError, match="no vocabulary"):
        sparse_model().stream().update("sun")


def test_mistakes_are_explained():
    with pytest.raises(InputError, match="lag must be"):
        sparse_model().stream(lag=-1)
    with pytest.raises(InputError, match="too large"):
        sparse_model().stream().update(3)
    with pytest.raises(InputError, match="3 columns, but the model was made for 2"):
        model_of("gaussian").stream().update([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="a number or a vector"):
        model_of("gaussian").stream().update(np.zeros((2, 2)))
