"""Choices that users need not make: the kind of Gibbs sampler, when stochastic runs search, who can learn a family."""

import numpy as np
import pytest

from subchain import EM, HDP, HMM, SVI, VI, Categorical, Gaussian, Gibbs, Poisson, Product
from subchain.datasets import gaussian_chain
from subchain.errors import InputError


@pytest.mark.parametrize(
    ("emission", "settings", "expected"),
    [
        (Gaussian(), {}, ("sequence", "sampled")),
        (Poisson(), {}, ("sequence", "sampled")),
        (Product(a=Gaussian(columns=[0]), b=Categorical(columns=1)), {}, ("sequence", "sampled")),
        (Categorical(), {}, ("state", "collapsed")),
        (Gaussian(), {"block": "state"}, ("state", "collapsed")),
        (Gaussian(), {"block": "sequence"}, ("sequence", "collapsed")),
        (Categorical(), {"parameters": "sampled"}, ("sequence", "sampled")),
        (Gaussian(), {"parameters": "collapsed"}, ("state", "collapsed")),
    ],
)
def test_gibbs_chooses_its_kind_by_the_family(emission, settings, expected):
    chosen = Gibbs(n_samples=7, **settings).suited_to(emission)
    assert (chosen.block, chosen.parameters, chosen.n_samples) == (*expected, 7)


def test_gibbs_of_numbers_is_that_with_drawn_parameters():
    x = np.random.default_rng(0).normal(size=60)
    draws = {"n_samples": 10, "burn_in": 5, "n_chains": 1}
    default, named = (
        HMM(2, "gaussian", inference=sampler, random_state=0, n_jobs=1).fit(x)
        for sampler in (Gibbs(**draws), Gibbs("sequence", "sampled", **draws))
    )
    assert (default.samples_["log_joint"] == named.samples_["log_joint"]).all()


def test_reports_do_not_decide_whether_states_are_merged():
    """A short run reports once, and used to keep all of its 15 states."""
    x = gaussian_chain(20_000, n_states=4, stickiness=0.9, random_state=1).observations
    often, once = (
        HMM(15, "gaussian", HDP(), SVI(max_updates=100, report_every=every), random_state=0, n_jobs=1).fit(x)
        for every in (10, 100)
    )
    assert often.score(x) == once.score(x)
    assert once.effective_states() == 4
    assert len(once.trace_) == 1
    assert any("merged" in event.message or "part of its work" in event.message for event in once.trace_.events)


@pytest.mark.parametrize("inference", [VI(), SVI(), Gibbs()], ids=repr)
def test_a_family_without_a_posterior_is_for_em_only(inference, monkeypatch):
    monkeypatch.setattr(Gaussian, "em_only", True)
    x = np.random.default_rng(0).normal(size=60)
    for emission in (Gaussian(), Product(a=Gaussian(columns=[0]))):
        with pytest.raises(InputError, match=r"by EM only.*Use inference='em'"):
            HMM(2, emission, inference=inference).fit(x[:, None])
    assert HMM(2, Gaussian(), inference=EM(max_iter=500), random_state=0).fit(x).status_ == "converged"
