"""A fit whose limit is raised ends in the bits of one that had the higher limit from the beginning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import CVI, EM, HDP, HMM, SCVI, SVI, VI, Categorical, Guards
from subchain.core.files import read_arrays, write_arrays
from subchain.errors import FileFormatError
from subchain.inference.run import checkpoint, restarts
from subchain.inference.run.restarts import best_of
from subchain.inference.search.search import StateSearch
from subchain.inference.stochastic.schedule import is_time, until_pause

#: Algorithms by a limit on their iterations; a unit of it is ten updates of the stochastic ones.
LIMITED: dict[str, Callable[[int], Any]] = {
    "em": lambda n: EM(max_iter=n),
    "vi": lambda n: VI(max_iter=n),
    "cvi": lambda n: CVI(max_iter=n),
    "svi": lambda n: SVI(length=10, batch=3, max_updates=10 * n, report_every=10, average=True),
    "scvi": lambda n: SCVI(length=10, batch=3, max_passes=float(n), report_every=10, average=True),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sequences() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    symbols = 2 * np.repeat(rng.integers(0, 3, 60), 5) + rng.integers(0, 3, 300)
    return list(symbols.reshape(10, 30))


def model(inference: Any, transition: Any = None, **settings: Any) -> HMM:
    return HMM(5, Categorical(n_categories=8), transition, inference, random_state=3, n_jobs=1, **settings)


def check_same(one: HMM, other: HMM) -> None:
    for name in ("point_", "statistics_", "prior_"):
        found, expected = getattr(one, name).arrays(), getattr(other, name).arrays()
        assert all(np.array_equal(found[key], expected[key]) for key in expected | found)
    assert one.runs_ == other.runs_
    assert np.array_equal(one.trace_.objective, other.trace_.objective, equal_nan=True)
    assert one.trace_.events == other.trace_.events


def check_raised(make: Callable[[int], HMM], first: int, limit: int, path: Path) -> HMM:
    """Return the fit that was resumed with a higher limit, which must be like one with that from the beginning."""
    make(first).fit(sequences(), checkpoint=path)
    resumed = make(limit).fit(sequences(), checkpoint=path, resume=True)
    check_same(resumed, make(limit).fit(sequences()))
    return resumed


@pytest.mark.parametrize("prior", ["dirichlet", "hdp", "learned"])
@pytest.mark.parametrize("name", list(LIMITED))
def test_one_run(name: str, prior: str, tmp_path: Path) -> None:
    transition = {"dirichlet": None, "hdp": HDP(), "learned": HDP("learned", "learned")}[prior]
    if name == "em" and prior != "dirichlet":
        pytest.skip("EM learns no hierarchical prior")
    resumed = check_raised(lambda n: model(LIMITED[name](n), transition), 2, 9, tmp_path / "c")
    assert len(resumed.trace_) > 2


def test_searches_took_place_in_these_runs() -> None:
    found = model(LIMITED["svi"](9), HDP()).fit(sequences())
    assert found.trace_.events


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "left out"])
@pytest.mark.parametrize("name", list(LIMITED))
def test_every_restart_goes_on(name: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "KEPT_BYTES", 1 << 20 if kept else 0)
    resumed = check_raised(lambda n: model(LIMITED[name](n), n_init=3), 2, 6, tmp_path / "c")
    assert {run.iterations for run in resumed.runs_} != {2}


@pytest.mark.parametrize("name", ["cvi", "svi"])
def test_restarts_that_were_kept_do_not_begin_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(LIMITED[name](2), n_init=3).fit(sequences(), checkpoint=tmp_path / "c")

    def no_start(problem: Any, algorithm: Any, starts: Any, *rest: Any) -> Any:
        def begin() -> Any:
            raise AssertionError("a restart began again")

        return best_of(problem, algorithm, [begin] * len(starts), *rest)

    monkeypatch.setattr("subchain.inference.run.fit.best_of", no_start)
    resumed = model(LIMITED[name](4), n_init=3).fit(sequences(), checkpoint=tmp_path / "c", resume=True)
    assert [run.iterations for run in resumed.runs_] == [4] * 3


def test_restarts_with_guards_in_a_file_go_on(tmp_path: Path) -> None:
    def make(n: int) -> HMM:
        inference = SCVI(length=10, batch=3, boundary=Guards(storage=tmp_path / "g"), max_updates=10 * n)
        return model(inference, n_init=2)

    check_raised(make, 2, 4, tmp_path / "c")


def test_restarts_with_shares_in_files_go_on(tmp_path: Path) -> None:
    check_raised(lambda n: model(CVI(max_iter=n, storage=tmp_path), n_init=2), 2, 4, tmp_path / "c")


def test_a_best_run_whose_results_were_left_out_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that was best is not any more when all have gone on: another had converged before and was left out."""
    monkeypatch.setattr(checkpoint, "KEPT_BYTES", 0)
    whole = model(CVI(max_iter=3), n_init=3).fit(sequences())
    model(CVI(max_iter=3), n_init=3).fit(sequences(), checkpoint=tmp_path / "c")
    load = checkpoint.Checkpoint.load

    def another_is_best(self: Any) -> Any:
        journey = load(self)
        journey.winner.leave_out()
        return journey

    monkeypatch.setattr(checkpoint.Checkpoint, "load", another_is_best)
    check_same(model(CVI(max_iter=3), n_init=3).fit(sequences(), checkpoint=tmp_path / "c", resume=True), whole)


def test_a_raised_patience_lets_a_run_go_on(tmp_path: Path) -> None:
    def fit(patience: int, **settings: Any) -> HMM:
        inference = EM(max_iter=30, tolerance=0.0, patience=patience)
        return model(inference).fit(sequences()[:3], validation=sequences()[3:], **settings)

    assert fit(1, checkpoint=tmp_path / "c").status_ == "stopped_improving"
    check_same(fit(4, checkpoint=tmp_path / "c", resume=True), fit(4))


@pytest.mark.parametrize("limit", [31, 45, 59, 100, 250, 599, 1000, 5000])
def test_a_run_of_any_length_is_searched_in_its_second_half(limit: int) -> None:
    search: Any = StateSearch(None, None)  # type: ignore[arg-type]
    times = [n for n in range(1, limit + 1) if is_time(search, n, (1.0 + n) ** -0.6)]
    assert times[-1] >= limit / 2


def test_hyperparameters_are_updated_ever_less_often() -> None:
    done, pauses = 0, []
    while done < 1000:
        pauses.append(until_pause(done))
        done += pauses[-1]
    assert pauses[:40] == [1] * 40
    assert pauses == sorted(pauses) or max(pauses) == 10
    assert pauses[-10:] == [10] * 10


def test_a_run_that_was_under_way_goes_on_before_those_at_a_raised_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that begin again would overwrite the guards of the one under way."""

    def make(n: int) -> HMM:
        boundary = Guards(storage=tmp_path / "guards")
        inference = SCVI(length=10, batch=3, report_every=5, boundary=boundary, max_updates=n, time_limit=1e6)
        return model(inference, n_init=3)

    run, calls = restarts.run, iter(range(9))

    def cut(problem: Any, algorithm: Any, state: Any, *rest: Any) -> Any:
        state.deadline = 0.0 if next(calls) == 1 else state.deadline
        return run(problem, algorithm, state, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(restarts, "run", cut)
        assert make(20).fit(sequences(), checkpoint=tmp_path / "c").status_ == "time_limit"
    resumed = make(40).fit(sequences(), checkpoint=tmp_path / "c", resume=True)
    straight = make(40).fit(sequences())
    assert [run.objective for run in resumed.runs_] == [run.objective for run in straight.runs_]
    np.testing.assert_array_equal(resumed.transition_, straight.transition_)


def test_a_file_with_more_runs_than_the_fit_is_refused(tmp_path: Path) -> None:
    def make() -> HMM:
        return model(EM(max_iter=2), n_init=2)

    make().fit(sequences(), checkpoint=tmp_path / "c")
    arrays, header = read_arrays(tmp_path / "c", "checkpoint")
    header["restarts"].append(header["restarts"][0] | dict.fromkeys(("statistics", "average", "prior")))
    header["restarts"][2] |= {"point": None, "memory": []}
    write_arrays(tmp_path / "c", arrays, header)
    with pytest.raises(FileFormatError, match="3 runs have begun"):
        make().fit(sequences(), checkpoint=tmp_path / "c", resume=True)
