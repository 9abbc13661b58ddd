"""`python -m benchmarks.gpu`: tests, benchmarks and experiments of very large models on a machine with a GPU.

Every step is a command of its own, whose output goes to the screen and to the log; a step that fails does not end the
run. `--tiny` runs the same steps in small forms, on any machine, to see that they work. `--only NAME` takes some steps.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, NamedTuple

import torch


class Step(NamedTuple):
    """A command, and arguments that make it small."""

    name: str
    command: tuple[str, ...]
    tiny: tuple[str, ...] = ()


BENCHMARK = ("-m", "benchmarks.neural", "--data")
TINY = (
    "--states", "64", "--classes", "16", "--embedding", "16", "--epochs", "1", "--streams", "8", "--length", "16",
    "--sentences", "300", "--precision", "single",
)  # fmt: skip
ONE_GROUP = ("--classes", "1", "--batch", "sentences", "--dropout", "0")


def steps(data: Path, out: Path) -> list[Step]:
    """Return all steps, those that take long last."""
    ptb = (*BENCHMARK, str(data / "ptb"))
    few = (*TINY, "--classes", "1")
    return [
        Step("tests", ("-m", "pytest", "-q", "tests/neural", "tests/test_low_rank.py", "tests/test_kneser_ney.py"),
             ("-k", "numbers_of_parameters or made_by_hand or come_back_from_files")),
        Step("speed", (*ptb, "--steps", "50"), (*TINY, "--steps", "3")),
        Step("words", (*ptb, "--epochs", "17", "--seconds", "240", "--out", str(out / "words.json")), TINY),
        Step("low rank, 4096", (*ptb, "--states", "4096", "--features", "1024", *ONE_GROUP, "--epochs", "3"),
             (*few, "--features", "8")),
        Step("low rank, 16384",
             (*ptb, "--states", "16384", "--features", "4096", *ONE_GROUP, "--epochs", "30", "--seconds", "1800",
              "--out", str(out / "low_rank.json")),
             (*few, "--features", "8")),
        Step("more states", (*ptb, "--states", str(1 << 16), "--epochs", "17", "--seconds", "900",
                             "--out", str(out / "more_states.json")), TINY),
        Step("products", ("-m", "benchmarks.low_rank"),
             ("--states", "64", "--features", "8", "--positions", "200", "--repeats", "1")),
        Step("groups", ("-m", "benchmarks.block_sparse"),
             ("--states", "64", "--groups", "8", "--words", "200", "--positions", "2000", "--dense", "400")),
        Step("penn treebank", ("-m", "experiments", "run", "very_large", "--data", str(data), "--output",
                               str(out / "experiments")), ("--quick",)),
        Step("wikitext", ("-m", "experiments", "run", "very_large_wikitext", "--data", str(data), "--output",
                          str(out / "experiments")), ("--quick",)),
    ]  # fmt: skip


def machine() -> str:
    """Return the machine in a few words."""
    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        device = f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB"
    else:
        device = "no GPU"
    return f"{device}; Python {platform.python_version()}, PyTorch {torch.__version__}, {platform.platform()}"


def run(command: list[str], log: IO[str], environment: dict[str, str]) -> int:
    """Run a command; write what it prints to the screen and to the log."""
    tell(f"$ python {' '.join(command)}", log)
    with subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        for row in process.stdout:
            tell(row.rstrip("\n"), log)
    return process.returncode


def tell(text: str, log: IO[str]) -> None:
    print(text, flush=True)
    print(text, file=log, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of ptb/ and wikitext2/")
    parser.add_argument("--out", type=Path, default=Path("gpu"), help="folder of the log and of all results")
    parser.add_argument("--tiny", action="store_true", help="small forms, also without a GPU")
    parser.add_argument("--only", action="append", metavar="NAME", help="steps to run; all by default")
    options = parser.parse_args()
    if not (options.tiny or torch.cuda.is_available()):
        parser.exit(1, "there is no GPU that PyTorch can use; --tiny runs small forms of everything without one\n")
    chosen = [step for step in steps(options.data, options.out) if not options.only or step.name in options.only]
    if not chosen:
        parser.exit(1, f"unknown step; known are {', '.join(step.name for step in steps(options.data, options.out))}\n")
    options.out.mkdir(parents=True, exist_ok=True)
    failed, rows = 0, []
    environment = dict(os.environ) | ({"OMP_NUM_THREADS": "1"} if options.tiny else {})  # networks are tiny too
    with (options.out / "log.txt").open("w", encoding="utf8") as log:
        tell(machine(), log)
        for step in chosen:
            begin = time.perf_counter()
            code = run([*step.command, *(step.tiny if options.tiny else ())], log, environment)
            failed += code != 0
            rows.append(f"{step.name:20} {'done' if code == 0 else f'FAILED ({code})':12} "
                        f"{time.perf_counter() - begin:8.1f} s")  # fmt: skip
        for row in rows:
            tell(row, log)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
