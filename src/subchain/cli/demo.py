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

#: Maximum number of states, which is more than the letters need, and number of iterations of every run.
MOST_STATES, ITERATIONS = 60, 40
#: Numbers of states of the finite models.
FINITE = (10, 20, 40)
#: Concentration of the emissions.
LETTERS = 1.0
#: Of five chunks the first is for training and the third is held out.
STEP, HELD_OUT = 5, 2
#: The fit of the infinite model, to be pasted and run.
PROGRAM = f"""\
from subchain import CVI, HDP, HMM, Categorical
from subchain.datasets import load_alice

chunks = load_alice("characters", "chunks").observations
train, test = chunks[::{STEP}], chunks[{HELD_OUT}::{STEP}]
model = {{model}}
model.fit(train)
print(model.score(test) / test.n_observations)
"""


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
    from subchain.cli.states import n_used, show_states
    from subchain.datasets import load_alice

    chunks = load_alice("characters", "chunks").observations
    train, test = chunks[::STEP], chunks[HELD_OUT::STEP]
    out.line("The letters of Alice's Adventures in Wonderland: how many kinds are there?")
    out.line(f"{train.n_sequences} chunks of 200 letters for training, {test.n_sequences} held out")
    out.line("(fitting takes some seconds; the first time on a machine, compilation takes half a minute)")
    sys.stdout.flush()
    began = time.perf_counter()
    model = _fit(out, train, MOST_STATES, infinite=True)
    seconds = time.perf_counter() - began
    scores = {"unigram": _unigram(train, test)}
    for n_states in FINITE:
        scores[f"finite HMM, {n_states} states"] = _score(_fit(out, train, n_states), test)
    found = n_used(model)
    best = max(list(scores)[1:], key=lambda name: scores[name])
    scores[f"infinite HMM, {found} states found"] = _score(model, test)
    show_states(out, model)
    out.line("\nlog probability per held-out letter (larger is better)")
    rows = [(name + (" (best finite)" if name == best else ""), f"{score:.3f}") for name, score in scores.items()]
    out.table(["model", "score"], rows, right=(1,))
    out.line(f"\n{_answer(found)}")
    program = PROGRAM.format(model=str(model).replace(", progress=False", ""))
    out.line(f"\nthe infinite model took {seconds:.1f} s, compilation included; in Python:\n\n{program}")
    out.add(n_states_used=found, scores=scores, best_finite=best, seconds=seconds, python=program)
    _report(out, model, train, output)


def _fit(out: Output, train: Sequences, n_states: int, infinite: bool = False) -> HMM:
    """Fit without convergence warnings: the demonstration stops early on purpose."""
    import warnings

    from subchain import CVI, HDP, HMM, Categorical, Dirichlet

    prior = HDP() if infinite else Dirichlet()
    progress = False if out.as_json else "auto"
    inference = CVI(max_iter=ITERATIONS)
    model = HMM(n_states, Categorical(LETTERS), prior, inference, random_state=0, progress=progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(train)


def _answer(found: int) -> str:
    """Answer the question that the demonstration asks."""
    if found == MOST_STATES:
        return f"All {found} states that were allowed are in use; there may be more kinds."
    return (
        f"{found} kinds of letters, by what they are and where in a word they stand. The model could have used up to "
        f"{MOST_STATES} states; with more text it finds more."
    )


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
