from __future__ import annotations

import emission_laws as laws
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.emissions.base import Conjugate
from subchain.emissions.categorical import Categorical, CategoricalSums, CategoricalTable, DirichletTable
from subchain.errors import InputError

SYMBOLS = np.array([0, 2, 1, 1, 0, 2, 2, 2])


def dirichlet_table() -> DirichletTable:
    return DirichletTable(np.array([[1.5, 3.0], [2.0, 1.2], [4.0, 1.1]]))


def test_every_law_of_families_holds() -> None:
    laws.check_all(dirichlet_table(), SYMBOLS)


def test_every_law_holds_with_missing_symbols() -> None:
    laws.check_all(dirichlet_table(), np.array([0, -1, 1, -1, 2]))


def test_log_likelihood_looks_symbols_up() -> None:
    table = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    logs = Categorical.from_parameters(table).log_likelihood(np.array([1, 2, -1, 0]))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(logs, np.log([[0.1, 0.0, 1.0, 0.9], [0.3, 0.5, 1.0, 0.2]]))


def test_predictive_is_the_dirichlet_multinomial_distribution_of_scipy() -> None:
    prior = dirichlet_table()
    logs = prior.predictive().log_likelihood(np.arange(3))
    for state in range(2):
        expected = stats.dirichlet_multinomial.logpmf(np.eye(3, dtype=int), prior.concentration[:, state], 1)
        np.testing.assert_allclose(logs[state], expected)


def test_a_symbol_that_no_state_emits_is_impossible_and_not_undefined() -> None:
    point = Categorical.from_parameters([[1.0, 0.0], [1.0, 0.0]])
    out = np.empty((2, 2))
    shift = point.scaled(np.array([0, 1]), out)
    np.testing.assert_allclose(out, [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(shift, 0.0)
    np.testing.assert_array_equal(point.log_likelihood(np.array([1])), -np.inf)


def test_rows_that_are_very_small_everywhere_are_scaled() -> None:
    table = CategoricalTable(np.array([[1e-200, 3e-200], [0.5, 0.25], [0.0, 0.0]]))
    laws.scaled_likelihoods_tell_the_same(table, np.array([0, 1, 2, -1, 0]))


def test_floating_codes_are_read_as_codes_and_nan_as_missing() -> None:
    point = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    floating, codes = np.array([[1.0], [np.nan], [0.0]]), np.array([1, -1, 0], dtype=np.int8)
    np.testing.assert_array_equal(point.log_likelihood(floating), point.log_likelihood(codes))
    laws.scaled_likelihoods_tell_the_same(point, floating)
    sums = point.zeros()
    point.accumulate(floating, np.full((2, 3), 0.5), sums)
    np.testing.assert_allclose(sums.counts, 0.5)


def test_sums_count_symbols_by_state_and_pass_over_missing_ones() -> None:
    point = dirichlet_table().mean()
    sums = point.zeros()
    point.accumulate(np.array([0, 2, -1, 2]), np.array([[1.0, 0.25, 1.0, 0.5], [0.0, 0.75, 0.0, 0.5]]), sums)
    np.testing.assert_allclose(sums.counts, [[1.0, 0.0], [0.0, 0.0], [0.75, 1.25]])


def test_divergence_is_the_mean_of_the_log_density_ratio() -> None:
    ours, theirs = dirichlet_table(), DirichletTable(np.full((3, 2), 0.7))
    rng = np.random.default_rng(0)
    ratios = np.zeros(20000)
    for state in range(2):
        draws = rng.dirichlet(ours.concentration[:, state], len(ratios)).T
        density = [stats.dirichlet.logpdf(draws, table.concentration[:, state]) for table in (ours, theirs)]
        ratios += density[0] - density[1]
    laws.assert_mean(ratios, np.array(ours.kl(theirs)))


def test_log_density_is_that_of_scipy_up_to_a_constant() -> None:
    prior, rng = dirichlet_table(), np.random.default_rng(0)
    points = [prior.sample(rng) for _ in range(2)]
    exact = [
        sum(stats.dirichlet.logpdf(point.probabilities[k], prior.concentration[:, k]) for k in range(2))
        for point in points
    ]
    assert prior.log_density(points[0]) - prior.log_density(points[1]) == pytest.approx(exact[0] - exact[1])


def test_draws_of_probabilities_have_the_distributions_mean() -> None:
    prior, rng = dirichlet_table(), np.random.default_rng(0)
    laws.assert_mean(np.array([prior.sample(rng).weights for _ in range(4000)]), prior.mean().weights)


def test_draws_of_symbols_have_the_probabilities_as_frequencies() -> None:
    point, rng = Categorical.from_parameters([[0.7, 0.0, 0.3], [0.0, 0.5, 0.5]]), np.random.default_rng(0)
    symbols = point.sample(np.repeat([0, 1], 4000), rng).reshape(2, 4000)
    frequencies = (symbols[..., None] == np.arange(3)).swapaxes(0, 1)
    laws.assert_mean(frequencies, point.expectation())


def test_weights_of_unseen_symbols_never_round_to_impossible() -> None:
    sparse = DirichletTable(np.array([[1e-5], [50.0]]))
    assert np.isfinite(sparse.expected_log().log_likelihood(np.array([0]))).all()


def test_flat_prior_gives_the_maximum_likelihood_estimate() -> None:
    prior = Categorical(n_categories=4).prior(Sequences(SYMBOLS), 1, flat=True)
    mode = laws.updated(prior, SYMBOLS).mode()
    np.testing.assert_allclose(mode.probabilities, [np.bincount(SYMBOLS, minlength=4) / 8])
    assert prior.log_density(mode) == 0.0


def test_a_state_without_data_under_a_flat_prior_knows_nothing() -> None:
    np.testing.assert_allclose(Categorical().prior(Sequences(SYMBOLS), 2, flat=True).mode().probabilities, 1 / 3)


def test_number_of_categories_comes_from_the_setting_the_vocabulary_or_the_data() -> None:
    vocabulary = Vocabulary(["a", "b", "c", "d", "e"])
    coded = Sequences(SYMBOLS, vocabulary=vocabulary)
    for family, data, expected in [
        (Categorical(), Sequences(SYMBOLS), 3),
        (Categorical(), coded, 5),
        (Categorical(n_categories=7), coded, 7),
        (Categorical(), Sequences(np.array([-1, -1])), 1),
    ]:
        assert family.prior(data, 2, flat=False).mean().n_categories == expected


def test_concentration_may_differ_by_symbol_and_by_state() -> None:
    data = Sequences(SYMBOLS)
    by_symbol = Categorical([1.0, 2.0, 3.0]).prior(data, 2, flat=False)
    np.testing.assert_allclose(by_symbol.concentration, [[1.0] * 2, [2.0] * 2, [3.0] * 2])
    by_state = Categorical(np.arange(1.0, 7.0).reshape(2, 3)).prior(data, 2, flat=False)
    np.testing.assert_allclose(by_state.concentration, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])


@pytest.mark.parametrize(
    ("family", "flat", "message"),
    [
        (Categorical(0.0), False, "concentration must be positive"),
        (Categorical([1.0, 2.0]), False, r"shape \(2,\); expected a number, \(3,\) or \(2, 3\)"),
        (Categorical(n_categories=0), False, "n_categories must be a whole number of at least 1"),
        (Categorical(n_categories=2.5), False, "n_categories must be a whole number"),  # type: ignore[arg-type]
        (Categorical(0.1), True, "concentration is 0.1.*EM"),
    ],
)
def test_unusable_settings_are_named(family: Categorical, flat: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        family.prior(Sequences(SYMBOLS), 2, flat=flat)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([0, 1, -2, 0]), "below −1 at sequence 1, position 1"),
        (np.array([0, 1, 2, 5]), "too large at sequence 1, position 2.*n_categories=6"),
        (np.array([0.0, 1.0, 2.0, 1.0]), "needs integer codes"),
        (np.zeros((4, 2), dtype=int), "needs one column"),
    ],
)
def test_what_is_not_a_code_is_named_and_located(values: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Categorical(n_categories=3).check(Sequences(values, [0, 1, 4]))


def test_tables_whose_rows_are_no_distributions_are_refused() -> None:
    with pytest.raises(InputError, match="row 1 of probabilities sums to 0.9"):
        Categorical.from_parameters([[0.5, 0.5], [0.5, 0.4]])


def test_number_of_free_parameters() -> None:
    assert Categorical.from_parameters(np.full((3, 4), 0.25)).n_free == 9


def test_specification_can_be_cloned() -> None:
    twin = clone(Categorical(0.5, n_categories=9))
    assert twin.get_params() == {"concentration": 0.5, "n_categories": 9, "columns": None, "frozen": False}


def test_the_evidence_of_each_state_is_that_of_all_symbols() -> None:
    rng = np.random.default_rng(0)
    concentration = rng.gamma(0.5, size=(30, 4))
    concentration[3, 1] = 0.0  # a symbol that a state cannot emit
    prior, counts = DirichletTable(concentration), np.zeros((30, 4))
    counts[[2, 7, 9]] = rng.gamma(2.0, size=(3, 4))
    sums = CategoricalSums(counts)
    assert prior.evidence_by_state(sums) == pytest.approx(Conjugate.evidence_by_state(prior, sums), rel=1e-10)
