"""Invariances that must hold for every family: what does not change the problem does not change the answer."""

from functools import partial

import numpy as np
import pytest
from examples import FAMILIES, example
from hypothesis import given, settings
from hypothesis import strategies as st

from subchain import EM, HMM, VI
from subchain.data import Sequences

ALGORITHMS = {"em": EM, "vi": VI, "vi of states": partial(VI, cluster="state")}


def started(family, seed=1, n_states=3):
    """A model to start from, fitted a little to data of the family."""
    specification, data = example(family, "many", seed)
    return HMM(n_states, specification, inference=VI(max_iter=2, tolerance=0.0), random_state=0, n_jobs=1).fit(data)


def fit(family, algorithm, data, start, **arguments):
    specification, _ = example(family)
    inference = ALGORITHMS[algorithm](max_iter=3, tolerance=0.0)
    if algorithm != "em":  # data-driven priors depend on the data; keep them out of the comparison
        specification = start.family_
    return HMM(3, specification, inference=inference, init=start, n_jobs=1).fit(data, **arguments)


def close(one, other):
    first, second = one.point_.arrays(), other.point_.arrays()
    for key in first:
        assert np.allclose(first[key], second[key], rtol=1e-7, atol=1e-9), key


pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**16))
def test_permuting_sequences_changes_nothing(family, algorithm, seed):
    _, data = example(family, "ragged", seed)
    start = started(family)
    order = np.random.default_rng(seed).permutation(data.n_sequences)
    close(fit(family, algorithm, data, start), fit(family, algorithm, data[order], start))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**16))
def test_relabelling_states_relabels_the_answer(family, algorithm, seed):
    _, data = example(family, "ragged", seed)
    start, relabelled = started(family), started(family)
    order = np.random.default_rng(seed).permutation(3)
    relabelled.point_ = relabelled.point_.take(order)
    one, other = fit(family, algorithm, data, start), fit(family, algorithm, data, relabelled)
    one.point_ = one.point_.take(order)
    close(one, other)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**16))
def test_a_sequence_of_missing_values_has_probability_one(family, seed):
    _, data = example(family, "ragged", seed)
    model = started(family)
    missing = np.full((5, *data.values.shape[1:]), -1 if data.values.dtype.kind == "i" else np.nan)
    more = Sequences(
        np.concatenate((data.values, missing.astype(data.values.dtype))), np.append(data.offsets, len(data.values) + 5)
    )
    scores = model.score_sequences(more)
    assert scores[-1] == pytest.approx(0.0, abs=1e-12)
    assert model.score(more) == pytest.approx(model.score(data))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**16), weight=st.integers(1, 3))
def test_a_weight_of_w_equals_w_copies(family, seed, weight):
    _, data = example(family, "ragged", seed)
    start = started(family)
    weights = np.ones(data.n_sequences)
    weights[0] = weight
    copies = data[np.r_[np.zeros(weight - 1, dtype=int), np.arange(data.n_sequences)]]
    close(fit(family, "em", data, start, sample_weight=weights), fit(family, "em", copies, start))


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**16))
def test_statistics_of_parts_add_up(family, seed):
    _, data = example(family, "ragged", seed)
    model = started(family)
    whole = model.expected_statistics(data)
    parts = model.expected_statistics(data[:3]) + model.expected_statistics(data[3:])
    for key, array in whole.arrays().items():
        assert np.allclose(array, parts.arrays()[key], rtol=1e-9, atol=1e-9), key
