from __future__ import annotations

import emission_laws as laws
import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone

from subchain.data.sequences import Sequences
from subchain.emissions.bernoulli import Bernoulli, BetaTable
from subchain.errors import InputError

BITS = np.array([[0, 1], [1, 1], [1, 0], [0, 0], [1, 1], [1, 0]])


def beta_table() -> BetaTable:
    return BetaTable(np.array([[1.5, 3.0], [2.0, 1.2]]), np.array([[1.0, 2.5], [4.0, 2.0]]))


def test_every_law_of_families_holds() -> None:
    laws.check_all(beta_table(), BITS)


def test_every_law_holds_with_missing_entries() -> None:
    values = BITS.copy()
    values[0, 1] = values[2, 0] = -1
    values[4] = -1
    laws.check_all(beta_table(), values)


def test_every_law_holds_for_one_column() -> None:
    laws.check_all(BetaTable(np.array([[1.5], [2.0]]), np.array([[1.0], [4.0]])), np.tile([0.0, 1.0, np.nan, 1.0], 5))


def test_log_likelihood_is_that_of_scipy() -> None:
    chances = np.array([[0.5, 0.25], [0.999, 1e-12]])
    expected = stats.bernoulli.logpmf(BITS[None], chances[:, None]).sum(axis=2)
    np.testing.assert_allclose(Bernoulli.from_parameters(chances).log_likelihood(BITS), expected)


def test_predictive_is_the_beta_binomial_distribution_of_scipy() -> None:
    prior = beta_table()
    expected = stats.betabinom.logpmf(BITS[None], 1, prior.successes[:, None], prior.failures[:, None])
    np.testing.assert_allclose(prior.predictive().log_likelihood(BITS), expected.sum(axis=2))


def test_probabilities_of_zero_and_one_bar_the_other_value_and_nothing_else() -> None:
    point = Bernoulli.from_parameters([[0.0, 0.25], [1.0, 0.25], [0.0, 1.0]])
    logs = point.log_likelihood(np.array([[0, 1], [1, 1], [-1, 1], [-1, -1], [0, -1]]))
    quarter, never = np.log(0.25), -np.inf
    expected = [[quarter, never, quarter, 0, 0], [never, quarter, quarter, 0, never], [0, never, 0, 0, 0]]
    np.testing.assert_allclose(logs, expected)


def test_missing_entries_drop_out_alone() -> None:
    point = Bernoulli.from_parameters([[0.5, 0.2], [0.9, 0.1]])
    logs = point.log_likelihood(np.array([[1, np.nan], [np.nan, 0], [np.nan, np.nan]]))
    np.testing.assert_allclose(logs, [[np.log(0.5), np.log(0.8), 0.0], [np.log(0.9), np.log(0.9), 0.0]])
    sums = point.zeros()
    point.accumulate(np.array([[1, -1], [-1, 0], [-1, -1], [0, 1]]), np.full((2, 4), 0.5), sums)
    np.testing.assert_allclose(sums.weight, 1.0)
    np.testing.assert_allclose(sums.total, 0.5)


def test_all_kinds_of_numbers_are_read_alike() -> None:
    point = Bernoulli.from_parameters([[0.5, 0.2], [0.9, 0.1]])
    expected = point.log_likelihood(BITS)
    for kind in (np.bool_, np.uint8, np.int8, np.float32):
        np.testing.assert_allclose(point.log_likelihood(BITS.astype(kind)), expected)
        Bernoulli().check(Sequences(BITS.astype(kind)))
        column = Sequences(BITS[:, 0].repeat(8).astype(kind)).values
        laws.scaled_likelihoods_tell_the_same(Bernoulli.from_parameters([0.5, 1.0]), column)


def test_divergence_is_the_integral_of_the_density_ratio() -> None:
    ours, theirs = beta_table(), BetaTable(np.full((2, 2), 1.3), np.full((2, 2), 0.8))

    def divergence(a: float, b: float, a0: float, b0: float) -> float:
        p, q = stats.beta(a, b), stats.beta(a0, b0)
        return float(integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0, 1)[0])

    tables = (ours.successes, ours.failures, theirs.successes, theirs.failures)
    parts = zip(*(table.ravel() for table in tables), strict=True)
    assert ours.kl(theirs) == pytest.approx(sum(divergence(*part) for part in parts), rel=1e-6)


def test_log_density_is_that_of_scipy_up_to_a_constant() -> None:
    prior, rng = beta_table(), np.random.default_rng(0)
    points = [prior.sample(rng) for _ in range(2)]
    exact = [stats.beta.logpdf(p.probabilities, prior.successes, prior.failures).sum() for p in points]
    assert prior.log_density(points[0]) - prior.log_density(points[1]) == pytest.approx(exact[0] - exact[1])


def test_draws_of_probabilities_have_the_distributions_mean() -> None:
    prior, rng = beta_table(), np.random.default_rng(0)
    laws.assert_mean(np.array([prior.sample(rng).probabilities for _ in range(4000)]), prior.mean().probabilities)


def test_draws_of_probabilities_never_bar_a_value() -> None:
    extreme = BetaTable(np.full((1, 200), 1e-4), np.full((1, 200), 1e-4))
    point = extreme.sample(np.random.default_rng(0))
    assert np.isfinite(point.log_likelihood(np.array([np.zeros(200), np.ones(200)]))).all()


def test_draws_of_bits_have_the_probabilities_as_mean() -> None:
    point, rng = Bernoulli.from_parameters([[0.5, 0.2], [1.0, 0.0]]), np.random.default_rng(0)
    bits = point.sample(np.repeat([0, 1], 4000), rng)
    laws.assert_mean(bits.reshape(2, 4000, 2).swapaxes(0, 1), point.expectation())
    assert set(np.unique(bits)) == {0, 1}


def test_flat_prior_gives_the_maximum_likelihood_estimate() -> None:
    values = np.column_stack([BITS, np.zeros(6, dtype=int), np.ones(6, dtype=int)])
    prior = Bernoulli().prior(Sequences(values), 1, flat=True)
    mode = laws.updated(prior, values).mode()
    np.testing.assert_allclose(mode.probabilities, [values.mean(axis=0)])
    assert np.isfinite(mode.log_likelihood(values)).all()
    assert prior.log_density(mode) == 0.0


def test_a_state_without_data_under_a_flat_prior_knows_nothing() -> None:
    np.testing.assert_allclose(Bernoulli().prior(Sequences(BITS), 2, flat=True).mode().probabilities, 0.5)


def test_default_prior_is_jeffreys() -> None:
    prior = Bernoulli().prior(Sequences(BITS), 3, flat=False)
    np.testing.assert_array_equal(prior.successes, np.full((3, 2), 0.5))
    np.testing.assert_array_equal(prior.failures, np.full((3, 2), 0.5))


def test_given_hyperparameters_are_kept() -> None:
    prior = Bernoulli(successes=[1.0, 2.0], failures=5.0).prior(Sequences(BITS), 2, flat=True)
    np.testing.assert_allclose(prior.successes, [[1.0, 2.0]] * 2)
    np.testing.assert_allclose(prior.failures, 5.0)


def test_maximum_likelihood_refuses_a_prior_without_a_mode() -> None:
    with pytest.raises(InputError, match="failures is 0.5.*EM"):
        Bernoulli(failures=0.5).prior(Sequences(BITS), 2, flat=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[0, 1], [1, 0], [1, 2]]), "hold 2 at sequence 1, position 1, column 1; expected 0 or 1"),
        (np.array([[0, 1], [0.5, 0], [1, 1]]), "hold 0.5 at sequence 1, position 0, column 0"),
        (np.array([[-1.0, 1], [1, 0], [1, 1]]), "hold -1.0 at sequence 0, position 0, column 0"),
        (np.array([[-3, 1], [1, 0], [1, 1]]), "hold -3 at sequence 0, position 0, column 0"),
    ],
)
def test_what_is_neither_zero_nor_one_is_named_and_located(values: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Bernoulli().check(Sequences(values, [0, 1, 3]))


def test_missing_bits_pass_the_check() -> None:
    Bernoulli().check(Sequences(np.array([1, -1, 0], dtype=np.int8)))
    Bernoulli().check(Sequences(np.array([1.0, np.nan])))


def test_features_have_no_gaps() -> None:
    features = Bernoulli().features(Sequences(np.array([[1, 0], [-1, 1], [0, 1], [1, 1]])), np.array([0, 1, 2]))
    assert features is not None
    np.testing.assert_allclose(features, [[1.0, 0.0], [0.5, 1.0], [0.0, 1.0]])


def test_one_column_has_no_features_as_its_clusters_would_be_certain() -> None:
    assert Bernoulli().features(Sequences(BITS[:, 0]), np.arange(6)) is None


@pytest.mark.parametrize("chances", [[[0.5, 1.5]], [[-0.1]], [[np.nan]], 0.5])
def test_probabilities_that_cannot_be_are_refused(chances: object) -> None:
    with pytest.raises(InputError, match="probabilities"):
        Bernoulli.from_parameters(chances)  # type: ignore[arg-type]


def test_marginals_are_the_distributions_of_the_columns() -> None:
    point = Bernoulli.from_parameters([[0.5, 0.25], [0.9, 0.0]])
    np.testing.assert_allclose(point.marginals().mean(), point.probabilities)


def test_number_of_free_parameters() -> None:
    assert Bernoulli.from_parameters(np.full((3, 4), 0.5)).n_free == 12


def test_specification_can_be_cloned() -> None:
    twin = clone(Bernoulli(successes=2.0, frozen=True))
    assert twin.get_params() == {"successes": 2.0, "failures": None, "columns": None, "frozen": True}
