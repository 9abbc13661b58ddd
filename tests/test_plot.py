"""Plots draw what the model says and return their axes."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from examples import FAMILIES, example

from subchain import CVI, HDP, HMM, VI, Bernoulli, Categorical, DiagonalGaussian, Gaussian, HoldOut, as_sequences, plot
from subchain.errors import InputError, NotFittedError
from subchain.plot import along

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


@pytest.mark.parametrize("family", list(FAMILIES))
def test_heat_maps_of_every_family_have_a_row_a_state(family) -> None:
    from matplotlib.figure import Figure

    specification, data = example(family)
    fitted = HMM(3, specification, inference=VI(max_iter=3), random_state=0).fit(data)
    given = Figure().subplots()
    assert plot.emissions(fitted, ax=given) is given
    drawn = np.asarray(given.images[0].get_array())
    assert len(drawn) == len(given.get_yticklabels())
    assert drawn.shape[1] == len(given.get_xticklabels())
    assert np.isfinite(drawn).all()
    given.figure.canvas.draw()


def test_a_heat_map_shows_chances_as_they_are_for_states_that_are_asked_for() -> None:
    chances = np.array([[0.9, 0.1, 0.3], [0.2, 0.8, 0.001], [0.5, 0.5, 0.5]])
    known = HMM.from_parameters(np.ones(3) / 3, np.full((3, 3), 1 / 3), Bernoulli.from_parameters(chances))
    known.state_names_ = ["one", "two", "three"]
    ax = plot.emissions(known, states=["three", 1])
    np.testing.assert_allclose(ax.images[0].get_array(), chances[[2, 1]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["three", "two"]
    assert [text.get_text() for text in ax.texts] == [".50", ".50", ".50", ".20", ".80", ""]


def test_columns_of_other_scales_are_standardised_by_the_data() -> None:
    means, deviations = np.array([[0.0, 500.0], [4.0, 100.0]]), np.array([1.0, 50.0])
    emission = DiagonalGaussian.from_parameters(means, np.tile(deviations**2, (2, 1)))
    known = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], emission)
    x = known.sample(40_000, random_state=0).observations
    ax = plot.emissions(known)
    np.testing.assert_allclose(ax.images[0].get_array(), (means - x.mean(axis=0)) / x.std(axis=0), atol=0.05)
    assert [text.get_text() for text in ax.texts] == ["0.0", "500", "4.0", "100"]


def test_a_heat_map_of_symbols_has_the_most_probable_ones_beside_their_states(model) -> None:
    emission = Categorical.from_parameters(np.array([[0.1, 0.7, 0.2, 0.0], [0.6, 0.1, 0.1, 0.2]]))
    known = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], emission)
    ax = plot.emissions(known)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "0", "3"]
    np.testing.assert_allclose(ax.images[0].get_array(), emission.probabilities[:, [1, 2, 0, 3]])


def test_labels_of_bars_stay_inside_the_frame(model) -> None:
    from matplotlib.figure import Figure

    for size in ((2.0, 1.5), (4.0, 3.0), (10.0, 4.0)):
        figure = Figure(figsize=size, layout="constrained")
        ax = plot.occupancy(model, ax=figure.subplots())
        figure.canvas.draw()
        frame = ax.get_window_extent()
        assert all(frame.x0 < text.get_window_extent().x0 for text in ax.texts)
        assert all(text.get_window_extent().x1 < frame.x1 for text in ax.texts)


def test_a_segmentation_stacks_the_marginals(model) -> None:
    ax = plot.segmentation(model, X, start=10, stop=50)
    assert len(ax.collections) == 3
    tops = np.max([collection.get_paths()[0].vertices[:, 1].max() for collection in ax.collections])
    assert tops == pytest.approx(1.0)
    ax.figure.canvas.draw()


def test_shares_of_a_long_segmentation_are_means_of_the_marginals(model, monkeypatch) -> None:
    monkeypatch.setattr("subchain.plot.along.COLUMNS", 7)
    data = [X[:30], X]
    shares, edges = along._shares(model, model._read(data)[[1]], 5, 300)
    marginals = model.predict_proba(data)[1]
    expected = [marginals[int(a) : int(b)].mean(axis=0) for a, b in pairwise(edges)]
    np.testing.assert_allclose(shares, expected, atol=1e-9)


def test_wrong_choices_say_what_there_is(model) -> None:
    with pytest.raises(InputError, match="column 'x' does not exist; the model has 1"):
        plot.states(model, "x")
    with pytest.raises(InputError, match="sequence 3 does not exist"):
        plot.segmentation(model, X, sequence=3)
    with pytest.raises(InputError, match="has no positions"):
        plot.segmentation(model, X, start=9, stop=3)
    with pytest.raises(InputError, match="unknown state 'quiet'"):
        plot.emissions(model, states=["quiet"])
    with pytest.raises(InputError, match="state 3 does not exist; there are 3 states"):
        plot.emissions(model, states=[3])
    with pytest.raises(InputError, match="no state was chosen"):
        plot.emissions(model, states=[])


@pytest.mark.parametrize("name", ["transition", "convergence", "occupancy", "states", "emissions"])
def test_a_model_that_has_learned_nothing_cannot_be_drawn(name: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(plot, name)(HMM(2, "gaussian"))


@pytest.fixture(scope="module")
def animals():
    """Two states of two correlated columns, in two named sequences."""
    spread = [[[1.0, 0.8], [0.8, 1.0]], [[1.0, 0.0], [0.0, 4.0]]]
    emission = Gaussian.from_parameters([[0.0, 0.0], [6.0, 3.0]], spread)
    known = HMM.from_parameters([0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], emission)
    known.state_names_ = ["rest", "run"]
    walks = [known.sample(n, random_state=n).observations for n in (900, 1500)]
    return known, as_sequences(walks, names=["ann", "bob"], columns=["speed", "turn"])


def test_a_sequence_is_chosen_by_its_name(animals) -> None:
    model, data = animals
    ax = plot.segmentation(model, data, sequence="bob")
    assert ax.get_xlim() == (0, 1500)
    assert ax.get_title() == "Segmentation of bob"
    with pytest.raises(InputError, match="ann"):
        plot.segmentation(model, data, sequence="anna")
    with pytest.raises(InputError, match="have no names; give a number"):
        plot.segmentation(model, data.values, sequence="bob")


def test_pairs_show_the_data_and_ellipses_that_hold_nine_of_ten(animals) -> None:
    model, data = animals
    ax = plot.pairs(model, data)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("speed", "turn")
    assert sum(len(points.get_offsets()) for points in ax.collections) == 2_000
    for state, line in enumerate(ax.lines):
        x = model.emission_.sample(np.full(20_000, state), np.random.default_rng(0))
        from matplotlib.path import Path

        assert Path(line.get_xydata()).contains_points(x).mean() == pytest.approx(0.9, abs=0.01)
    with pytest.raises(InputError, match="two columns of numbers"):
        plot.pairs(HMM(2, "poisson", random_state=0).fit([1, 2, 9, 8] * 20), [1, 2, 9, 8])
    with pytest.raises(InputError, match="'weight' is none of the columns of numbers: speed, turn"):
        plot.pairs(model, data, columns=("speed", "weight"))


def test_dwell_times_are_drawn_for_a_state_given_by_name(animals) -> None:
    model, data = animals
    ax = plot.dwell_times(model, data, state="run")
    assert ax.get_title() == "Dwell times of run"
    geometric = next(line for line in ax.lines if line.get_label().startswith("geometric"))
    np.testing.assert_allclose(geometric.get_ydata(), 0.9 ** geometric.get_xdata())


def test_a_predictive_check_names_what_does_not_fit(animals) -> None:
    model, data = animals
    assert "0 of 14 statistics" in plot.predictive_check(model, data).get_title()
    ax = plot.predictive_check(model, data.values * [1.0, 3.0])
    far = [line.get_ydata()[0] for line in ax.lines if line.get_color() == along.FAR]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert "standard deviation of column 1" in {labels[int(place)] for place in far}


def test_a_state_that_is_never_left_says_so() -> None:
    known = HMM.from_parameters([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], Categorical.from_parameters(np.eye(2)))
    texts = [text.get_text() for text in plot.occupancy(known).texts]
    assert texts == ["lasts 10", "never left"]


@pytest.mark.parametrize("draw", [plot.transition, plot.emissions, plot.occupancy, plot.states])
def test_long_names_stay_inside_the_figure_and_off_each_other(draw) -> None:
    rng = np.random.default_rng(0)
    emission = DiagonalGaussian.from_parameters(rng.normal(size=(6, 3)), np.ones((6, 3)))
    known = HMM.from_parameters(np.full(6, 1 / 6), rng.dirichlet(np.ones(6), 6), emission)
    known.state_names_ = [f"a_rather_long_name_of_state_{state}" for state in range(6)]
    ax = draw(known)
    ax.figure.canvas.draw()
    width, height = ax.figure.canvas.get_width_height()
    box = ax.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= width
    assert box.y1 <= height
    if draw is plot.transition:
        across = [label.get_window_extent() for label in ax.get_xticklabels()]
        assert not any(one.overlaps(other) for one, other in pairwise(across))
