"""Probabilities of states: given everything, given the past, written anywhere, in blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import FAMILIES, draw, enumerated, followed, model_of, sparse_model, steep_model, with_holes

from subchain.data import Sequences
from subchain.errors import ImpossibleSequenceError, InputError


@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_equal_sums_over_all_paths(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 6))
    expected = enumerated(model, x)
    np.testing.assert_allclose(model.predict_proba(x), expected.smoothed, rtol=1e-9)
    np.testing.assert_allclose(model.filter(x), expected.filtered, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_filter_knows_each_prefix_as_a_whole_and_nothing_more(family):
    model = model_of(family, n_jobs=1)
    x = with_holes(draw(model, 30))
    filtered = model.filter(x)
    for t in (1, 2, 17, 30):
        np.testing.assert_allclose(filtered[t - 1], model.predict_proba(x[:t])[-1], rtol=1e-9)
    changed = x.copy()
    changed[20:] = draw(model, 10, seed=9)
    assert np.array_equal(model.filter(changed)[:20], filtered[:20])


def test_forbidden_moves_and_symbols_have_probability_zero():
    model, x = sparse_model(n_jobs=1), [0, 1, 1, 2, 0]
    expected = enumerated(model, x)
    smoothed = model.predict_proba(x)
    np.testing.assert_allclose(smoothed, expected.smoothed, atol=1e-15)
    assert (smoothed[expected.smoothed == 0.0] == 0.0).all()


@pytest.mark.parametrize("how", ["allowed", "states", "evidence"])
def test_what_is_known_of_the_states_enters_as_a_factor(how):
    model, rng = model_of("categorical", n_jobs=1), np.random.default_rng(3)
    x = draw(model, 6)
    weights = rng.normal(size=(6, 3))
    if how == "allowed":
        legal = rng.random((6, 3)) < 0.7
        legal[np.arange(6), rng.integers(0, 3, 6)] = True
        knowledge, weights = legal, np.where(legal, 0.0, -np.inf)
    elif how == "states":
        knowledge = np.array([-1, 2, -1, -1, 0, -1])
        weights = np.where((knowledge[:, None] < 0) | (knowledge[:, None] == np.arange(3)), 0.0, -np.inf)
    else:
        knowledge = weights
    expected = enumerated(model, x, weights)
    np.testing.assert_allclose(model.predict_proba(x, **{how: knowledge}), expected.smoothed, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(model.filter(x, **{how: knowledge}), expected.filtered, rtol=1e-9, atol=1e-15)
    assert model.score(x, **{how: knowledge}) == pytest.approx(expected.log_likelihood)
    assert np.array_equal(model.predict(x, **{how: knowledge}), expected.smoothed.argmax(axis=1))


def test_legal_states_may_be_given_for_each_symbol():
    model, x = model_of("categorical", n_jobs=1), np.array([0, 3, 1, 3])
    legal = np.array([[1, 0, 0], [1, 1, 1], [1, 1, 1], [0, 1, 1]], dtype=bool)
    by_mapping = model.predict_proba([x], allowed={0: [0], 3: [1, 2]})
    expected = enumerated(model, x, np.where(legal[x], 0.0, -np.inf)).smoothed
    np.testing.assert_allclose(by_mapping[0], expected, atol=1e-12)


def test_answers_have_the_form_of_the_question():
    model = model_of("categorical", n_jobs=1)
    a, b, nothing = np.array([0, 1, 2]), np.array([3]), np.array([], dtype=int)
    assert model.predict_proba(a).shape == (3, 3)
    assert model.predict_proba([0, 1, 2]).shape == (3, 3)
    assert model.predict_proba(Sequences(a)).shape == (3, 3)
    assert [part.shape for part in model.predict_proba([a])] == [(3, 3)]
    assert [part.shape for part in model.predict_proba([a, nothing, b])] == [(3, 3), (0, 3), (1, 3)]
    assert [part.shape for part in model.predict_proba((np.append(a, b), [3, 1]))] == [(3, 3), (1, 3)]
    assert [part.shape for part in model.predict_proba(([0, 1, 2], [3]))] == [(3, 3)]
    for joint, alone in zip(model.predict_proba([a, nothing, b])[::2], (a, b), strict=True):
        np.testing.assert_allclose(joint, model.predict_proba(alone))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sequence_of_missing_values_shows_the_chain_alone(family):
    model = model_of(family, n_jobs=1)
    values = draw(model, 4)
    x = np.full(values.shape, np.nan if values.dtype.kind == "f" else -1, dtype=values.dtype)
    alone = [model.initial_ @ np.linalg.matrix_power(model.transition_, t) for t in range(4)]
    np.testing.assert_allclose(model.predict_proba(x), alone)
    np.testing.assert_allclose(model.filter(x), alone)


@pytest.mark.parametrize("method", ["predict_proba", "filter", "predict", "score_samples", "score_steps"])
def test_the_number_of_cores_does_not_change_a_bit(method):
    one, two = model_of("gaussian", n_jobs=1), model_of("gaussian", n_jobs=2)
    x = [draw(one, n, seed=n) for n in (5000, 40, 1, 333)]
    for alone, shared in zip(getattr(one, method)(x), getattr(two, method)(x), strict=True):
        assert np.array_equal(alone, shared)


class TestOutput:
    def test_an_array_is_written_in_place_in_its_own_precision(self):
        model = model_of("categorical", n_jobs=1)
        x = [draw(model, 20), draw(model, 3)]
        out = np.zeros((23, 3), dtype=np.float32)
        parts = model.predict_proba(x, out=out)
        assert all(np.shares_memory(part, out) for part in parts)
        np.testing.assert_allclose(out, np.concatenate(model.predict_proba(x)), rtol=1e-6)

    @pytest.mark.parametrize("method", ["predict_proba", "filter", "predict"])
    def test_a_path_becomes_a_file_that_is_mapped(self, method, tmp_path):
        model = model_of("categorical", n_jobs=1)
        x = draw(model, 50)
        answer = getattr(model, method)(x, out=tmp_path / "answer.npy")
        assert isinstance(answer, np.memmap)
        assert np.array_equal(answer, getattr(model, method)(x))
        assert np.array_equal(np.load(tmp_path / "answer.npy"), answer)
        assert [file.name for file in tmp_path.iterdir()] == ["answer.npy"]

    def test_a_failure_leaves_the_old_file_and_no_other(self, tmp_path):
        np.save(tmp_path / "answer.npy", np.arange(3))
        with pytest.raises(ImpossibleSequenceError):
            sparse_model(n_jobs=1).predict_proba([2, 1, 0, 1], out=tmp_path / "answer.npy")
        assert np.array_equal(np.load(tmp_path / "answer.npy"), np.arange(3))
        assert len(list(tmp_path.iterdir())) == 1

    def test_unsuitable_places_are_refused(self, tmp_path):
        model, x = model_of("categorical", n_jobs=1), [0, 1, 2]
        with pytest.raises(InputError, match=r"out has the shape \(2, 3\), but the result has the shape \(3, 3\)"):
            model.predict_proba(x, out=np.zeros((2, 3)))
        with pytest.raises(InputError, match="out is of type int64"):
            model.predict_proba(x, out=np.zeros((3, 3), dtype=int))
        with pytest.raises(InputError, match="end in .npy"):
            model.predict_proba(x, out=tmp_path / "answer.csv")
        with pytest.raises(InputError, match="does not exist"):
            model.predict_proba(x, out=tmp_path / "nowhere" / "answer.npy")
        frozen = np.zeros((3, 3))
        frozen.flags.writeable = False
        with pytest.raises(InputError, match="out is read-only"):
            model.predict_proba(x, out=frozen)


class TestBlocks:
    @given(seed=st.integers(0, 2**16), block=st.integers(1, 300))
    def test_blocks_put_end_to_end_are_the_whole(self, seed, block):
        model, rng = model_of("gaussian", n_jobs=1), np.random.default_rng(seed)
        x = [draw(model, n, seed=seed) for n in rng.integers(1, 200, 4)]
        starts, tables = zip(*model.predict_proba_blocks([*x, np.empty((0, 2))], block=block), strict=True)
        lengths = [len(table) for table in tables]
        assert list(starts) == [0, *np.cumsum(lengths)[:-1]]
        assert max(lengths) <= block
        whole = np.concatenate(model.predict_proba(x))
        np.testing.assert_allclose(np.concatenate(tables), whole, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("block", [1, 40, 1000])
    def test_sequences_beyond_scaled_probabilities_are_exact_too(self, block):
        model = steep_model(n_jobs=1)
        x = [np.array([0] * 30 + [1] * 30 + [2] * 3), np.array([0, 1, 0])]
        found = np.concatenate([table for _, table in model.predict_proba_blocks(x, block=block)])
        np.testing.assert_allclose(found, np.concatenate([followed(model, part).smoothed for part in x]), atol=1e-12)

    def test_evidence_reaches_every_block(self):
        model = model_of("categorical", n_jobs=1)
        x, states = draw(model, 100), np.full(100, -1)
        states[::7] = 1
        found = np.concatenate([table for _, table in model.predict_proba_blocks(x, block=32, states=states)])
        np.testing.assert_allclose(found, model.predict_proba(x, states=states), rtol=1e-9, atol=1e-12)

    def test_impossible_sequences_and_sizes_are_refused_before_the_first_block(self):
        with pytest.raises(ImpossibleSequenceError, match="sequence 0.*position 3"):
            sparse_model(n_jobs=1).predict_proba_blocks([2, 1, 0, 1])
        with pytest.raises(InputError, match="block must be"):
            sparse_model(n_jobs=1).predict_proba_blocks([0, 1], block=0)


def test_sequences_beyond_scaled_probabilities_are_exact():
    model, x = steep_model(n_jobs=1), np.array([0] * 5 + [1] * 5 + [2] * 2)
    expected = followed(model, x)
    np.testing.assert_allclose(model.predict_proba(x), expected.smoothed, atol=1e-12)
    np.testing.assert_allclose(model.filter(x), expected.filtered, atol=1e-12)
