"""Hidden states: the most probable ones, and the most probable path."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from small_models import FAMILIES, draw, enumerated, model_of, sparse_model, with_holes

from subchain import HMM, Poisson
from subchain.errors import ImpossibleSequenceError, InputError


@pytest.mark.parametrize("family", FAMILIES)
def test_states_are_those_of_all_paths(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 7))
    logs = model.emission_.log_likelihood(x).T
    _, best = naive.enumerate_best_path(logs, model.initial_, model.transition_)
    path = model.predict(x, "viterbi")
    assert naive.path_log_probability(path, logs, model.initial_, model.transition_) == pytest.approx(best)
    assert np.array_equal(model.predict(x), enumerated(model, x).smoothed.argmax(axis=1))


def test_the_best_path_makes_no_impossible_move():
    model = sparse_model(n_jobs=1)
    path = model.predict(draw(model, 200), decoding="viterbi")
    assert (model.transition_[path[:-1], path[1:]] > 0.0).all()


def test_known_states_are_kept_by_both():
    model = model_of("categorical", n_jobs=1)
    x, states = draw(model, 40), np.full(40, -1)
    states[::5] = np.arange(8) % 3
    for decoding in ("posterior", "viterbi"):
        assert np.array_equal(model.predict(x, decoding, states=states)[::5], states[::5])


def test_lists_come_out_as_lists_and_empty_sequences_stay_empty():
    model = model_of("categorical", n_jobs=1)
    found = model.predict([np.array([0, 1]), np.array([], dtype=int), np.array([2])])
    assert [len(part) for part in found] == [2, 0, 1]


@pytest.mark.parametrize("decoding", ["posterior", "viterbi"])
def test_an_impossible_sequence_is_named_and_the_others_are_answered(decoding):
    model = sparse_model(n_jobs=1)
    with pytest.warns(
        UserWarning, match="sequence 1 has probability zero.*the symbol 1 at position 3.*the other 2 are"
    ):
        found = model.predict([[0, 1], [2, 1, 0, 1], [1, 0]], decoding)
    assert found[1].tolist() == [-1] * 4
    assert [found[0].tolist(), found[2].tolist()] == [
        part.tolist() for part in model.predict([[0, 1], [1, 0]], decoding)
    ]


@pytest.mark.parametrize("decoding", ["posterior", "viterbi"])
def test_an_impossible_sequence_alone_is_an_error(decoding):
    with pytest.raises(ImpossibleSequenceError, match="sequence 0 has probability zero.*the symbol 1 at position 3"):
        sparse_model(n_jobs=1).predict([2, 1, 0, 1], decoding)


def test_evidence_of_the_other_sequences_is_kept():
    model = sparse_model(n_jobs=1)
    known = [None, [0, -1]]
    with pytest.warns(UserWarning, match="sequence 0 has probability zero"):
        found = model.predict_proba([[2, 1, 0, 1], [0, 1]], states=known)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], model.predict_proba([0, 1], states=[0, -1]))
    with pytest.warns(UserWarning, match="sequence 0 has probability zero"):
        blocks = list(model.predict_proba_blocks([[2, 1, 0, 1], [0, 1], [1]], block=2))
    assert [start for start, _ in blocks] == [0, 2, 4, 6]
    assert np.isnan(np.concatenate([table for _, table in blocks])).any(axis=1).tolist() == [True] * 4 + [False] * 3


def test_an_impossible_count_is_called_a_count():
    emission = Poisson.from_parameters([0.0, 0.0])
    model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
    with pytest.raises(ImpossibleSequenceError, match="the count 3 at position 2"):
        model.predict([0, 0, 3])


def test_mistakes_are_explained():
    model = model_of("categorical", n_jobs=1)
    with pytest.raises(InputError, match="unknown decoding 'vitebi'.*Did you mean 'viterbi'"):
        model.predict([0, 1], "vitebi")
    emission = model.emission_.take(np.zeros(300, dtype=int))
    big = model.from_parameters(np.full(300, 1 / 300), np.full((300, 300), 1 / 300), emission)
    with pytest.raises(InputError, match="cannot represent 300 states"):
        big.predict([0, 1], out=np.zeros(2, dtype=np.int8))
