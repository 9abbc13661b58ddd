from __future__ import annotations

import copy
import pickle
from pathlib import Path

import emission_laws as laws
import numpy as np
import pytest
from sklearn.base import clone

from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.emissions import Bernoulli, Categorical, DiagonalGaussian, Gaussian, Poisson, Product
from subchain.emissions.families import family_of
from subchain.emissions.frozen import Frozen
from subchain.errors import InputError

NAMES = ["paid", "clicks", "page", "views"]
TABLE = np.array(
    [
        [1.0, 3.0, 0.0, 1.0],
        [0.0, 0.0, 2.0, 2.0],
        [1.0, 1.0, 1.0, 0.0],
        [1.0, 7.0, 2.0, 5.0],
        [0.0, 2.0, 0.0, 1.0],
    ]
)


def visits() -> Product:
    return Product(
        counts=Poisson(columns=["views", "clicks"]),
        page=Categorical(1.2, columns="page"),
        paid=Bernoulli(columns="paid"),
    )


def table(values: np.ndarray = TABLE) -> Sequences:
    return Sequences(values, [0, 2, len(values)], columns=NAMES)


def test_every_law_of_families_holds() -> None:
    laws.check_all(visits().set_params(counts__shape=2.0, paid__successes=1.5).prior(table(), 2, flat=False), TABLE)


def test_every_law_holds_with_missing_entries() -> None:
    values = TABLE.copy()
    values[0, 1] = values[2, 2] = values[3, 0] = np.nan
    values[4] = np.nan
    emission = visits().set_params(counts__shape=2.0, paid__successes=1.5)
    laws.check_all(emission.prior(table(values), 2, flat=False), values)


@pytest.mark.parametrize("family", [Gaussian, DiagonalGaussian])
def test_every_law_holds_for_real_numbers_beside_symbols(family: type[Gaussian | DiagonalGaussian]) -> None:
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(1e3, 2.0, 30), rng.integers(0, 3, 30), rng.normal(0.0, 1e-2, 30)])
    values[3, 0] = values[4, 1] = np.nan
    values[5] = np.nan
    emission = Product(place=family(columns=["x", "y"]), mark=Categorical(1.2, columns="mark"))
    data = Sequences(values, columns=["x", "mark", "y"])
    emission.check(data)
    prior = emission.prior(data, 2, flat=False)
    posterior = laws.updated(prior, values)
    laws.posterior_density_is_prior_times_likelihood(prior, values[6:])
    laws.states_can_be_reordered(posterior, values)
    for likelihood in (posterior.mean(), posterior.mode(), posterior.expected_log(), posterior.predictive()):
        laws.scaled_likelihoods_tell_the_same(likelihood, values)
        laws.sums_add_up_over_blocks(likelihood, values)
    draws = posterior.mean().sample(np.zeros(5, dtype=np.int64), rng)
    assert draws.dtype == np.float64
    assert (np.abs(draws[:, 0] - 1e3) < 100.0).all()
    assert np.isin(draws[:, 1], [0.0, 1.0, 2.0]).all()


def test_log_likelihoods_of_the_parts_add() -> None:
    point = visits().prior(table(), 2, flat=False).sample(np.random.default_rng(0))
    expected = (
        point["counts"].log_likelihood(TABLE[:, [3, 1]].astype(int))
        + point["page"].log_likelihood(TABLE[:, 2].astype(int))
        + point["paid"].log_likelihood(TABLE[:, 0].astype(int))
    )
    np.testing.assert_allclose(point.log_likelihood(TABLE), expected)


def test_each_part_learns_from_its_own_columns() -> None:
    mode = laws.updated(visits().prior(table(), 1, flat=True), TABLE).mode()
    np.testing.assert_allclose(mode["counts"].rates, [TABLE[:, [3, 1]].mean(axis=0)])
    np.testing.assert_allclose(mode["paid"].probabilities, [[0.6]])
    np.testing.assert_allclose(mode.parts["page"].probabilities.sum(), 1.0)


def test_a_table_of_integers_is_read_like_one_of_floating_numbers() -> None:
    codes = TABLE.astype(np.int64)
    priors = [visits().prior(table(values), 2, flat=False) for values in (TABLE, codes)]
    laws.assert_same(*priors)
    laws.assert_same(laws.updated(priors[0], TABLE), laws.updated(priors[1], codes))


def test_missing_codes_in_a_floating_table_weigh_nothing() -> None:
    values = TABLE.copy()
    values[:, 2] = np.nan
    emission = visits().set_params(page__n_categories=3)
    emission.check(table(values))
    point = emission.prior(table(values), 2, flat=False).mean()
    others = point["counts"].log_likelihood(TABLE[:, [3, 1]]) + point["paid"].log_likelihood(TABLE[:, 0])
    np.testing.assert_allclose(point.log_likelihood(values), others)


def test_columns_may_be_numbers_and_come_in_any_order() -> None:
    by_number = Product(
        paid=Bernoulli(columns=0), counts=Poisson(columns=[3, 1]), page=Categorical(1.2, columns=[-2])
    ).prior(Sequences(TABLE), 2, flat=False)
    by_name = visits().prior(table(), 2, flat=False)
    np.testing.assert_allclose(by_number.mean().log_likelihood(TABLE), by_name.mean().log_likelihood(TABLE))


def test_a_single_part_takes_all_columns() -> None:
    data = Sequences(TABLE[:, 1])
    alone = Product(count=Poisson()).prior(data, 2, flat=False).mean()
    np.testing.assert_allclose(
        alone.log_likelihood(data.values), Poisson().prior(data, 2, flat=False).mean().log_likelihood(data.values)
    )


def test_columns_that_no_part_names_are_ignored() -> None:
    point = (
        Product(counts=Poisson(columns="clicks"), paid=Bernoulli(columns="paid")).prior(table(), 2, flat=False).mean()
    )
    changed = TABLE.copy()
    changed[:, 2:] = -5.5
    np.testing.assert_array_equal(point.log_likelihood(TABLE), point.log_likelihood(changed))
    draws = point.sample(np.zeros(3, dtype=np.int64), np.random.default_rng(0))
    np.testing.assert_array_equal(draws[:, 2:], -1)


def test_draws_have_every_parts_columns_in_place() -> None:
    point = Product.from_parameters(
        page=Categorical.from_parameters([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
        counts=Poisson.from_parameters([[1000.0, 0.0], [0.0, 1000.0]]),
        columns={"page": 1, "counts": [2, 0]},
    )
    draws = point.sample(np.array([0, 1]), np.random.default_rng(0))
    assert draws.dtype == np.int64
    np.testing.assert_array_equal(draws[:, 1], [2, 1])
    assert (draws[[0, 1], [2, 0]] > 800).all()
    np.testing.assert_array_equal(draws[[0, 1], [0, 2]], 0)


def test_expectation_and_free_parameters_are_those_of_the_parts() -> None:
    point = visits().prior(table(), 2, flat=False).mean()
    assert point.n_free == 4 + 4 + 2
    assert point.expectation().shape == (2, 2 + 3 + 1)
    np.testing.assert_allclose(point.expectation()[:, :2], point["counts"].rates)


def test_features_are_those_of_the_parts_that_have_them_in_one_unit() -> None:
    features = visits().features(table(), np.arange(5))
    assert features is not None
    assert features.shape == (5, 2)
    np.testing.assert_allclose(features.std(axis=0), 1.0)
    assert Product(page=Categorical(columns="page")).features(table(), np.arange(5)) is None


def test_random_start_is_that_of_each_part() -> None:
    emission, rng = visits(), np.random.default_rng(0)
    prior = emission.prior(table(), 2, flat=False)
    sums = emission.random_sums(table(), prior.mean(), np.arange(5), rng)
    assert sums.parts.keys() == prior.parts.keys()
    assert (prior.update(sums).mean().expectation() > 0.0).all()


def test_frozen_parts_stay_where_they_started() -> None:
    emission = visits().set_params(paid__frozen=True)
    prior = emission.prior(table(), 2, flat=False)
    start = prior.sample(np.random.default_rng(0))
    frozen = emission.freeze(prior, start)
    posterior = laws.updated(frozen, TABLE)
    assert isinstance(posterior.parts["paid"], Frozen)
    np.testing.assert_array_equal(posterior.mean()["paid"].probabilities, start["paid"].probabilities)
    assert (posterior.mean()["counts"].rates != start["counts"].rates).all()
    assert posterior.kl(frozen) == pytest.approx(
        sum(posterior.parts[name].kl(prior.parts[name]) for name in ("counts", "page"))
    )
    laws.records_survive_the_round_trip(posterior)


def test_product_is_frozen_if_all_its_parts_are() -> None:
    assert not visits().set_params(paid__frozen=True).frozen
    assert visits().set_params(paid__frozen=True, counts__frozen=True, page__frozen=True).frozen


def test_clones_are_equal_and_independent() -> None:
    emission = visits()
    twin = clone(emission)
    assert twin is not emission
    assert repr(twin) == repr(emission)
    twin.set_params(page__concentration=7.0)
    assert emission.get_params()["page__concentration"] == 1.2
    assert twin.families["page"].concentration == 7.0


def test_settings_of_parts_have_nested_names() -> None:
    emission = visits()
    names = set(emission.get_params())
    assert {"counts", "page", "paid", "counts__shape", "page__concentration", "paid__frozen"} <= names
    assert set(emission.get_params(deep=False)) == {"counts", "page", "paid"}
    emission.set_params(counts__shape=3.0, counts=Poisson(shape=1.0, columns=["clicks"]))
    assert emission.families["counts"].get_params()["shape"] == 3.0


def test_unknown_settings_are_named() -> None:
    with pytest.raises(InputError, match="unknown part 'pages'.*Did you mean 'page'"):
        visits().set_params(pages__concentration=1.0)
    with pytest.raises(InputError, match="unknown setting of Categorical 'rates'"):
        visits().set_params(page__rates=1.0)


@pytest.mark.parametrize(
    ("emission", "message"),
    [
        (Product(), "at least one family"),
        (Product(a=Poisson(), b=Bernoulli(columns="paid")), "part 'a'.*does not say which columns"),
        (Product(a=Poisson(columns="click")), "part 'a'.*unknown column 'click'.*Did you mean 'clicks'"),
        (Product(a=Poisson(columns=4)), "part 'a'.*column 4 does not exist"),
        (
            Product(a=Poisson(columns=["clicks", "paid"]), b=Bernoulli(columns=0)),
            "column 0 is given to part 'a' and to",
        ),
        (Product(a="poisson"), "part 'a' of a Product is 'poisson'"),  # type: ignore[arg-type]
        (Product(a=Product(b=Poisson(columns="clicks"))), "part 'a' of a Product is Product"),
        (Product(a__b=Poisson(columns="clicks")), "two underscores"),
    ],
)
def test_assignments_that_make_no_sense_are_refused(emission: Product, message: str) -> None:
    for action in (emission.check, lambda data: emission.prior(data, 2, flat=False)):
        with pytest.raises(InputError, match=message):
            action(table())


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (3, 1, 0.5, "part 'counts' of the Product: .*0.5 at sequence 1, position 1, column 'clicks'"),
        (1, 0, 2.0, "part 'paid' of the Product: .*2.0 at sequence 0, position 1, column 'paid'"),
        (4, 2, 1.5, "part 'page' of the Product: .*1.5 at sequence 1, position 2, column 'page'"),
        (4, 2, -1.0, "part 'page' of the Product: .*-1.0 at sequence 1, position 2"),
        (0, 2, np.inf, "part 'page' of the Product: .*inf at sequence 0, position 0"),
    ],
)
def test_bad_entries_are_located_by_part_sequence_position_and_column(
    row: int, column: int, value: float, message: str
) -> None:
    values = TABLE.copy()
    values[row, column] = value
    with pytest.raises(InputError, match=message):
        visits().check(table(values))


def test_columns_without_names_are_located_by_their_number_in_the_table() -> None:
    with pytest.raises(InputError, match="column '3'"):
        Product(a=Poisson(columns=3)).check(Sequences(TABLE + 0.5))


def test_new_data_must_have_the_columns_where_the_model_has_them() -> None:
    emission = visits()
    point = emission.prior(table(), 2, flat=False).mean()
    emission.check_against(table(), point)
    emission.check_against(Sequences(TABLE), point)
    with pytest.raises(InputError, match="3 columns, but the model was made for 4"):
        emission.check_against(Sequences(TABLE[:, :3], columns=NAMES[:3]), point)
    with pytest.raises(InputError, match=r"part 'counts'.*columns \['views', 'clicks'\] are not at positions"):
        emission.check_against(Sequences(TABLE[:, [0, 1, 3, 2]], columns=["paid", "clicks", "views", "page"]), point)


def test_new_data_must_have_the_symbols_of_the_model() -> None:
    emission = visits()
    point = emission.prior(table(), 2, flat=False).mean()
    values = TABLE.copy()
    values[1, 2] = 9.0
    with pytest.raises(InputError, match="part 'page' of the Product: .*sequence 0, position 1"):
        emission.check_against(table(values), point)


def test_parameters_know_the_product_they_belong_to() -> None:
    point = visits().prior(table(), 2, flat=False).mean()
    emission = family_of(point)
    assert repr(emission.families["counts"]) == "Poisson(columns=[3, 1])"
    emission.check_against(Sequences(TABLE), point)


def test_gaps_are_filled_by_each_part() -> None:
    point = Product.from_parameters(
        page=Categorical.from_parameters([[0.1, 0.9], [0.8, 0.2]]),
        counts=Poisson.from_parameters([[1.0, 2.0], [3.0, 4.0]]),
        columns={"page": 1, "counts": [2, 0]},
    )
    marginals = np.array([[1.0, 0.5], [0.0, 0.5]])
    gaps = np.array([[7.0, np.nan, np.nan], [np.nan, 0.0, 5.0]])
    expected = np.array([[7.0, 1.0, 1.0], [3.0, 0.0, 5.0]])
    np.testing.assert_allclose(point.fill(gaps, marginals), expected)
    codes = np.where(np.isnan(gaps), -1, gaps).astype(np.int64)
    np.testing.assert_allclose(point.fill(codes, marginals), expected)


def test_symbols_keep_the_vocabulary_of_their_column() -> None:
    vocabulary = Vocabulary(["home", "search", "cart", "help"])
    data = Sequences(TABLE, columns=NAMES, vocabulary=[None, None, vocabulary, None])
    assert visits().prior(data, 2, flat=False).mean()["page"].n_categories == 4


def test_data_on_disk_are_read_like_data_in_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", TABLE)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    visits().check(table(mapped))
    laws.assert_same(visits().prior(table(mapped), 2, flat=False), visits().prior(table(), 2, flat=False))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": 0}, "columns are given for"),
        ({"a": 0, "b": 0}, "column 0 is given to part 'a' and to part 'b'"),
        ({"a": 0, "b": -1}, "part 'b' of the Product has column -1"),
    ],
)
def test_parameters_need_columns_that_make_sense(columns: dict[str, int], message: str) -> None:
    parts = {name: Poisson.from_parameters([1.0, 2.0]) for name in ("a", "b")}
    with pytest.raises(InputError, match=message):
        Product.from_parameters(columns=columns, **parts)


def test_parameters_need_one_number_of_states() -> None:
    a, b = Poisson.from_parameters([1.0, 2.0]), Poisson.from_parameters([1.0])
    with pytest.raises(InputError, match="same number of states.*'a': 2, 'b': 1"):
        Product.from_parameters(a=a, b=b, columns={"a": 0, "b": 1})


def test_unknown_parts_of_parameters_are_named() -> None:
    with pytest.raises(InputError, match="unknown part 'payd'.*Did you mean 'paid'"):
        visits().prior(table(), 2, flat=False).mean()["payd"]


def test_parts_of_parameters_are_attributes() -> None:
    parameters = visits().prior(table(), 2, flat=False).mean()
    for name, part in parameters.parts.items():
        assert getattr(parameters, name) is part
        assert name in dir(parameters)
    for twin in (copy.deepcopy(parameters), pickle.loads(pickle.dumps(parameters))):
        assert twin.parts.keys() == parameters.parts.keys()
    with pytest.raises(AttributeError, match="the Product has no part 'colour'; it has"):
        _ = parameters.colour
