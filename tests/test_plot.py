"""Plots draw what the model says and return their axes."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

from examples import FAMILIES, example
from subchain import CVI, HDP, HMM, VI, HoldOut, plot
from subchain.errors import InputError

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore")
X = np.array([0, 0, 0, 1, 1, 1, 2, 2] * 60)


@pytest.fixture(autouse=True)
def _closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return HMM(3, "categorical", inference=VI(max_iter=5), random_state=0).fit(X, validation=HoldOut(0.1))


def test_the_matrix_holds_the_transition_probabilities(model) -> None:
    ax = plot.transition(model)
    order = [model.state_names_.index(label.get_text()) for label in ax.get_yticklabels()]
    drawn = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(drawn**2, model.transition_[np.ix_(order, order)])


def test_convergence_is_the_trace(model) -> None:
    ax = plot.convergence(model)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.trace_.objective)
    beside = ax.figure.axes[1]
    np.testing.assert_array_equal(beside.lines[0].get_ydata(), model.trace_.validation)


def test_occupancy_is_drawn_for_states_in_use_alone() -> None:
    model = HMM(12, "categorical", transition=HDP(), inference=CVI(max_iter=15), random_state=0).fit(X)
    widths = [patch.get_width() for patch in plot.occupancy(model).patches]
    assert len(widths) < 12
    np.testing.assert_allclose(sum(widths), 1.0, atol=0.02)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_emissions_of_every_family_can_be_drawn_into_given_axes(family) -> None:
    from matplotlib.figure import Figure

    specification, data = example(family)
    fitted = HMM(3, specification, inference=VI(max_iter=3), random_state=0).fit(data)
    given = Figure().subplots()
    assert plot.states(fitted, ax=given) is given
    given.figure.canvas.draw()


def test_a_segmentation_stacks_the_beliefs(model) -> None:
    ax = plot.segmentation(model, X, start=10, stop=50)
    assert len(ax.collections) == 3
    tops = np.max([collection.get_paths()[0].vertices[:, 1].max() for collection in ax.collections])
    assert tops == pytest.approx(1.0)
    ax.figure.canvas.draw()


def test_shares_of_a_long_segmentation_are_means_of_the_beliefs(model, monkeypatch) -> None:
    monkeypatch.setattr("subchain.plot.COLUMNS", 7)
    data = [X[:30], X]
    shares, edges = plot._shares(model, model._read(data)[[1]], 5, 300)
    beliefs = model.predict_proba(data)[1]
    expected = [beliefs[int(a) : int(b)].mean(axis=0) for a, b in pairwise(edges)]
    np.testing.assert_allclose(shares, expected, atol=1e-9)


def test_wrong_choices_say_what_there_is(model) -> None:
    with pytest.raises(InputError, match="column 'x' is not one of the 1"):
        plot.states(model, "x")
    with pytest.raises(InputError, match="sequence 3 was asked for"):
        plot.segmentation(model, X, sequence=3)
    with pytest.raises(InputError, match="hold nothing"):
        plot.segmentation(model, X, start=9, stop=3)
