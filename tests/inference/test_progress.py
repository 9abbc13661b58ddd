"""What a user sees of a run: totals and estimates, compilation, parts of a selection, the log, interruptions."""

import logging
import os
import re
import signal
import sys

import numba
import numpy as np
import pytest
from examples import example

from subchain import EM, HMM, SVI, VI, Categorical, Gibbs, select_states
from subchain.errors import InputError
from subchain.inference.run.interrupts import AbortedError, Postponed
from subchain.inference.run.outlook import Outlook, Whole
from subchain.inference.run.progress import Progress, fits_of
from subchain.inference.run.restarts_table import restarts_table
from subchain.numerics.compilation import watching_compilation

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


@pytest.fixture
def data():
    return example("categorical", "many")[1]


def model(inference, **settings):
    return HMM(3, Categorical(n_categories=5), inference=inference, random_state=0, n_jobs=1, **settings)


def test_the_speed_is_told_in_units_of_the_user():
    line = Progress(False, "HMM", unit=("pairs", 20.0))
    with line:
        line.speed = 1e6
        assert line.line().startswith("HMM  preparing")
        assert line.line().endswith("50,000 pairs/s")
    with Progress(False) as line:
        line.speed = 1e6
        assert line.line().endswith("1.00 M obs/s")


class TestEstimates:
    def test_what_is_left_of_one_run(self):
        outlook = Outlook(n_iterations=10)
        outlook.begin(0, 0.0)
        assert outlook.remaining(0.5) is None
        outlook.advance(1, 1.0)
        outlook.advance(4, 7.0)
        assert outlook.remaining(7.0) == pytest.approx(12.0)  # six iterations of two seconds
        assert outlook.remaining(8.0) == pytest.approx(11.0)

    def test_an_iteration_that_compiled_predicts_nothing(self):
        outlook = Outlook(n_iterations=10)
        outlook.begin(0, 0.0)
        outlook.advance(1, 60.0, has_compiled=True)
        assert outlook.remaining(60.0) is None
        outlook.advance(2, 61.0)
        assert outlook.remaining(61.0) == pytest.approx(8.0)

    def test_the_estimate_goes_on_over_restarts(self):
        outlook = Outlook(n_runs=3, n_iterations=10)
        outlook.begin(0, 0.0)
        outlook.advance(10, 4.0)
        outlook.end(4.0)
        outlook.begin(1, 4.0)
        assert outlook.remaining(5.0) == pytest.approx(3.0 + 4.0)
        outlook.advance(1, 5.0)
        outlook.advance(5, 7.0)
        assert outlook.share == pytest.approx(0.5)
        assert outlook.remaining(7.0) == pytest.approx(5 * 0.5 + 4.0)

    def test_a_time_limit_bounds_the_estimate_and_is_one_without_others(self):
        assert Outlook(n_iterations=None, time_limit=60.0).remaining(20.0) == 40.0
        outlook = Outlook(n_iterations=1000, time_limit=60.0)
        outlook.begin(0, 0.0)
        outlook.advance(1, 1.0)
        assert outlook.remaining(1.0) == 59.0
        assert outlook.is_bound

    def test_the_whole_of_a_selection_counts_work_by_states(self):
        whole = Whole(work=2 * (2 + 4), n_fits=4)
        whole.expect("2 states", "fold", 2, 2.0)
        whole.begin(100.0)
        assert whole.remaining(1.0, of_fit=1.0, seconds_of_fit=1.0) == pytest.approx(11.0)  # 12 units, one a second
        whole.end()
        whole.begin(102.0)
        assert str(whole) == "2 states, fold 2 of 2 (fit 2 of 4)"
        assert whole.remaining(3.0, of_fit=None, seconds_of_fit=1.0) == pytest.approx(9.0)


class TestLine:
    @pytest.mark.parametrize(
        ("inference", "shown"),
        [
            (SVI(max_updates=300, length=10, batch=4), "3/3"),
            (SVI(length=10, batch=4, time_limit=60.0), "10/10"),
            (Gibbs(n_samples=5, burn_in=5, n_chains=2), "10/10"),
            (VI(max_iter=4, tolerance=0.0), "4/4"),
        ],
    )
    def test_every_algorithm_has_a_total_and_labelled_times(self, inference, shown, data, monkeypatch):
        lines = []
        told = Progress.update

        def update(self, state):
            told(self, state)
            lines.append(self.line())

        monkeypatch.setattr(Progress, "update", update)
        model(inference).fit(data)
        assert shown in lines[-1]
        assert "None" not in lines[-1]
        assert re.search(r"elapsed \d+:\d\d  remaining (at most|about) \d+:\d\d", lines[-1])

    def test_a_run_that_may_converge_has_a_bound_and_one_that_may_not_an_estimate(self):
        assert VI().may_end_early
        assert EM(patience=3).may_end_early
        assert not Gibbs().may_end_early
        assert not SVI().may_end_early

    def test_compilation_is_shown_as_such(self):
        with Progress(False) as line:
            states = []
            with watching_compilation(lambda under_way: states.append((under_way, line.line()))):

                @numba.njit
                def fresh(x):
                    return x + 1

                assert fresh(1) == 2
        assert [state for state, _ in states] == [True, False]
        assert "compiling" in states[0][1]
        assert "compiling" not in line.line()

    @pytest.mark.filterwarnings("ignore:select_states")
    def test_a_selection_shows_states_fold_and_the_whole(self, data, monkeypatch):
        lines = []
        monkeypatch.setattr(Progress, "update", lambda self, state: lines.append(self.line()))
        select_states(data, [2, 3], "held_out", model(VI(max_iter=2), progress=False), cv=2, n_init=1, random_state=0)
        starts = list(dict.fromkeys(line.partition(")")[0] for line in lines))
        assert starts == [
            "2 states, fold 1 of 2 (fit 1 of 5",
            "2 states, fold 2 of 2 (fit 2 of 5",
            "3 states, fold 1 of 2 (fit 3 of 5",
            "3 states, fold 2 of 2 (fit 4 of 5",
            starts[-1],
        ]
        assert "all data (fit 5 of 5" in starts[-1]

    def test_fits_of_a_whole_begin_where_the_last_ended(self):
        whole = Whole(2.0, 2)
        with fits_of(whole):
            for _ in range(2):
                with Progress(False) as line:
                    pass
        assert whole.begun == 2
        assert not line.is_alone
        assert Progress(False).is_alone

    def test_progress_is_true_false_or_auto(self):
        with pytest.raises(InputError, match="progress must be True, False or 'auto', not 'yes'"):
            Progress("yes")

    def test_a_terminal_gets_a_table_of_restarts(self, data, capsys, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        fitted = model(VI(max_iter=3), n_init=2, progress=True).fit(data)
        told = capsys.readouterr().err
        assert "objective" in told
        assert "best" in told
        heads, rows = restarts_table(fitted.runs_)
        assert heads == ["run", "start", "objective", "iterations", "seconds", "states", "ended", ""]
        best = int(np.argmax([run.objective for run in fitted.runs_]))
        assert [row[-1] for row in rows] == ["best" if number == best else "" for number in range(2)]
        assert [row[5] for row in rows] == ["3", "3"]


def test_every_iteration_is_logged(data, caplog):
    with caplog.at_level(logging.DEBUG, logger="subchain"):
        fitted = model(VI(max_iter=3, tolerance=0.0), n_init=2).fit(data)
    lines = [record.getMessage() for record in caplog.records if "iteration" in record.getMessage()]
    iterations = [line for line in lines if line.startswith("run") and "seconds=" in line]
    assert len(iterations) == 6
    best = int(np.argmax([run.objective for run in fitted.runs_]))
    last = next(line for line in iterations if line.startswith(f"run {best + 1}/2 iteration 3/3"))
    assert float(re.search(r"objective=(\S+)", last)[1]) == pytest.approx(fitted.trace_.objective[-1])
    assert f"run {best + 1}/2 ends after 3 iterations: max_iter" in lines


class TestInterruptions:
    @pytest.fixture(autouse=True)
    def interruptions_are_heard(self):
        before = [signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)]
        yield
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])

    def test_the_first_is_acknowledged_and_waits(self):
        postponed, told = Postponed(), []
        postponed.acknowledge = lambda: told.append(True)
        with postponed:
            os.kill(os.getpid(), signal.SIGINT)
            assert told == [True]
        with pytest.raises(KeyboardInterrupt):
            postponed.check()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_the_second_aborts(self):
        with Postponed():
            os.kill(os.getpid(), signal.SIGINT)
            with pytest.raises(AbortedError):
                os.kill(os.getpid(), signal.SIGINT)

    def test_so_does_a_fit_whose_checkpoint_stays_as_it_was(self, data, tmp_path, monkeypatch):
        count = []

        def update(self, state):
            count.append(state.iteration)
            if state.iteration == 3:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(Progress, "update", update)
        with pytest.raises(AbortedError):
            model(Gibbs(n_samples=50, burn_in=0, n_chains=1)).fit(data, checkpoint=tmp_path / "c")
        assert count == [1, 2, 3]
        monkeypatch.undo()
        inference = Gibbs(n_samples=5, burn_in=0, n_chains=1)
        whole = model(inference).fit(data)
        again = model(inference).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert again.trace_.objective == whole.trace_.objective

    def test_a_termination_saves_as_an_interruption_does(self, data, tmp_path, monkeypatch):
        told = Progress.update

        def update(self, state):
            told(self, state)
            if state.iteration == 3:
                os.kill(os.getpid(), signal.SIGTERM)

        monkeypatch.setattr(Progress, "update", update)
        inference = VI(max_iter=9, tolerance=0.0)
        with pytest.warns(UserWarning, match="interrupted"):
            cut = model(inference).fit(data, checkpoint=tmp_path / "c")
        assert cut.status_ == "interrupted"
        assert len(cut.trace_) == 3
        monkeypatch.undo()
        again = model(inference).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert np.array_equal(again.transition_, model(inference).fit(data).transition_)
