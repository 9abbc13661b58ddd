"""Typical mistakes: one readable message that says what to do, an exit code, and no file left behind."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM


def write_bad_files() -> None:
    Path("same.csv").write_text("a,b\n" + "1.5,2\n" * 30)
    Path("half.csv").write_text("a,b\n" + "".join(f"{i * i % 7},2\n" for i in range(30)))
    Path("numbers.txt").write_text("\n".join(str(1.5 * i) for i in range(30)))
    Path("mixed.csv").write_text("pulse\n" + "".join(f"{60 + i}\n" for i in range(30)) + "unknown\n")
    Path("broken.safetensors").write_text("this is no model " * 100)
    Path("broken.npy").write_text("this is no array")
    Path("broken.npz").write_text("these are no arrays")


MISTAKES = [
    # arguments, exit code, what the message says
    ("fit wlak.csv", 3, ["no file 'wlak.csv'", "Did you mean 'walk.csv'?"]),
    ("fit nowhere/walk.csv", 3, ["the folder 'nowhere' does not exist"]),
    ("info walk.safetensor", 3, ["no file 'walk.safetensor'"]),
    ("fit walk.csv --columns sped", 2, ["unknown column 'sped'", "Did you mean 'speed'?"]),
    ("fit walk.csv --sequence anmal", 2, ["unknown column 'anmal'", "Did you mean 'animal'?"]),
    ("fit codes.npy --columns 3", 2, ["column 3 does not exist"]),
    ("fit marks.npz --array mraks", 2, ["unknown array of marks.npz 'mraks'", "Did you mean 'marks'?"]),
    ("fit book.txt --emission gaussian", 2, ["text", "--emission categorical"]),
    ("fit walk.csv --columns place --emission poisson", 2, ["column 'place' holds text", "--emission categorical"]),
    ("fit numbers.txt", 2, ["holds numbers such as", ".csv or .npy"]),
    ("fit mixed.csv", 2, ["column 'pulse' holds numbers", "'unknown'", "left empty"]),
    ("fit walk.csv --columns speed --states 100", 2, ["100 states are too many for 120 observations", "at most 60"]),
    ("fit walk.csv --columns speed --max-states 100", 2, ["too many for 120 observations", "--max-states"]),
    ("fit book.txt --emission block-sparse --groups walk.csv", 2, ["give --states K"]),
    ("fit book.txt --emission block-sparse --states 4", 2, ["needs --groups FILE"]),
    ("fit book.txt --groups groups.txt", 2, ["--groups FILE is for --emission block-sparse"]),
    ("fit walk.csv --emission gausian", 2, ["unknown value of --emission", "Did you mean 'gaussian'?"]),
    ("fit walk.csv --inference cvvi", 2, ["unknown value of --inference", "Did you mean 'cvi'?"]),
    ("fit walk.csv --inference CVI(max_itre=3)", 2, ["max_itre"]),
    ("fit walk.csv --inference CVI(max_iter=open)", 2, ["neither a number nor a string"]),
    ("fit walk.csv --init kmean", 2, ["unknown value of --init", "Did you mean 'kmeans'?"]),
    ("fit book.txt --unit character", 2, ["unknown unit of text", "Did you mean 'characters'?"]),
    ("fit walk.csv --inference em", 2, ["--states K"]),
    ("fit codes.npy --inference scvi --max-iter 3", 2, ["SCVI(max_passes=3)"]),
    ("fit walk.csv --sates 3", 2, ["No such option", "--states"]),
    ("fit walk.csv --states three", 2, ["--states"]),
    ("fitt walk.csv", 2, ["No such command", "fit"]),
    ("info broken.safetensors", 3, ["damaged, truncated, or not a subchain file"]),
    ("info walk.csv", 3, ["damaged, truncated, or not a subchain file"]),
    ("info .", 3, ["is a folder"]),
    ("fit broken.npy", 3, ["cannot be read as a NumPy array"]),
    ("fit broken.npz", 3, ["cannot be read as NumPy arrays"]),
    ("fit same.csv --columns a", 2, ["all 30 observations are 1.5", "nothing to learn"]),
    ("fit half.csv", 2, ["column 'b' is 2 everywhere", "--columns"]),
    ("fit walk.csv --infinite --states 3", 2, ["--infinite and --states contradict each other"]),
    ("fit walk.csv --max-states 4 --states 3", 2, ["--states and --max-states contradict each other"]),
    ("fit walk.csv -o nowhere/model", 4, ["the folder 'nowhere' does not exist"]),
    ("fit walk.csv -o .", 4, ["it is a folder"]),
    ("compare walk.csv", 2, ["MODEL... DATA"]),
    ("experiments run sentences --quick", 2, ["python -m experiments list"]),
]


@pytest.mark.parametrize(("command", "status", "said"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_a_mistake_gives_one_message_and_no_file(
    run: Any, folder: Path, command: str, status: int, said: list[str]
) -> None:
    write_bad_files()
    before = sorted(folder.iterdir())
    result = run(*command.split(" "), status=status)
    message = " ".join(result.stderr.replace("│", " ").split())
    for words in said:
        assert words in message
    assert "Traceback" not in result.output
    assert message.count("error:") <= 1
    assert result.stdout == ""
    assert sorted(folder.iterdir()) == before


def test_a_mistake_is_told_to_machines_too(run: Any) -> None:
    result = run("fit", "walk.csv", "--columns", "sped", "--json", status=2)
    told = json.loads(result.stdout)
    assert told["exit_code"] == 2
    assert "unknown column 'sped'" in told["error"]


@pytest.mark.parametrize(("name", "number"), [("ENOSPC", errno.ENOSPC), ("EDQUOT", errno.EDQUOT)])
def test_a_full_disk_leaves_no_half_written_file(
    run: Any, walk: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(number, name)

    monkeypatch.setattr("os.fsync", full)
    before = sorted(folder.iterdir())
    for command in (
        ["fit", "walk.csv", "--columns", "speed", "--states", 2, "-o", "new.safetensors"],
        ["predict", walk, "walk.csv", "-o", "states.csv"],
        ["predict", walk, "walk.csv", "-o", "states.npy", "--probabilities"],
        ["predict", walk, "walk.csv", "-o", "states.parquet"],
        ["sample", walk, "-o", "draw.csv"],
    ):
        message = run(*command, status=4).stderr
        assert f"{command[command.index('-o') + 1]!r} could not be written: the disk is full" in message
        assert sorted(folder.iterdir()) == before


def test_what_is_read_is_not_written_over(run: Any, walk: Path) -> None:
    for read, *command in (
        ["codes.npy", "fit", "codes.npy", "--states", 2, "-o", "codes.npy"],
        ["walk.csv", "fit", "walk.csv", "-o", "./walk.csv"],
        ["walk.csv", "predict", walk, "walk.csv", "-o", "walk.csv"],
        ["walk.csv", "report", walk, "walk.csv", "-o", "walk.csv"],
        [walk, "report", walk, "walk.csv", "-o", walk],
    ):
        before = Path(read).read_bytes()
        assert "would be overwritten" in run(*command, status=4).stderr
        assert Path(read).read_bytes() == before


def test_a_checkpoint_that_finds_no_room_does_not_end_the_run(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from subchain.inference.run import checkpoint

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_arrays", full)
    files = ("--checkpoint", "run.ckpt", "-o", "m.safetensors")
    command = ("fit", "walk.csv", "--columns", "speed", "--states", 2, *files)
    assert "run.ckpt could not be written (No space left on device); the run goes on" in run(*command).stderr
    assert HMM.load("m.safetensors").n_states == 2


def test_a_model_that_finds_no_room_is_written_elsewhere(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = folder / "spare"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    write = HMM.save

    def save(model: HMM, path: Path, **settings: Any) -> None:
        if spare not in Path(path).parents:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(model, path, **settings)

    monkeypatch.setattr(HMM, "save", save)
    message = run("fit", "walk.csv", "--columns", "speed", "--states", 2, "-o", "new.safetensors", status=4).stderr
    (rescued,) = spare.glob("*/new.safetensors")
    assert repr(str(rescued)) in message
    assert HMM.load(rescued).n_states == 2
    assert not Path("new.safetensors").exists()


def test_an_error_of_the_program_says_so_without_a_traceback(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> None:
        raise RuntimeError("two and two is five")

    monkeypatch.setattr("subchain.cli.choices.choose", fails)
    result = run("fit", "codes.npy", status=1)
    assert "RuntimeError: two and two is five; this is an error of the program" in result.stderr
    monkeypatch.setenv("SUBCHAIN_TRACEBACK", "1")
    assert isinstance(run("fit", "codes.npy", status=1).exception, RuntimeError)


def test_a_model_remembers_which_column_divides_tables_into_sequences(answer: Any, walk: Path) -> None:
    told = answer("score", walk, "walk.csv", "--sequence", "animal")
    assert answer("score", walk, "walk.csv") == told
    Path("one.csv").write_text("speed,angle\n1.0,2.0\n5.0,-3.0\n")
    assert answer("score", walk, "one.csv")["n_sequences"] == 1


def test_tables_without_names_or_with_other_separators_are_read(answer: Any) -> None:
    Path("bare.csv").write_text("1.5,2\n2.5,3\n3.5,4\n1.0,2\n")
    found = answer("fit", "bare.csv", "--states", 1, "-o", "m.safetensors")
    assert found["n_observations"] == 4
    assert found["columns"] == ["column_0", "column_1"]
    assert "'bare.csv' (1.5, 2) was read as observations" in found["warnings"][0]
    assert "with --header" in found["warnings"][0]
    assert answer("fit", "bare.csv", "--states", 1, "--header", "-o", "m.safetensors")["n_observations"] == 3
    Path("semi.csv").write_text("a;b\n1,5;2\n3,5;4\n")
    assert answer("fit", "semi.csv", "--states", 1, "-o", "m.safetensors")["columns"] == ["a", "b"]
    Path("odd.csv").write_text("a^b\n1.5^2\n3.5^4\n")
    assert answer("fit", "odd.csv", "--separator", "^", "--states", 1, "-o", "m.safetensors")["columns"] == ["a", "b"]


def test_all_commands_read_data_by_the_same_options(answer: Any) -> None:
    rows = np.random.default_rng(0).normal(np.repeat([0.0, 9.0], 40)[:, None], size=(80, 2))
    lines = [f"{a:.3f}^{b:.3f}" for a, b in rows]
    Path("odd.dat").write_text("\n".join([*lines[:40], "nan^nan", *lines[40:]]) + "\n")
    reading = ["odd.dat", "--format", "csv", "--no-header", "--separator", "^"]
    chosen = answer("select", *reading, "--states", "1-3", "--criterion", "bic", "-o", "m.safetensors")
    assert chosen["n_states"] == 2
    assert answer("score", "m.safetensors", *reading)["n_observations"] == 81
    assert answer("forecast", "m.safetensors", *reading, "--steps", 2, "-o", "f.csv")
    assert len(Path("f.csv").read_text().splitlines()) == 3
    assert answer("impute", "m.safetensors", *reading, "-o", "i.csv")["n_imputed"] == 2
    assert answer("sample", "m.safetensors", "--given", *reading, "-n", 3)
