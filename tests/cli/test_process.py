"""The command as a process: help without waiting, signals, full disks, closed pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subchain
from subchain import HMM

COMMAND = [sys.executable, "-m", "subchain.cli"]
SOURCES = str(Path(subchain.__file__).resolve().parents[1])

resource = pytest.importorskip("resource")


def begin(*arguments: str, before: Callable[[], Any] | None = None, **settings: Any) -> subprocess.Popen[str]:
    """Start a command; Ctrl-C reaches it even where the tests themselves do not listen to it."""

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if before is not None:
            before()

    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | settings
    environment = os.environ | {"PYTHONPATH": SOURCES}
    return subprocess.Popen([*COMMAND, *arguments], env=environment, preexec_fn=prepare, **pipes)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


@pytest.mark.parametrize("command", [[], ["fit"], ["report"], ["align"]])
def test_help_does_not_wait_for_numerical_libraries(command: list[str]) -> None:
    program = (
        "import sys; from subchain.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "slow = {'numpy', 'numba', 'scipy', 'safetensors', 'pyarrow', 'matplotlib', 'pydantic'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    arguments = [sys.executable, "-c", program, *command, "--help"]
    environment = os.environ | {"PYTHONPATH": SOURCES}
    told = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=60)
    assert "Examples:" in told.stdout
    assert told.stdout.splitlines()[-1] == "[]"
    assert max(map(len, told.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fit", "walk.csv", "--sates", "3", "--json"], "No such option: --sates"),
        (["fit", "walk.csv", "--states", "many", "--json"], "'many' is not a valid int"),
        (["fitt", "walk.csv", "--json"], "No such command 'fitt'"),
    ],
)
def test_options_that_are_wrong_are_told_in_json_too(arguments: list[str], told: str) -> None:
    status, output, errors = finish(begin(*arguments))
    assert status == 2
    assert told in errors
    assert json.loads(output)["exit_code"] == 2
    assert told in json.loads(output)["error"]


def test_an_interrupted_import_ends_with_the_code_of_interruptions() -> None:
    """Also where the interruption falls into source text that an import executes, as dataclasses do."""
    program = "from subchain.cli import run\ndef load(): exec('raise KeyboardInterrupt')\nrun(load, 'subchain')"
    Path("interrupted.py").write_text(program)
    command, environment = [sys.executable, "-m", "interrupted"], os.environ | {"PYTHONPATH": f"{SOURCES}:."}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, "")


def test_an_alignment_that_is_interrupted_writes_nothing() -> None:
    rng = np.random.default_rng(0)
    for side in "ef":
        lines = (
            " ".join(f"{side}{word}" for word in sentence) for sentence in rng.integers(20_000, size=(100_000, 15))
        )
        Path(f"text.{side}").write_text("\n".join(lines))
    before = set(Path.cwd().iterdir())
    process = begin("align", "text.e", "text.f", "-o", "links.txt", "--save", "a.safetensors")
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)
    status, _, errors = finish(process)
    assert (status, errors) == (130, "error: interrupted; nothing was written.\n")
    assert set(Path.cwd().iterdir()) == before


def test_a_run_that_is_interrupted_writes_the_model_so_far() -> None:
    np.save("long.npy", np.random.default_rng(0).normal(size=(50_000, 2)))
    process = begin(
        "fit", "long.npy", "--states", "8", "--inference", "VI(max_iter=1000000, tolerance=0.0)", "--json",
        "--checkpoint", "run.ckpt", "-o", "model.safetensors",
    )  # fmt: skip
    deadline = time.monotonic() + 400
    while not Path("run.ckpt").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    status, output, _ = finish(process)
    assert status == 130
    assert json.loads(output)["status"] == "interrupted"
    assert HMM.load("model.safetensors").status_ == "interrupted"


def test_a_limit_on_the_size_of_files_leaves_nothing_behind(walk: Path, folder: Path) -> None:
    np.save("long.npy", np.random.default_rng(0).normal(size=(20_000, 2)))
    before = sorted(folder.iterdir())
    process = begin(
        "predict", str(walk), "long.npy", "-o", "states.csv",
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )  # fmt: skip
    status, _, errors = finish(process)
    assert status == 4
    assert "'states.csv' could not be written: the disk is full" in errors
    assert "Traceback" not in errors
    assert sorted(folder.iterdir()) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["info"], ["info", "--json"]])
def test_standard_output_that_is_full_is_an_error_in_one_line(walk: Path, arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        status, _, errors = finish(begin(arguments[0], str(walk), *arguments[1:], stdout=full))
    assert status == 4
    assert len(errors.splitlines()) == 1


def test_a_reader_that_has_seen_enough_is_no_error(walk: Path) -> None:
    np.save("long.npy", np.random.default_rng(0).normal(size=(20_000, 2)))
    process = begin("predict", str(walk), "long.npy")
    assert process.stdout is not None
    assert process.stdout.readline() == "sequence,position,state\n"
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr is not None
    with process.stderr as errors:
        assert errors.read() == ""
