"""`subchain demo`: fit a book with an unknown number of states, and compare with finite models."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subchain.cli import options
from subchain.cli.output import Output, command_output

if TYPE_CHECKING:
    from subchain.data import Sequences
    from subchain.models.hmm import HMM

#: Number of held-out chunks of the book, maximum number of states, and number of iterations of every run.
TEST, MOST_STATES, ITERATIONS = 126, 40, 40
#: Numbers of states of the finite models.
FINITE = (10, 20, 40)
#: Concentrations of the transition rows, of the top level, and of the emissions.
CONCENTRATION, TOP, LETTERS = 3.0, 5.0, 0.04


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="The report.")] = Path("report.html"),
    as_json: options.AsJson = False,
) -> None:
    """Fit the letters of Alice's Adventures in Wonderland with an unknown number of states, in under a minute.

    The book comes with the package. The command shows what the states emit and how well they predict held-out letters,
    and writes a report.
    """
    with command_output(as_json) as out:
        from subchain.cli.targets import check_target

        check_target(output)
        _demo(out, output)


def _demo(out: Output, output: Path) -> None:
    from subchain import CVI, HDP, HMM, Categorical
    from subchain.cli.states import n_used, show_states

    train, test = _book()
    out.line("The letters of Alice's Adventures in Wonderland: how many kinds are there?")
    out.line(f"{train.n_sequences} chunks of 200 letters for training, {test.n_sequences} held out")
    out.line("(fitting takes some seconds; the first time on a machine, compilation takes half a minute)")
    sys.stdout.flush()
    quiet = False if out.as_json else "auto"
    began = time.perf_counter()
    model = HMM(
        MOST_STATES, Categorical(LETTERS), HDP(CONCENTRATION, TOP), CVI(max_iter=ITERATIONS), random_state=0,
        progress=quiet,
    )  # fmt: skip
    _quietly(model, train)
    seconds = time.perf_counter() - began
    scores = {"unigram": _unigram(train, test)}
    for n_states in FINITE:
        finite = HMM(n_states, Categorical(LETTERS), inference=CVI(max_iter=ITERATIONS), random_state=0, progress=quiet)
        scores[f"finite HMM, {n_states} states"] = _score(_quietly(finite, train), test)
    found = n_used(model)
    best = max(list(scores)[1:], key=lambda name: scores[name])
    scores[f"infinite HMM, {found} states found"] = _score(model, test)
    show_states(out, model)
    out.line("\nlog probability per held-out letter (larger is better)")
    rows = [(name + (" (best finite)" if name == best else ""), f"{score:.3f}") for name, score in scores.items()]
    out.table(["model", "score"], rows, right=(1,))
    out.line(f"\nthe infinite model took {seconds:.1f} s, compilation included; in Python:")
    out.line(f"  {str(model).replace(', progress=False', '')}.fit(train)")
    out.add(n_states_used=found, scores=scores, best_finite=best, seconds=seconds, python=str(model))
    _report(out, model, train, output)


def _book() -> tuple[Sequences, Sequences]:
    import numpy as np

    from subchain.datasets import load_alice

    alice = load_alice("characters", "chunks").observations
    order = np.random.default_rng(0).permutation(alice.n_sequences)
    return alice[np.sort(order[TEST:])], alice[np.sort(order[:TEST])]


def _quietly(model: HMM, train: Sequences) -> HMM:
    """Fit without convergence warnings: the demonstration stops early on purpose."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(train)


def _score(model: HMM, test: Sequences) -> float:
    return model.score(test) / test.n_observations


def _unigram(train: Sequences, test: Sequences) -> float:
    """Return the log probability per held-out letter under the letter frequencies."""
    import numpy as np

    counts = np.bincount(train.values, minlength=len(train.vocabulary or ())) + LETTERS
    return float(np.log(counts / counts.sum())[test.values].mean())


def _report(out: Output, model: HMM, train: Sequences, output: Path) -> None:
    import subchain

    subchain.report(model, train, output, title="Alice's Adventures in Wonderland")
    out.add(report=str(output))
    out.line(f"\nreport written to {output}; open it in a browser")
