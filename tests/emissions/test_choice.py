"""The family that data of each kind get, and the sentence that says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM, VI, Bernoulli, Categorical, Gaussian, Poisson, Product, read
from subchain.data import as_sequences
from subchain.emissions import choose_emission
from subchain.emissions.choice import n_missing_entries
from subchain.errors import InputError
from subchain.selection import select_states

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("x", "family", "reason"),
    [
        (RNG.normal(size=300), "Gaussian()", "numbers with fractions"),
        (RNG.normal(size=(300, 10)), "Gaussian()", "all 10 columns are numbers with fractions"),
        (RNG.normal(size=(300, 13)), "DiagonalGaussian()", "more columns than a full covariance suits"),
        (RNG.poisson(20.0, 300), "Poisson()", "small whole numbers from"),
        (RNG.poisson([0.3, 4.0], (300, 2)), "Poisson()", "counts"),
        (RNG.normal(900.0, 40.0, 3000).astype(int), "Gaussian()", "large whole numbers"),
        (RNG.integers(0, 2, 300), "Bernoulli()", "zeros and ones"),
        (RNG.random((300, 3)) < 0.2, "Bernoulli()", "all 3 columns are zeros and ones"),
        (RNG.integers(0, 6, 300), "Categorical()", "from 0 to 5 whose frequencies are not those of counts"),
        (RNG.integers(1, 256, 9000).astype(np.uint8), "Categorical()", "from 1 to 255"),
        (["sun", "rain", "sun"], "Categorical()", "strings"),
        (RNG.normal(7.0, 1.0, 500).round().astype(int), "Gaussian()", "vary less than counts"),
        (RNG.integers(-50, 50, 500), "Gaussian()", "whole numbers from -50 to 49"),
        (np.repeat([0.0, 5.0], 50), "Gaussian()", "floating-point numbers"),
    ],
)
def test_one_kind_of_column_gets_one_family(x: Any, family: str, reason: str) -> None:
    choice = choose_emission(as_sequences(x))
    assert repr(choice.emission) == family
    assert reason in choice.reason


@pytest.mark.parametrize("seed", range(20))
def test_counts_of_any_rates_are_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.gamma(1.0, 6.0, size=rng.integers(1, 5)) + 0.3
    states = np.repeat(rng.integers(len(rates), size=40), rng.integers(3, 80))
    assert isinstance(choose_emission(as_sequences(rng.poisson(rates[states]))).emission, Poisson)


@pytest.mark.parametrize("seed", range(20))
def test_codes_of_any_frequencies_are_codes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    codes = rng.choice(n, p=rng.dirichlet(np.full(n, 3.0)), size=2000)
    assert isinstance(choose_emission(as_sequences(codes)).emission, Categorical)


def test_missing_entries_change_nothing() -> None:
    counts = RNG.poisson(6.0, 400)
    for x in (np.where(np.arange(400) % 9, counts, -1), np.where(np.arange(400) % 9, counts, np.nan)):
        choice = choose_emission(as_sequences(x))
        assert isinstance(choice.emission, Poisson)
        assert n_missing_entries(choice.emission, as_sequences(x)) == 45


def test_minus_one_among_measurements_is_a_number_and_that_is_said() -> None:
    x = as_sequences(np.array([-1, *RNG.normal(300.0, 20.0, 200).astype(int)]))
    choice = choose_emission(x)
    assert "and -1, which is a number to a Gaussian" in choice.reason
    assert n_missing_entries(choice.emission, x) == 0


def test_columns_of_several_kinds_get_a_product() -> None:
    columns = [RNG.normal(size=200), RNG.poisson(7.0, 200), RNG.integers(0, 2, 200), RNG.integers(0, 5, 200)]
    choice = choose_emission(as_sequences(np.column_stack(columns)))
    assert isinstance(choice.emission, Product)
    kinds = {name: (type(part), part.columns) for name, part in choice.emission.families.items()}
    assert kinds == {
        "numbers": (Gaussian, [0]), "counts": (Poisson, [1]), "flags": (Bernoulli, [2]), "symbols_3": (Categorical, 3)
    }  # fmt: skip


def test_the_model_says_what_was_chosen_and_keeps_it(tmp_path: Path) -> None:
    x = RNG.poisson(np.repeat([3.0, 12.0], 100))
    model = HMM(2, random_state=0).fit(x)
    assert isinstance(model.family_, Poisson)
    assert model.family_reason_.startswith("Poisson, because the data are small whole numbers from 0 to")
    assert HMM(2, "poisson", random_state=0).fit(x).family_reason_ == ""
    model.save(tmp_path / "model")
    loaded = HMM.load(tmp_path / "model")
    assert loaded.score(x) == model.score(x)
    again = HMM(2, init=model, random_state=0).fit(x[50:150])
    assert isinstance(again.family_, Poisson)


def test_negative_codes_of_a_table_are_symbols_in_all_that_follows(tmp_path: Path) -> None:
    codes = np.repeat([-1, 2, -1, 2], 25) + (np.arange(100) % 5 == 0)
    table = tmp_path / "turns.csv"
    table.write_text("turn\n" + "\n".join(map(str, codes)) + "\n")
    model = HMM(2, "categorical", random_state=0).fit(read(table))
    assert model.vocabularies_[0] is not None
    assert model.vocabularies_[0].to_list() == ["-1", "0", "2", "3"]
    by_file = model.predict(read(table))
    np.testing.assert_array_equal(model.predict(codes), by_file)
    np.testing.assert_array_equal(model.predict(table), by_file)
    short = tmp_path / "short.csv"
    short.write_text("turn\n2\n3\n2\n0\n")  # without −1 the column is of integers
    assert model.score(read(short)) == model.score(np.array([2, 3, 2, 0]))
    assert model.impute([-1.0, np.nan, -1.0]).tolist() == [-1, -1, -1]
    chosen = select_states(read(table), [1, 2, 3], criterion="bic", random_state=0)
    assert chosen.best_.vocabularies_ == model.vocabularies_


def test_a_family_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError, match="unknown emission 'aut'.*Did you mean 'auto'"):
        HMM(2, "aut").fit(RNG.normal(size=30))


@pytest.mark.parametrize("search", [False, True])
def test_data_without_states_are_noticed(search: bool) -> None:
    with pytest.warns(UserWarning, match=r"one state explains the data as well: no difference .* with Poisson\(\)"):
        HMM(2, inference=VI(search=search), random_state=0).fit(np.random.default_rng(0).poisson(5.0, 500))
