"""`frozen=[…]`: some states keep given parameters, whatever the algorithm; the others are learned."""

import numpy as np
import pytest

from subchain import CVI, EM, HDP, HMM, SVI, VI, Categorical, DiagonalGaussian, Gaussian, Gibbs, Poisson, Product
from subchain.errors import InputError
from subchain.inference import SCVI
from subchain.transitions import Dirichlet

ALGORITHMS = [
    EM(max_iter=20), VI(max_iter=20), VI(max_iter=20, cluster="state"), CVI(max_iter=5), SVI(max_updates=40),
    SCVI(max_updates=40), EM(batch=2, max_updates=40), Gibbs(n_samples=20, burn_in=20, n_chains=1),
    Gibbs("sequence", "sampled", n_samples=20, burn_in=20, n_chains=1),
]  # fmt: skip


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    means = np.repeat([0.0, 5.0, 10.0], 40)
    return [rng.normal(means, 1.0) for _ in range(3)]


def start(means=(0.0, 4.0, 11.0)):
    emission = Gaussian.from_parameters(np.array(means)[:, None], np.ones((3, 1, 1)))
    stay = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    return HMM.from_parameters([0.4, 0.3, 0.3], stay, emission)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("inference", ALGORITHMS, ids=repr)
def test_a_frozen_state_keeps_its_parameters_and_the_others_learn(inference, x, tmp_path):
    model = HMM(3, Gaussian(frozen=[1]), inference=inference, init=start(), random_state=0, n_jobs=1).fit(x)
    assert model.emission_.means[1] == 4.0
    assert model.emission_.covariances[1] == 1.0
    assert np.allclose(model.emission_.means[[0, 2], 0], [0.0, 10.0], atol=1.5)
    assert (model.emission_.means[[0, 2], 0] != [0.0, 11.0]).all()
    model.save(tmp_path / "model.hmm")
    assert np.isclose(HMM.load(tmp_path / "model.hmm").score(x), model.score(x))


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("inference", ALGORITHMS, ids=repr)
def test_transitions_out_of_a_frozen_state_are_kept(inference, x):
    model = HMM(3, "gaussian", Dirichlet(frozen=[0]), inference, init=start(), random_state=0, n_jobs=1).fit(x)
    assert np.allclose(model.transition_[0], [0.8, 0.1, 0.1])
    assert not np.allclose(model.transition_[1], [0.1, 0.8, 0.1])


@pytest.mark.parametrize("algorithm", [EM, VI])
def test_the_objective_never_falls(algorithm, x):
    model = HMM(3, Gaussian(frozen=[1]), Dirichlet(frozen=[2]), algorithm(), init=start()).fit(x)
    assert np.diff(model.trace_.objective).min() >= -1e-8


def test_all_states_in_a_list_are_as_good_as_true(x):
    listed, true = (HMM(3, Gaussian(frozen=f), inference=EM(), init=start()).fit(x) for f in ([0, 1, 2], True))
    assert listed.score(x) == true.score(x)


def test_frozen_states_do_not_count_as_parameters(x):
    free, one = (HMM(3, Gaussian(frozen=f), inference=EM(), init=start()).fit(x) for f in (False, [1]))
    assert free.n_parameters_ - one.n_parameters_ == 2


@pytest.mark.parametrize(
    ("family", "parameters", "values"),
    [
        (Categorical, Categorical.from_parameters([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]), [0, 1, 2]),
        (Poisson, Poisson.from_parameters([1.0, 9.0]), [0, 4, 12]),
        (DiagonalGaussian, DiagonalGaussian.from_parameters([[0.0], [3.0]], [[1.0], [1.0]]), [0.0, 1.5, 3.0]),
    ],
)
def test_every_family_can_freeze_a_state(family, parameters, values):
    x = np.random.default_rng(0).choice(values, size=60)
    given = HMM.from_parameters([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], parameters)
    model = HMM(2, family(frozen=[0]), inference=VI(), init=given).fit(x)
    assert np.allclose(model.emission_.expectation()[0], parameters.expectation()[0])
    assert not np.allclose(model.emission_.expectation()[1], parameters.expectation()[1])


def test_a_part_of_a_product_can_freeze_a_state():
    rng = np.random.default_rng(0)
    x = np.column_stack((rng.normal(size=80), rng.poisson(3.0, size=80)))
    a, b = Gaussian.from_parameters([[0.0], [1.0]], np.ones((2, 1, 1))), Poisson.from_parameters([2.0, 5.0])
    parts = Product.from_parameters(a=a, b=b, columns={"a": 0, "b": 1})
    given = HMM.from_parameters([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], parts)
    emission = Product(a=Gaussian(columns=[0], frozen=[1]), b=Poisson(columns=[1]))
    model = HMM(2, emission, inference=VI(max_iter=500), init=given).fit(x)
    assert model.emission_["a"].means[1] == 1.0
    assert model.emission_["b"].rates[1] != 5.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emission": Gaussian(frozen=True)}, "init='auto' gives none"),
        ({"transition": Dirichlet(frozen=True)}, "init='auto' gives none"),
        ({"emission": Gaussian(frozen=[0])}, "HMM.from_parameters"),
        ({"emission": Gaussian(frozen=[3]), "init": start()}, "names state 3"),
        ({"emission": Gaussian(frozen="means"), "init": start()}, "True, False or a list of states"),
        ({"transition": Dirichlet(frozen=[0.5]), "init": start()}, "True, False or a list of states"),
        ({"transition": HDP(frozen=[1]), "init": start()}, "must be True or False"),
        ({"emission": Gaussian(frozen=[1]), "transition": HDP(), "init": start()}, "merges=False"),
    ],
)
def test_what_cannot_be_frozen(settings, message, x):
    with pytest.raises(InputError, match=message):
        HMM(n_states=3, **settings).fit(x)
