"""Models in notebooks: small tables in which nothing runs."""

from __future__ import annotations

import numpy as np
import pytest
from examples import FAMILIES, example

from subchain import HDP, HMM, VI, Sequences, Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore")


def test_an_unfitted_model_shows_its_settings() -> None:
    shown = HMM(7, "poisson", transition=HDP())._repr_html_()
    assert "not fitted" in shown
    assert "<td>n_states</td><td>7</td>" in shown


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_fitted_model_shows_its_states(family) -> None:
    specification, data = example(family)
    shown = HMM(3, specification, inference=VI(max_iter=3, tolerance=0.0), random_state=0).fit(data)._repr_html_()
    assert shown.count("<tr>") == 4
    assert "max_iter after 3 iterations" in shown


def test_names_cannot_run() -> None:
    evil = "<script>alert(1)</script>"
    data = Sequences(np.array([0, 1] * 20), vocabulary=Vocabulary([evil, "b"]))
    model = HMM(2, "categorical", random_state=0).fit(data)
    model.state_names_ = [evil, "<b>"]
    shown = model._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "<script" not in HMM(2, evil)._repr_html_()
