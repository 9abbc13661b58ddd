"""Tables as users have them, drawn from known states: nothing is said but the number of states."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain import Bernoulli, Categorical, Gaussian, Poisson, Product

Fit = Callable[..., Any]
Draw = Callable[..., NDArray[np.int64]]


def write_table(path: str, *columns: Any, header: str | None = None, separator: str = ",") -> Path:
    rows = [separator.join(map(str, row)) for row in zip(*columns, strict=True)]
    Path(path).write_text("\n".join(([] if header is None else [header]) + rows) + "\n")
    return Path(path)


def test_a_table_with_columns_of_several_kinds(fit: Fit, sticky: Draw) -> None:
    rng = np.random.default_rng(1)
    truth = sticky(rng, 1500, 3)
    speed = rng.normal([1.0, 2.5, 4.0], 0.8, (1500, 3))[np.arange(1500), truth].round(3)
    calls = rng.poisson(np.array([2.0, 9.0, 2.0])[truth])
    awake = (rng.random(1500) < np.array([0.1, 0.9, 0.9])[truth]).astype(int)
    place = np.array(["field", "wood", "road"])[(truth + (rng.random(1500) < 0.1)) % 3]
    answer = fit(write_table("animal.csv", speed, calls, awake, place, header="speed,calls,awake,place"), 3)
    assert isinstance(answer.model.family_, Product)
    kinds = {name: type(part) for name, part in answer.model.family_.families.items()}
    assert kinds == {"numbers": Gaussian, "counts": Poisson, "flags": Bernoulli, "place": Categorical}
    assert answer.accuracy(truth) >= 0.99
    assert "Product, one family for each kind of column: speed holds numbers with fractions" in answer.notes


def test_tagged_text_without_names_of_columns(fit: Fit) -> None:
    rng = np.random.default_rng(2)
    words = {"DT": ["the", "a", "this"], "NN": ["dog", "cat", "house", "tree"], "VB": ["sees", "likes", "has"]}
    lines, truth = [], []
    for _ in range(300):
        for tag in ["DT", "NN", "VB", "DT", "NN"][: int(rng.integers(2, 6))]:
            lines.append(f"{rng.choice(words[tag])}\t{tag}")
            truth.append(list(words).index(tag))
        lines.append("")
    Path("corpus.tsv").write_text("\n".join(lines))
    answer = fit("corpus.tsv", 3)
    assert answer.data.n_sequences == 300
    assert answer.data.n_observations == len(truth)
    assert answer.accuracy(np.array(truth)) >= 0.99
    assert "was read as observations" in answer.notes


def test_codes_of_which_one_is_minus_one(fit: Fit, sticky: Draw) -> None:
    rng = np.random.default_rng(3)
    truth = sticky(rng, 400, 2, stay=0.97)
    chances = np.array([[0.6, 0.3, 0.1, 0.0], [0.05, 0.05, 0.3, 0.6]])
    codes = np.array([rng.choice([-1, 0, 1, 2], p=chances[state]) for state in truth])
    answer = fit(write_table("turns.csv", codes, header="turn"), 2)
    assert isinstance(answer.model.family_, Categorical)
    assert answer.model.vocabularies_[0].to_list() == ["-1", "0", "1", "2"]
    order = np.argsort(-answer.model.emission_.probabilities[:, 0])  # −1 is a symbol like the others
    np.testing.assert_allclose(answer.model.emission_.probabilities[order], chances, atol=0.1)
    assert answer.accuracy(truth) >= 0.95


def test_daily_returns_with_two_volatilities(fit: Fit, sticky: Draw) -> None:
    rng = np.random.default_rng(4)
    truth = sticky(rng, 3000, 2, stay=0.99)
    returns = rng.normal(0.0005, np.array([0.006, 0.022])[truth]).round(6)
    days = [date(2001, 1, 1) + timedelta(days=day) for day in range(3000)]
    answer = fit(write_table("index.csv", days, returns, header="date,return"), 2)
    assert isinstance(answer.model.family_, Gaussian)
    assert answer.data.columns == ("return",)
    np.testing.assert_allclose(np.sort(np.sqrt(answer.model.emission_.covariances.ravel())), [0.006, 0.022], rtol=0.05)
    assert answer.accuracy(truth) >= 0.95
    assert "column 'date' holds dates or times and is left out" in answer.notes


def test_spike_counts_of_several_neurons(fit: Fit, sticky: Draw) -> None:
    rng = np.random.default_rng(5)
    truth = sticky(rng, 2000, 3)
    rates = np.array([[0.5, 4.0, 1.0, 2.0], [3.0, 0.5, 1.0, 6.0], [1.0, 1.0, 5.0, 0.3]])
    spikes = rng.poisson(rates[truth])
    answer = fit(write_table("spikes.csv", *spikes.T, header="n1,n2,n3,n4"), 3)
    assert isinstance(answer.model.family_, Poisson)
    order = np.argsort(answer.model.emission_.rates[:, 0])
    np.testing.assert_allclose(answer.model.emission_.rates[order], rates[[0, 2, 1]], atol=0.3)
    assert answer.accuracy(truth) >= 0.97


def test_a_table_from_standard_input(fit: Fit, sticky: Draw) -> None:
    rng = np.random.default_rng(6)
    truth = sticky(rng, 800, 2)
    lines = [f"{row},{value:.3f}" for row, value in enumerate(rng.normal(4.0 * truth, 1.0))]
    answer = fit("-", 2, given="\n".join(["row,level", *lines]).encode())
    assert answer.data.columns == ("level",)
    np.testing.assert_allclose(np.sort(answer.model.emission_.means.ravel()), [0.0, 4.0], atol=0.2)
    assert answer.accuracy(truth) >= 0.97
    assert "column 'row' increases by 1 from row to row" in answer.notes
