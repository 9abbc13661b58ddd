"""`subchain demo`: how many states has a book, and what are they?"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subchain.cli import options
from subchain.cli.conversation import Conversation, conversation

if TYPE_CHECKING:
    from subchain.data import Sequences
    from subchain.models.hmm import HMM

#: Chunks of the book that are held out, the largest number of states, and the iterations of every run.
TEST, MOST_STATES, ITERATIONS = 126, 40, 40
#: Numbers of states that a finite model is told.
FINITE = (10, 20, 40)
#: How closely rows of moves follow their parent, how many states are expected, and counts of each letter beforehand.
CONCENTRATION, TOP, LETTERS = 3.0, 5.0, 0.04


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="The report.")] = Path("report.html"),
    as_json: options.AsJson = False,
) -> None:
    """Fit the letters of Alice's Adventures in Wonderland with an unknown number of states, in under a minute.

    The book comes with the package. What the states emit, how well they predict letters that were held out, and a
    report of it all.
    """
    with conversation(as_json) as talk:
        from subchain.cli.writing import check_target

        check_target(output)
        _demo(talk, output)


def _demo(talk: Conversation, output: Path) -> None:
    from subchain import CVI, HDP, HMM, Categorical
    from subchain.cli.states import n_used, show_states

    train, test = _book()
    talk.say("The letters of Alice's Adventures in Wonderland: how many kinds are there?")
    talk.say(f"{train.n_sequences} chunks of 200 letters to learn from, {test.n_sequences} held out")
    talk.say("(learning takes some seconds; the first time on a machine, half a minute is spent on compiling)")
    sys.stdout.flush()
    quiet = False if talk.as_json else "auto"
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
    show_states(talk, model)
    talk.say("\nheld out, log probability of a letter (more is better)")
    rows = [(name + (" (best finite)" if name == best else ""), f"{score:.3f}") for name, score in scores.items()]
    talk.table(["model", "score"], rows, right=(1,))
    talk.say(f"\nthe infinite model took {seconds:.1f} s, compilation included; in Python:")
    talk.say(f"  {str(model).replace(', progress=False', '')}.fit(train)")
    talk.fact(n_states_used=found, scores=scores, best_finite=best, seconds=seconds, python=str(model))
    _report(talk, model, train, output)


def _book() -> tuple[Sequences, Sequences]:
    import numpy as np

    from subchain.datasets import load_alice

    alice = load_alice("characters", "chunks").observations
    order = np.random.default_rng(0).permutation(alice.n_sequences)
    return alice[np.sort(order[TEST:])], alice[np.sort(order[:TEST])]


def _quietly(model: HMM, train: Sequences) -> HMM:
    """Fit without the advice to iterate longer: a demonstration ends before it has to."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(train)


def _score(model: HMM, test: Sequences) -> float:
    return model.score(test) / test.n_observations


def _unigram(train: Sequences, test: Sequences) -> float:
    """Log probability of a held-out letter by its frequency alone."""
    import numpy as np

    counts = np.bincount(train.values, minlength=len(train.vocabulary or ())) + LETTERS
    return float(np.log(counts / counts.sum())[test.values].mean())


def _report(talk: Conversation, model: HMM, train: Sequences, output: Path) -> None:
    import subchain

    subchain.report(model, train, output, title="Alice's Adventures in Wonderland")
    talk.fact(report=str(output))
    talk.say(f"\nreport written to {output}; open it in a browser")
