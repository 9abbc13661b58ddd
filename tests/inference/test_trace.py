"""When an objective says that a run has arrived."""

from __future__ import annotations

import pytest

from subchain import CVI, HMM, Categorical, Dirichlet
from subchain.datasets import load_alice
from subchain.inference.run.trace import Trace


def trace(*objectives: float) -> Trace:
    return Trace(objective=list(objectives))


@pytest.mark.parametrize(
    ("objectives", "settled"),
    [
        ([-100.0, -100.0 + 1e-5], False),  # nothing to compare the change with
        ([-100.0, -99.0, -99.0 + 1e-5], True),
        ([-100.0, -100.0 + 1e-6, -100.0 + 3e-6], False),  # leaves a plateau
        ([-100.0, -100.0 + 3e-6, -100.0 + 4e-6], True),
        ([-100.0, -99.0, -98.0], False),
        ([-100.0, -100.0, -100.0 - 1e-14], True),  # rounding
        ([-100.0, float("nan"), -99.0, float("nan"), -99.0], True),  # measured now and then
    ],
)
def test_small_changes_mean_that_a_run_has_settled_unless_they_grow(objectives: list[float], settled: bool) -> None:
    assert trace(*objectives).has_settled(1e-6) == settled
    *before, last = objectives
    assert (trace(*before).settled_at(1e-6, last) is not None) == settled


def test_a_run_that_settles_has_shown_how_high_it_comes() -> None:
    assert trace(-100.0, -90.0, -95.0).settled_at(1e-6, -95.0) == -90.0
    assert trace(-100.0, -90.0, -95.0).settled_at(1e-6, None) is None


def test_collapsed_runs_do_not_end_where_states_are_still_alike() -> None:
    chunks = load_alice().observations
    train, test = chunks[:60], chunks[60:90]
    fitted = HMM(8, Categorical(0.1), Dirichlet(0.1), CVI(tolerance=0.0), init="states", random_state=0).fit(train)
    assert fitted.score(test) / test.n_observations > -2.4  # letters one by one: -2.8
