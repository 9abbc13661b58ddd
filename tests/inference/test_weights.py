"""Weights of sequences: zero leaves a sequence out, and statistics count what is weighed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from brief import BRIEF, build, same
from examples import FAMILIES, example

from subchain import CVI, HMM, Categorical, Gaussian, HoldOut, Product
from subchain.data import Sequences, as_sequences
from subchain.errors import InputError

#: An observation that no other resembles; where the family was told its symbols, the last one.
ODD = {
    "categorical": 4, "gaussian": [1e9, -1e9], "diagonal_gaussian": [1e9, -1e9], "poisson": [100_000, 0],
    "bernoulli": [1, 1, 1], "product": [1e9, -1e9, 4.0], "exponential": 1e9,
}  # fmt: skip
#: Algorithms that every sequence has a path in, or none.
UNWEIGHED = ("gibbs", "hastings", "beam", "cvi of states")


def with_odd(family, at=1):
    """The family, its data, and the same data with an odd sequence inserted at a place."""
    specification, data = example(family)
    pieces = list(data)
    pieces.insert(at, np.broadcast_to(np.asarray(ODD[family], data.values.dtype), (7, *data.values.shape[1:])))
    return specification, data, Sequences(np.concatenate(pieces), np.cumsum([0, *map(len, pieces)]))


def quiet(model, *data, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **arguments)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("algorithm", BRIEF)
def test_a_weight_of_zero_leaves_the_sequence_out(algorithm, family):
    specification, data, more = with_odd(family)
    weights = np.ones(data.n_sequences) if algorithm in UNWEIGHED else 0.5 * (1 + np.arange(data.n_sequences))
    without = quiet(build(algorithm, specification, "three states"), data, sample_weight=weights)
    zero = quiet(build(algorithm, specification, "three states"), more, sample_weight=np.insert(weights, 1, 0.0))
    same(without, zero)
    assert zero.statistics_.n_observations == pytest.approx(weights @ data.lengths)


@pytest.mark.parametrize("init", ["kmeans", "context", "random", "exponential", "posteriors", "states"])
def test_no_start_sees_a_sequence_of_weight_zero(init):
    specification, data, more = with_odd("gaussian")
    weights = np.insert(np.ones(data.n_sequences), 1, 0.0)
    without = quiet(build("vi", specification, "three states", init=init), data)
    same(without, quiet(build("vi", specification, "three states", init=init), more, sample_weight=weights))


@pytest.mark.parametrize("algorithm", ["vi", "em", "cvi", "svi"])
def test_neither_its_symbols_nor_its_evidence_matter(algorithm):
    rng = np.random.default_rng(2)
    x = [rng.integers(0, 4, 30), np.full(20, 90), rng.integers(0, 4, 25)]
    nothing = np.zeros((75, 3))
    nothing[30:50] = -np.inf  # an error in a sequence that counts
    held = rng.random(75) < 0.2
    kept = np.r_[0:30, 50:75]

    def fit(data, evidence, held_out, **more):
        model = HMM(3, "categorical", inference=BRIEF[algorithm](), random_state=1)
        return quiet(model, data, evidence=evidence, validation=HoldOut(held_out), **more)

    without = fit([x[0], x[2]], nothing[kept], held[kept])
    zero = fit(x, nothing, held, sample_weight=[1, 0, 1])
    same(without, zero)
    assert zero.emission_.probabilities.shape == (3, 4)
    with pytest.raises(InputError, match="no state is left at sequence 1"):
        fit(x, nothing, held)


def test_something_must_be_left():
    with pytest.raises(InputError, match="hold no observations"):
        HMM(2, "categorical").fit([[0, 1], []], sample_weight=[0, 1])


@pytest.mark.parametrize("n_states", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_do_not_touch_the_marginals_that_cvi_keeps(family, n_states):
    specification, data = example(family)
    for x in (data, data[1:2]):  # the second is a single observation
        model = HMM(n_states, specification, inference=CVI(max_iter=3, tolerance=0.0), random_state=0)
        rows = quiet(model, x, sample_weight=np.full(len(x), 0.5)).training_marginals_.entries.reshape(-1, n_states)
        assert rows.sum(axis=1) == pytest.approx(np.ones(x.n_observations))


@pytest.mark.parametrize("algorithm", [name for name in BRIEF if name not in UNWEIGHED])
def test_statistics_count_observations_with_their_weights(algorithm):
    specification, data = example("categorical")
    weights = np.array([2.0, 1.0, 3.0, 0.5, 1.0, 4.0])
    found = quiet(build(algorithm, specification, "three states"), data, sample_weight=weights).statistics_
    assert found.n_observations == pytest.approx(weights @ data.lengths)


@pytest.mark.parametrize(
    "evidence",
    [{"allowed": []}, {"states": [np.zeros(20, int)] * 3}, {"states": [np.zeros(20, int)] * 7}, {"evidence": 3.0}],
)
def test_evidence_of_another_length_is_refused_before_sequences_are_left_out(evidence):
    data = [np.random.default_rng(i).normal(size=(20, 1)) for i in range(4)]
    with pytest.raises(InputError, match="evidence"):
        HMM(2, "gaussian", random_state=0).fit(data, sample_weight=[1, 0, 1, 1], **evidence)


def test_words_that_only_a_sequence_of_weight_zero_holds_are_unknown():
    left_in = [["b", "a", "b", "c"] * 5, ["a", "c", "c"] * 4]
    text = [left_in[0], ["z", "a", "z", None, "b"] * 9, left_in[1]]

    def fit(data, **more):
        return quiet(HMM(2, "categorical", random_state=1, inference=BRIEF["vi"]()), data, **more)

    without, zero = fit(left_in), fit(text, sample_weight=[1, 0, 1])
    assert zero.vocabularies_ == without.vocabularies_
    assert zero.emission_.probabilities.shape == (2, 3)
    same(without, zero)
    with pytest.warns(UserWarning, match="did not have .'z'."):
        zero.predict(["a", "z"])


def test_a_given_vocabulary_stays_whatever_the_weights():
    text = as_sequences([["a", "b"] * 5, ["z"] * 4])
    model = quiet(HMM(1, "categorical", inference=BRIEF["vi"]()), text, sample_weight=[1, 0])
    assert model.vocabularies_ == text.vocabularies


def test_categories_that_a_table_declares_stay_and_others_do_not():
    import pandas as pd

    words = ["x", "y", "y", "x", "q", "q"]
    for column, expected in ((words, {"x", "y"}), (pd.Categorical(words, ["q", "x", "y", "w"]), {"q", "x", "y", "w"})):
        table = pd.DataFrame({"id": [0, 0, 0, 0, 1, 1], "word": column, "size": [1.0, 2.0, np.nan, 3.0, 9.0, 9.0]})
        data = {key: part[["word", "size"]] for key, part in table.groupby("id")}
        emission = Product(what=Categorical(columns="word"), size=Gaussian(columns="size"))
        model = quiet(HMM(1, emission, inference=BRIEF["vi"]()), data, sample_weight=[1, 0])
        assert set(model.vocabularies_[0].symbols) == expected
