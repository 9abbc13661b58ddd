"""Runs from the command line: logs, quiet and verbose runs, settings files, checkpoints, restarts, selection."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from subchain import HMM
from subchain.cli.select import numbers_of_states
from subchain.errors import InputError

WALK = ("fit", "walk.csv", "--columns", "speed,angle", "--sequence", "animal", "--states", 2)


class TestOutput:
    def test_a_log_has_every_iteration_with_its_time(self, run: Any) -> None:
        for _ in range(2):
            run(*WALK, "--max-iter", 3, "--tolerance", 0, "--log", "run.log", "-o", "w.safetensors")
        lines = Path("run.log").read_text().splitlines()
        iterations = [line for line in lines if " seconds=" in line]
        assert len(iterations) == 6  # a log grows
        stamp = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} run 1/1 iteration 1/3 seconds=\S+ objective=-\d+"
        assert re.match(stamp, iterations[0])
        assert not logging.getLogger("subchain").handlers

    def test_a_log_that_cannot_be_written_is_an_error_before_the_fit(self, run: Any) -> None:
        told = run(*WALK, "--log", "none/run.log", status=4)
        assert "the log 'none/run.log' cannot be written" in told.stderr

    def test_a_quiet_run_says_nothing(self, run: Any) -> None:
        told = run(*WALK, "-q", "-o", "w.safetensors")
        assert told.output == ""
        assert Path("w.safetensors").exists()

    def test_a_verbose_run_tells_every_iteration(self, run: Any, capfd: Any) -> None:
        told = run(*WALK, "-v", "--max-iter", 2, "--tolerance", 0, "-o", "w.safetensors")
        assert "iteration 2/2" in told.stderr + capfd.readouterr().err

    def test_restarts_are_compared_in_a_table(self, run: Any, answer: Any) -> None:
        told = run(*WALK, "--restarts", 3, "-o", "w.safetensors").stdout
        assert re.search(r"run +start +objective +iterations +seconds +states +ended", told)
        assert told.count("best") == 1
        assert "best" in run("info", "w.safetensors").stdout
        runs = answer("info", "w.safetensors")["runs"]
        assert [set(one) for one in runs] == [{"objective", "status", "iterations", "start", "n_states", "seconds"}] * 3
        assert all(one["n_states"] == 2 for one in runs)

    def test_a_run_of_a_sampler_is_completed(self, run: Any) -> None:
        told = run("fit", "codes.npy", "--states", 2, "--inference", "Gibbs(n_samples=5, burn_in=5)", "-q")
        assert told.output == ""
        assert "completed after" in run("info", "codes.safetensors").stdout


class TestTolerance:
    def test_it_reaches_the_algorithm(self, run: Any) -> None:
        told = run(*WALK, "--tolerance", 0.5, "-o", "w.safetensors").stdout
        assert "inference=VI(tolerance=0.5)" in told
        assert "converged" in told

    def test_samplers_have_none(self, run: Any) -> None:
        told = run(*WALK, "--tolerance", 0.5, "--inference", "gibbs", status=2)
        assert "--tolerance is for vi, em and cvi; a run of Gibbs has no test of convergence" in told.stderr


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--time-limit", 0, "--time-limit must be a positive number of seconds, not 0"),
        ("--tolerance", -1, "--tolerance must be a positive number or 0, not -1"),
        ("--max-iter", 0, "--max-iter must be at least 1, not 0"),
    ],
)
def test_limits_that_make_no_sense(option: str, value: float, told: str, run: Any) -> None:
    assert told in run(*WALK, option, value, status=2).stderr


class TestSettingsFile:
    def test_what_one_call_writes_another_reads(self, run: Any) -> None:
        first = run(*WALK, "--max-iter", 7, "-o", "w.safetensors", "--save-settings", "run.toml").stdout
        text = Path("run.toml").read_text()
        assert 'data = ["walk.csv"]' in text
        assert "states = 2" in text
        assert "max-iter = 7" in text
        assert "json" not in text
        again = run("fit", "--settings", "run.toml").stdout
        assert _program(again) == _program(first)

    def test_options_on_the_command_line_win(self, run: Any) -> None:
        Path("run.toml").write_text('data = "walk.csv"\ncolumns = "speed,angle"\nstates = 2\nmax_iter = 3\n')
        told = run("fit", "--settings", "run.toml", "--states", 4, "-o", "w.safetensors").stdout
        assert "HMM(4, Gaussian(), inference=VI(max_iter=3)" in told

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("sates = 3", "there is no setting 'sates'. Did you mean 'states'?"),
            ("resume = true", "resume cannot be set in a file; give it on the command line."),
            ("states = [1, 2]", "states must be a single value, not [1, 2]"),
            ("states = ", "is not a TOML file"),
            ('states = "many"', "'many' is not a valid int"),
        ],
    )
    def test_what_is_wrong_in_it_is_told(self, text: str, told: str, run: Any) -> None:
        Path("run.toml").write_text(text)
        result = run("fit", "walk.csv", "--settings", "run.toml", status=2)
        assert told in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())

    def test_one_that_does_not_exist(self, run: Any) -> None:
        assert "cannot be read" in run("fit", "walk.csv", "--settings", "none.toml", status=2).stderr


class TestCheckpoints:
    def test_one_that_exists_is_kept(self, run: Any) -> None:
        arguments = (*WALK, "--max-iter", 3, "--checkpoint", "run.ckpt", "-o", "w.safetensors")
        run(*arguments)
        before = Path("run.ckpt").read_bytes()
        told = run(*arguments, status=2).stderr
        assert "the checkpoint 'run.ckpt' exists already: --resume continues" in told
        assert "--restart begins again and overwrites it" in told
        assert Path("run.ckpt").read_bytes() == before
        assert "resume=True" in run(*arguments, "--resume").stdout
        assert "resume=False" in run(*arguments, "--restart").stdout

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("--restart",), "--restart needs --checkpoint FILE"),
            (("--checkpoint", "c", "--resume", "--restart"), "--resume and --restart contradict each other"),
        ],
    )
    def test_options_that_make_no_sense(self, options: tuple[str, ...], told: str, run: Any) -> None:
        assert told in run(*WALK, *options, status=2).stderr

    def test_messages_name_options(self, run: Any) -> None:
        told = run(*WALK, "--max-iter", 2, "--tolerance", 1e-12, "-o", "w.safetensors").stderr
        assert "raise --max-iter, or loosen --tolerance 1e-12." in told


class TestSelect:
    def test_the_best_number_of_states_is_written(self, run: Any, answer: Any) -> None:
        arguments = ("select", "walk.csv", "--columns", "speed,angle", "--states", "1-3", "-o", "w.safetensors")
        told = run(*arguments).stdout
        assert "selection = select_states(data, states=[1, 2, 3], criterion='bic', model=HMM(3, Gaussian()" in told
        assert re.search(r"\n +2 .* chosen", told)
        assert HMM.load("w.safetensors").n_states_ == 2
        found = answer(*arguments)
        assert found["n_states"] == 2
        assert [row["n_states"] for row in found["table"]] == [1, 2, 3]

    def test_by_cross_validation(self, answer: Any) -> None:
        arguments = ("--criterion", "held-out", "--folds", 3, "--restarts", 1, "--states", "1,2")
        found = answer("select", "walk.csv", "--columns", "speed,angle", "--sequence", "animal", *arguments)
        assert found["criterion"] == "held_out"
        assert found["n_states"] == 2

    def test_the_printed_program_is_the_one_that_ran(self, run: Any) -> None:
        told = run("select", "walk.csv", "--columns", "speed", "--states", "1-2", "-o", "w.safetensors").stdout
        program = told[told.index("from subchain") : told.index("selection.best_")]
        scope: dict[str, Any] = {}
        with pytest.warns(UserWarning, match="the best number of states, 2, is the largest that was tried"):
            exec(program, scope)
        assert scope["selection"].n_states == HMM.load("w.safetensors").n_states_

    @pytest.mark.parametrize("states", ["many", "3-2", "0-2", "2,2", ""])
    def test_numbers_that_make_no_sense(self, states: str) -> None:
        with pytest.raises(InputError, match="--states must"):
            numbers_of_states(states)

    def test_an_unknown_criterion(self, run: Any) -> None:
        assert "Did you mean 'bic'" in run("select", "walk.csv", "--criterion", "bik", status=2).stderr


def test_shells_can_complete_commands(run: Any) -> None:
    assert "--install-completion" in run("--help").stdout


def _program(told: str) -> str:
    return told[told.index("from subchain") : told.index("model.save")]
