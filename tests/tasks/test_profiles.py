"""What states emit, as people read it."""

from __future__ import annotations

import numpy as np
import pytest
from examples import FAMILIES, example
from small_models import emission

from subchain import HMM, VI, Categorical, Sequences, Vocabulary
from subchain.emissions import family_of
from subchain.tasks.profiles import Numbers, Symbols, in_words, profile, shown


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.filterwarnings("ignore")
def test_columns_stand_where_expectations_say(family) -> None:
    specification, data = example(family)
    model = HMM(3, specification, inference=VI(max_iter=3), random_state=0).fit(data)
    expected = model.emission_.expectation()
    parts = profile(model.emission_, model.family_, model.vocabularies_, model.columns_)
    assert parts[0].place.start == 0
    assert parts[-1].place.stop == expected.shape[1]
    for part in parts:
        found = part.chances if isinstance(part, Symbols) else part.means[:, None]
        np.testing.assert_array_equal(found, expected[:, part.place])
        assert all(in_words(part, state) for state in range(3))


def test_spreads_are_standard_deviations() -> None:
    given = emission("gaussian")
    parts = profile(given, family_of(given))
    spreads = np.column_stack([part.spreads for part in parts if isinstance(part, Numbers)])
    np.testing.assert_allclose(spreads**2, np.diagonal(given.covariances, axis1=1, axis2=2))


def test_parts_of_a_product_know_their_columns() -> None:
    given = emission("product")
    words = [None, Vocabulary(list("wxyz")), None]
    parts = profile(given, family_of(given), words, ["left", "word", "right"])
    assert [(part.name, part.column) for part in parts] == [("left", 0), ("right", 2), ("word", 1)]
    assert list(parts[2].labels) == list("wxyz")


@pytest.mark.filterwarnings("ignore")
def test_a_family_that_chose_a_column_speaks_of_that_column() -> None:
    data = Sequences(np.array([[5, 0], [6, 1]] * 20), columns=["count", "word"], vocabulary=[None, Vocabulary("ab")])
    model = HMM(2, Categorical(columns="word"), inference=VI(max_iter=2), random_state=0).fit(data)
    (part,) = profile(model.emission_, model.family_, model.vocabularies_, model.columns_)
    assert (part.name, part.column, list(part.labels)) == ("word", 1, ["a", "b"])


def test_top_symbols_are_the_most_probable_ones_in_order() -> None:
    chances = np.random.default_rng(0).dirichlet(np.ones(50), 4)
    part = Symbols("w", 0, slice(0, 50), [str(i) for i in range(50)], chances)
    for state in range(4):
        np.testing.assert_array_equal(part.top(state, 8), np.argsort(-chances[state])[:8])
    assert len(part.top(0, 99)) == 50


def test_blanks_are_made_visible_and_long_symbols_cut() -> None:
    assert [shown(symbol) for symbol in (" ", "\n", "", "a\tb")] == ["␣", "↵", "∅", "a⇥b"]
    assert len(shown("x" * 500)) <= 24
