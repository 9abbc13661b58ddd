"""`subchain fit`: what is chosen, and that what is printed is what was done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM


def program(output: str) -> str:
    """The Python program among the lines of an answer."""
    return output[output.index("from subchain import") : output.index("model.save")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["book.txt", "--max-iter", "4"],
        ["book.txt", "--unit", "characters", "--infinite", "--max-states", "5", "--inference", "CVI(max_iter=4)"],
        ["walk.csv", "--columns", "speed,angle", "--sequence", "animal", "--states", "2", "--restarts", "2"],
        ["walk.csv", "--sequence", "animal", "--seed", "3", "--max-states", "4"],
        ["walk.csv", "--columns", "1", "--states", "2", "--holdout", "0.1", "--init", "random", "--inference", "em"],
        ["codes.npy", "--transition", "HDP(stickiness=2.0)", "--inference", "SCVI(length=10, max_updates=50)"],
        ["marks.npz", "--states", "2", "--emission", "Bernoulli(1.0)", "--time-limit", "100"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # of runs that are cut short, which the command prints as remarks
def test_the_printed_program_makes_the_same_model_to_the_bit(run: Any, arguments: list[str]) -> None:
    printed = run("fit", *arguments, "-o", "model.safetensors").stdout
    names: dict[str, Any] = {}
    exec(program(printed), names)
    written = HMM.load("model.safetensors")
    for name, array in names["model"].point_.arrays().items():
        np.testing.assert_array_equal(written.point_.arrays()[name], array, err_msg=name)
    assert written.state_names_ == names["model"].state_names_


@pytest.mark.parametrize(
    ("arguments", "family", "algorithm"),
    [
        (["book.txt"], "Categorical", "CVI()"),
        (["walk.csv", "--columns", "speed,angle"], "Gaussian", "VI()"),
        (["walk.csv", "--columns", "speed,place"], "Product", "VI()"),
        (["codes.npy"], "Categorical", "CVI()"),
        (["marks.npz"], "Bernoulli", "VI()"),
        (["codes.npy", "--emission", "poisson"], "Poisson", "VI()"),
    ],
)
def test_family_and_algorithm_are_chosen_by_the_data(
    answer: Any, arguments: list[str], family: str, algorithm: str
) -> None:
    found = answer("fit", *arguments, "--states", 2)
    assert found["family"] == family
    assert found["inference"] == algorithm


def test_many_observations_are_learned_in_minibatches(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subchain.cli.choices.MANY_SYMBOLS", 100)
    found = answer("fit", "codes.npy", "--states", 2, "--time-limit", 0.1)
    assert found["inference"].startswith("SCVI")
    assert any("in minibatches" in remark for remark in found["warnings"])


def test_words_and_states_in_groups(answer: Any) -> None:
    words = {"the": 0, "a": 0, "on": 0, "cat": 1, "mat": 1, "dog": 1, "sat": 2, "saw": 2}
    Path("groups.txt").write_text("".join(f"{word} {group}\n" for word, group in words.items()))
    found = answer("fit", "book.txt", "--emission", "block-sparse", "--groups", "groups.txt", "--states", 6)
    assert "BlockSparse(groups='groups.txt')" in found["python"]
    assert found["inference"].startswith("VI")


def test_the_number_of_states_is_found_if_nobody_says_it(answer: Any) -> None:
    found = answer("fit", "walk.csv", "--columns", "speed,angle", "--sequence", "animal")
    assert found["n_states_used"] == 2
    assert found["n_states"] > 2
    assert "HDP()" in found["python"]


def test_the_model_is_named_after_the_data(run: Any) -> None:
    assert "model written to codes.safetensors" in run("fit", "codes.npy", "--states", 2).stdout
    assert Path("codes.safetensors").exists()


def test_a_folder_is_read_as_its_files(answer: Any) -> None:
    Path("texts").mkdir()
    for name in "ab":
        Path("texts", f"{name}.txt").write_text("the cat\nthe dog\n" * 10)
    assert answer("fit", "texts", "--states", 2, "--max-iter", 3)["n_sequences"] == 40


def test_a_folder_of_event_logs_is_read_as_sessions(run: Any, answer: Any) -> None:
    Path("logs").mkdir()
    for user in ("ann", "bob"):
        Path("logs", f"{user}.txt").write_text("login\nview\nview\nlogout\n\n" * 10)
    fitted = run("fit", "logs", "--states", 2, "--max-iter", 3, "-o", "logs.safetensors")
    assert "--sequences lines makes every line a sequence" in " ".join(fitted.output.split())
    assert answer("score", "logs.safetensors", "logs")["n_sequences"] == 20
    run("predict", "logs.safetensors", "logs", "-o", "states.csv")
    assert Path("states.csv").read_text().splitlines()[5].startswith("ann.1,0,login,")


def test_a_checkpoint_is_resumed(answer: Any) -> None:
    common = ["fit", "codes.npy", "--states", 2, "--checkpoint", "run.ckpt"]
    first = answer(*common, "--max-iter", 3)
    second = answer(*common, "--max-iter", 6, "--resume")
    assert first["iterations"] == 3
    assert second["iterations"] == 6


def test_resuming_needs_a_checkpoint(run: Any) -> None:
    assert "--resume needs --checkpoint" in run("fit", "codes.npy", "--resume", status=2).stderr


def test_an_interrupted_run_is_written_and_said_so(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from subchain.inference.batch.passes import Passes

    whole, count = Passes.step, iter(range(100))

    def step(self: Passes, state: Any) -> Any:
        if next(count) == 2:
            raise KeyboardInterrupt
        return whole(self, state)

    monkeypatch.setattr(Passes, "step", step)
    result = run("fit", "walk.csv", "--columns", "speed", "--states", 2, "-o", "part.safetensors", status=130)
    assert "interrupted after 2 iterations" in result.stdout
    assert "last whole iteration" in result.stderr
    assert HMM.load("part.safetensors").status_ == "interrupted"


def test_a_run_interrupted_before_its_first_iteration_writes_nothing(
    run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(self: Any, state: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("subchain.inference.batch.passes.Passes.step", step)
    before = sorted(folder.iterdir())
    result = run("fit", "walk.csv", "--columns", "speed", "--states", 2, status=130)
    assert "before the first complete iteration" in result.stderr
    assert sorted(folder.iterdir()) == before
