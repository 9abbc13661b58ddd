"""Credible intervals of parameters: from the posterior, and from a Gibbs run that starts at the fitted model."""

import numpy as np
import pytest

from subchain import EM, HDP, HMM, VI, Categorical, Gibbs, Poisson, Product
from subchain.errors import InputError
from subchain.structures.chain.model import HMMPoint
from subchain.tasks.parameter_intervals import relabelled
from subchain.transitions import Chain, Dirichlet

RNG = np.random.default_rng(0)
STATES = np.repeat(np.tile([0, 1], 30), 8)
X = RNG.normal(1.5 * STATES, 1.0)


@pytest.fixture(scope="module")
def overlapping():
    return HMM(2, "gaussian", inference=VI(max_iter=2000), random_state=0).fit(X).order_states(by="mean")


def widths(found):
    return found[1] - found[0]


def test_intervals_of_gibbs_are_wider_where_states_overlap(overlapping):
    narrow = overlapping.intervals(level=0.9)
    wide = overlapping.intervals(X, method="gibbs", level=0.9, n_draws=200)
    assert widths(wide.emission["means"]).mean() > widths(narrow.emission["means"]).mean()
    assert widths(wide.transition).mean() > 1.1 * widths(narrow.transition).mean()
    assert (wide.method, wide.level, wide.n_draws) == ("gibbs", 0.9, 200)


def test_states_keep_their_numbers(overlapping):
    low, high = overlapping.intervals(X, method="gibbs", n_draws=100).emission["means"]
    assert (low < overlapping.emission_.means).all()
    assert (overlapping.emission_.means < high).all()


def test_the_same_seed_gives_the_same_intervals_and_a_level_between_them(overlapping):
    one, two = (overlapping.intervals(X, method="gibbs", n_draws=40, random_state=3) for _ in range(2))
    assert (one.transition == two.transition).all()
    inner = overlapping.intervals(X, method="gibbs", n_draws=40, random_state=3, level=0.5)
    assert (one.transition[0] <= inner.transition[0]).all()
    assert (inner.transition[1] <= one.transition[1]).all()


def test_a_draw_with_other_labels_is_relabelled():
    emission = Poisson.from_parameters([1.0, 9.0, 5.0])
    chain = Chain(np.array([0.2, 0.3, 0.5]), np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]]))
    reference = np.array([0, 0, 1, 1, 2, 2])
    order = np.array([2, 0, 1])
    turned = HMMPoint(chain, emission).take(order)  # state k of the draw is state order[k] of the model
    drawn = np.argsort(order)[reference]
    found = relabelled(turned, drawn, reference)
    assert (found.transition == chain.transition).all()
    assert (found.emission.rates == emission.rates).all()


@pytest.mark.parametrize("inference", [EM(max_iter=2000), Gibbs(n_samples=40, burn_in=20, n_chains=1)], ids=repr)
def test_models_of_other_algorithms_have_intervals_too(inference):
    model = HMM(2, "gaussian", inference=inference, random_state=0, n_jobs=1).fit(X)
    for found in (model.intervals(n_draws=40), model.intervals(X, method="gibbs", n_draws=40)):
        assert (found.transition[0] < found.transition[1]).all()


def test_parts_hierarchies_and_ends_have_intervals_too():
    x = np.column_stack((X, RNG.poisson(2.0 + 5.0 * STATES)))
    emission = Product(a=Poisson(columns=[1]))
    model = HMM(3, emission, HDP(), VI(max_iter=500), random_state=0).fit(x)
    found = model.intervals(x, method="gibbs", n_draws=20)
    assert found.emission["a.rates"].shape == (2, 3, 1)
    ended = HMM(2, "gaussian", Dirichlet(final="learned"), VI(max_iter=2000), random_state=0).fit((X, [240, 240]))
    assert ended.intervals((X, [240, 240]), method="gibbs", n_draws=20).initial.shape == (2, 2)


def test_what_cannot_have_intervals(overlapping):
    given = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical.from_parameters(np.eye(2)))
    with pytest.raises(InputError, match="given, not learned"):
        given.intervals()
    with pytest.raises(InputError, match="needs the data"):
        overlapping.intervals(method="gibbs")
    with pytest.raises(InputError, match="between 0 and 1"):
        overlapping.intervals(level=95)
    with pytest.raises(ValueError, match="bootstrap"):
        overlapping.intervals(method="bootstrap")
