"""Word aligners side by side, through their command lines: time of both directions, and error rates.

    python -m benchmarks.aligners --pairs 50000 --peers /tmp/peers

The text is that of the experiment `word_alignment`: the hand-aligned pairs of the Hansards and the first training
pairs. `--peers` is an environment of Python in which eflomal and systran-align (a copy of fast_align) are installed;
those that are not are left out. Every round gives each aligner a turn in a process of its own. Times are medians of the
rounds, from the start of the process to its end, and cores are those that it may use (`taskset -c 0,1` gives it two).
A first run of subchain, which is not counted, compiles its kernels, and its modules as installation does.

    python -m benchmarks.aligners --pairs 50000 --steps

does not race, but says where the processor seconds of subchain's command go.
Error rates are those of the 447 test pairs: of subchain with its defaults, of the directions of eflomal combined by
grow-diag-final-and, and of the links that systran-align combines itself.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe
from experiments.word_alignment import Corpus, hansards
from subchain.alignment import Links, alignment_report, read_links, symmetrize

#: What systran-align runs: fast_align with its recommended settings, both directions, then links of all pairs.
SYSTRAN = """
import sys
import systran_align
joined, forward, backward, found = sys.argv[1:]
systran_align.generate_alignment_probabilities(
    joined, forward, backward, favor_diagonal=True, optimize_tension=True, variational_bayes=True)
aligner = systran_align.Aligner(forward, backward)
lines = [line.rstrip("\\n").split(" ||| ") for line in open(joined, encoding="utf8")]
with open(found, "w") as file:
    for begin in range(0, len(lines), 10_000):
        some = [[side.split() for side in line] for line in lines[begin : begin + 10_000]]
        for result in aligner.align_batch(*map(list, zip(*some))):
            file.write(" ".join(f"{i}-{j}" for i, j in result["alignments"]) + "\\n")
"""


class Files(NamedTuple):
    """Where the text is, and where links go."""

    source: Path
    target: Path
    joined: Path
    folder: Path

    def out(self, name: str) -> str:
        return str(self.folder / name)


class Contender(NamedTuple):
    """An aligner: what says that it is installed, its command, and how its links are read."""

    needs: Callable[[Path], list[str]]
    command: Callable[[Path, Files], list[str]]
    links: Callable[[Files], Links]


class Measured(NamedTuple):
    """Seconds of one run, on the wall and of all cores."""

    wall: float
    processor: float


#: What `--steps` runs: the parts of the command one after the other, in a process of their own.
STEPS = """
import sys, time
def step(name):
    global before
    print(f"{name}\\t{time.process_time() - before:.4f}")
    before = time.process_time()
before = 0.0
step("Python")
import numpy, numba
step("imports: NumPy and Numba")
import subchain.cli.app
from subchain.alignment import WordAligner, read_parallel, write_links
step("imports: subchain, SciPy")
source, target, found = sys.argv[1:]
text = read_parallel(source, target)
step("reading text, coding words")
from subchain.models import aligner as models, alignment_stages
index, run = models.AlignedText.of, alignment_stages.StageFit.run
def indexed(*arguments, **options):
    step("checks")
    result = index(*arguments, **options)
    step("index of cells")
    return result
def fitted(fit, stage, *arguments):
    result = run(fit, stage, *arguments)
    step(f"{stage}: all passes")
    return result
models.AlignedText.of, alignment_stages.StageFit.run = indexed, fitted
aligner = WordAligner(progress=False, random_state=0).fit(text)
step("posterior")
links = list(aligner.link_blocks())
step("links of both directions")
write_links(found, links)
step("writing")
"""


def _subchain(_: Path, files: Files) -> list[str]:
    command = [sys.executable, "-m", "subchain", "align", str(files.source), str(files.target)]
    return [*command, "-o", files.out("links"), "-q"]


def _eflomal(peers: Path, files: Files) -> list[str]:
    text = ["-s", str(files.source), "-t", str(files.target), "--model", "2", "--overwrite"]
    return [str(peers / "bin" / "eflomal-align"), *text, "-f", files.out("forward"), "-r", files.out("backward")]


def _systran(peers: Path, files: Files) -> list[str]:
    outputs = [files.out(name) for name in ("forward.probs", "backward.probs", "links")]
    return [str(peers / "bin" / "python"), "-c", SYSTRAN, str(files.joined), *outputs]


def _both(files: Files) -> Links:
    return symmetrize(read_links(files.out("forward")), read_links(files.out("backward")), "grow-diag-final-and")


CONTENDERS = {
    "subchain": Contender(
        lambda _: [sys.executable, "-c", "import subchain"], _subchain, lambda f: read_links(f.out("links"))
    ),
    "eflomal, HMM stage": Contender(lambda peers: [str(peers / "bin" / "eflomal-align"), "--help"], _eflomal, _both),
    "fast_align (systran-align)": Contender(
        lambda peers: [str(peers / "bin" / "python"), "-c", "import systran_align"],
        _systran,
        lambda f: read_links(f.out("links")),
    ),
}


def is_installed(contender: Contender, peers: Path) -> bool:
    """Whether the program can be run."""
    try:
        return subprocess.run(contender.needs(peers), capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def measured(contender: Contender, peers: Path, files: Files) -> Measured:
    """Run an aligner on the text."""
    path = f"{peers / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    outputs: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(contender.command(peers, files), env=environment | {"PATH": path}, **outputs) as process:
        assert process.stderr is not None
        said = process.stderr.read().decode(errors="replace")
        process.wait()
    if process.returncode:
        raise RuntimeError(f"{contender.command(peers, files)[0]} failed: {said[-500:]}")
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(wall, processor)


def error_rate(corpus: Corpus, links: Links) -> float:
    """Return the alignment error rate of the test pairs in per cent."""
    return 100.0 * alignment_report(links.between(corpus.n_dev, corpus.n_gold), *corpus.test).scores.aer


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=Path, default=Path(sys.prefix))
    parser.add_argument("--steps", action="store_true", help="processor seconds of each step of subchain")
    options = parser.parse_args(arguments)
    corpus, console = hansards(options.pairs, seed=0), Console()
    console.print(f"{describe()}; {len(corpus.text):,} sentence pairs", highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        files = Files(*(Path(folder, name) for name in ("source", "target", "joined")), Path(folder))
        lines = [(" ".join(source), " ".join(target)) for source, target in corpus.text]
        files.source.write_text("".join(f"{source}\n" for source, _ in lines), encoding="utf8")
        files.target.write_text("".join(f"{target}\n" for _, target in lines), encoding="utf8")
        files.joined.write_text("".join(f"{source} ||| {target}\n" for source, target in lines), encoding="utf8")
        measured(CONTENDERS["subchain"], options.peers, files)
        console.print(steps(files, options.rounds) if options.steps else race(corpus, files, options))


def race(corpus: Corpus, files: Files, options: argparse.Namespace) -> Table:
    """Give every aligner a turn in every round, and return the table of medians."""
    present = {name: contender for name, contender in CONTENDERS.items() if is_installed(contender, options.peers)}
    runs: dict[str, list[Measured]] = {name: [] for name in present}
    rates: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, contender in present.items():
            runs[name].append(measured(contender, options.peers, files))
            rates[name] = error_rate(corpus, contender.links(files))
    table = Table("aligner", "seconds", "pairs/s", "processor s", "pairs/processor s", "AER, %")
    n_pairs = len(corpus.text)
    for name, of in runs.items():
        wall, processor = (statistics.median(getattr(run, kind) for run in of) for kind in ("wall", "processor"))
        table.add_row(
            name, f"{wall:.1f}", f"{n_pairs / wall:,.0f}", f"{processor:.1f}", f"{n_pairs / processor:,.0f}",
            f"{rates[name]:.1f}",
        )  # fmt: skip
    return table


def steps(files: Files, rounds: int) -> Table:
    """Return the median processor seconds of each step."""
    command = [sys.executable, "-c", STEPS, str(files.source), str(files.target), files.out("links")]
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for line in subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines():
            name, seconds = line.split("\t")
            found.setdefault(name, []).append(float(seconds))
    table = Table("step", "processor s", "least")
    for name, several in found.items():
        table.add_row(name, f"{statistics.median(several):.2f}", f"{min(several):.2f}")
    totals = [sum(each) for each in zip(*found.values(), strict=True)]
    table.add_row("all", f"{statistics.median(totals):.2f}", f"{min(totals):.2f}")
    return table


if __name__ == "__main__":
    main()
