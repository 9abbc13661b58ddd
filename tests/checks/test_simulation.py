"""Simulated copies of data have their shape, and follow the model."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import FAMILIES, model_of, with_holes

from subchain import HMM, Gaussian, Poisson, Sequences
from subchain.checks.reading import read
from subchain.checks.simulation import pieces

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("family", FAMILIES)
def test_copies_have_the_same_sequences_and_the_same_entries_missing(family) -> None:
    model = model_of(family)
    values = with_holes(model.sample(200, random_state=0).observations)
    simulation = read(model, Sequences(values, [0, 50, 50, 200])).simulation
    for copy in simulation.copies(2):
        assert copy.values.shape == values.shape
        assert copy.lengths.tolist() == [50, 150]
        missing = np.isnan(values) if values.dtype.kind == "f" else values == -1
        found = np.isnan(copy.values) if values.dtype.kind == "f" else copy.values == -1
        np.testing.assert_array_equal(found, missing)
        assert np.isfinite(model.score(copy))


def test_the_mean_of_many_copies_is_that_of_the_model() -> None:
    model = HMM.from_parameters([1.0, 0.0], [[0.8, 0.2], [0.4, 0.6]], Poisson.from_parameters([[2.0], [50.0]]))
    x = model.sample(2_000, random_state=0).observations
    copies = [copy.values.mean() for copy in read(model, x).simulation.copies(60)]
    assert np.mean(copies) == pytest.approx(2.0 * 2 / 3 + 50.0 / 3, abs=4 * np.std(copies) / np.sqrt(60))


def test_columns_that_the_model_does_not_emit_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    data = Sequences(rng.normal(size=(300, 4)), columns=list("abcd"))
    model = HMM(2, Gaussian(columns=["d", "b"]), random_state=0).fit(data)
    (copy,) = read(model, data).simulation.copies(1)
    np.testing.assert_array_equal(copy.values[:, [0, 2]], data.values[:, [0, 2]])
    assert not np.isin(copy.values[:, [1, 3]], data.values).any()


def test_pieces_of_a_long_sequence_are_spread_over_it_and_start_where_it_is() -> None:
    chain = np.zeros((5, 5))
    for state in range(4):
        chain[state, state], chain[state, state + 1] = 0.9999, 0.0001
    chain[4, 4] = 1.0
    means = 10.0 * np.arange(5)[:, None]
    model = HMM.from_parameters(np.eye(5)[0], chain, Gaussian.from_parameters(means, np.ones((5, 1, 1))))
    x = model.sample(60_000, random_state=3).observations
    bounds = pieces(Sequences(x), 20_000)
    assert (bounds[:, 1] - bounds[:, 0]).sum() <= 20_000
    simulation = read(model, x).simulation
    (copy,) = simulation.copies(1)
    first = simulation.excerpt.offsets[:-1]
    np.testing.assert_allclose(copy.values[first], simulation.excerpt.values[first], atol=6.0)
    assert simulation.excerpt.values[first[-1]] > 10.0  # a left-right chain cannot start there from its beginning
    assert np.isfinite(simulation.reader().score(copy))
