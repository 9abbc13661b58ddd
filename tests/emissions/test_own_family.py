"""The family that the page on writing one's own shows works as shown."""

from __future__ import annotations

import dataclasses
from typing import Any

import emission_laws as laws
import numpy as np
import own_family
import pytest
from scipy import integrate, stats
from sklearn.base import clone

from subchain import HMM
from subchain.data.sequences import Sequences
from subchain.errors import InputError

TIMES = np.array([0.5, 3.0, 0.1, 12.0, 1.0, 1.0])


@pytest.fixture(scope="module")
def page() -> Any:
    """The page's family as a module."""
    return own_family


def gamma_rate(page: Any) -> Any:
    return page.GammaRate(np.array([1.5, 3.0]), np.array([1.0, 8.0]))


def test_every_law_of_families_holds(page: Any) -> None:
    laws.check_all(gamma_rate(page), TIMES)


def test_every_law_holds_with_missing_times(page: Any) -> None:
    laws.check_all(gamma_rate(page), np.where(TIMES == 1.0, np.nan, TIMES)[:, None])


def test_log_likelihood_is_that_of_scipy(page: Any) -> None:
    rates = np.array([0.1, 5.0])
    expected = stats.expon.logpdf(TIMES, scale=1.0 / rates[:, None])
    np.testing.assert_allclose(page.ExponentialParameters(rates).log_likelihood(TIMES), expected)


def test_predictive_is_that_of_scipy(page: Any) -> None:
    prior = gamma_rate(page)
    expected = stats.lomax.logpdf(TIMES, prior.shape[:, None], scale=prior.rate[:, None])
    np.testing.assert_allclose(prior.predictive().log_likelihood(TIMES), expected)


def test_divergence_is_the_integral_of_the_density_ratio(page: Any) -> None:
    p, q = stats.gamma(1.5, scale=1.0), stats.gamma(3.0, scale=1.0 / 8.0)
    expected = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0, p.isf(1e-14))[0]
    ours = page.GammaRate(np.array([1.5]), np.array([1.0]))
    assert ours.kl(page.GammaRate(np.array([3.0]), np.array([8.0]))) == pytest.approx(expected, rel=1e-6)


def test_flat_prior_gives_the_maximum_likelihood_estimate(page: Any) -> None:
    prior = page.Exponential().prior(Sequences(TIMES), 1, flat=True)
    np.testing.assert_allclose(laws.updated(prior, TIMES).mode().rates, 1.0 / TIMES.mean())
    assert prior.mode().not_finite() is None


def test_prior_expects_the_mean_of_the_data(page: Any) -> None:
    prior = page.Exponential().prior(Sequences(TIMES), 2, flat=False)
    np.testing.assert_allclose(prior.mean().expectation(), TIMES.mean())


def test_times_that_cannot_be_are_refused(page: Any) -> None:
    page.Exponential().check(Sequences(np.append(TIMES, np.nan)))
    with pytest.raises(InputError, match="times > 0"):
        page.Exponential().check(Sequences(np.array([2.0, -1.0])))


def test_features_have_no_gaps(page: Any) -> None:
    features = page.Exponential().features(Sequences(np.array([1.0, np.nan, 3.0])), np.array([0, 1, 2]))
    np.testing.assert_allclose(features, np.log([[1.0], [2.0], [3.0]]))


def test_draws_have_the_expectation_as_mean(page: Any) -> None:
    point, rng = page.ExponentialParameters(np.array([0.1, 5.0])), np.random.default_rng(0)
    times = point.sample(np.repeat([0, 1], 4000), rng).reshape(2, 4000, 1)
    laws.assert_mean(times.swapaxes(0, 1), point.expectation())


def test_the_model_of_the_page_finds_both_expected_times(page: Any, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(own_family.code_blocks()[1], str(own_family.PAGE), "exec"), page.__dict__)
    short, long = (float(number) for number in capsys.readouterr().out.strip("[]\n ").split())
    assert short == pytest.approx(1.0, rel=0.3)
    assert long == pytest.approx(20.0, rel=0.3)


def test_specification_can_be_cloned(page: Any) -> None:
    assert clone(page.Exponential(shape=2.0)).shape == 2.0


def test_the_page_keeps_its_promise_of_a_short_file() -> None:
    lines = [line for line in own_family.code_blocks()[0].splitlines() if line.strip()]
    assert len(lines) < 110


def test_an_array_that_all_states_share_must_be_declared(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a model could be fitted and saved, but its file could not be read."""

    @dataclasses.dataclass
    class Scaled(page.GammaRate):
        unit: Any = dataclasses.field(default_factory=lambda: np.ones(1))

    prior = page.Exponential.prior
    monkeypatch.setattr(
        page.Exponential, "prior", lambda *given, flat: Scaled(*vars(prior(*given, flat=flat)).values())
    )
    with pytest.raises(InputError, match=r"Scaled of the emissions: unit has shape \(1,\).*states_on\(\)"):
        HMM(2, page.Exponential()).fit(TIMES)
