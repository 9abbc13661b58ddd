"""`subchain grammar fit`: learn a grammar from sentences without trees."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from subchain.cli import grammar_options, options
from subchain.cli.grammar_options import MODEL, RUN
from subchain.cli.output import command_output, number_of

#: Grammars that can be fitted.
KINDS = ("dmv",)
ALGORITHMS = ("em", "vi", "cvi", "svi", "scvi", "gibbs")


def grammar_fit(
    sentences: grammar_options.Sentences,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="GRAMMAR", help="File of the fitted grammar.")],
    model: Annotated[
        str,
        typer.Option("--model", metavar="NAME", rich_help_panel=MODEL, help="dmv, the dependency model with valence."),
    ] = "dmv",
    inference: Annotated[
        str,
        typer.Option(
            "--inference",
            metavar="ALGORITHM",
            rich_help_panel=MODEL,
            help="em, vi, cvi, svi, scvi or gibbs, or a call such as 'CVI(max_iter=20)'.",
        ),
    ] = "em",
    init: Annotated[
        str, typer.Option("--init", metavar="NAME", rich_help_panel=MODEL, help="harmonic, random or uniform.")
    ] = "harmonic",
    hard: Annotated[
        bool, typer.Option("--hard", rich_help_panel=MODEL, help="Count the best trees instead of expectations (em).")
    ] = False,
    concentration: Annotated[
        float, typer.Option("--concentration", metavar="A", rich_help_panel=MODEL, help="Of the priors of all rules.")
    ] = 0.1,
    stop_concentration: Annotated[
        float | None, typer.Option("--stop-concentration", metavar="A", rich_help_panel=MODEL, help="Of stopping.")
    ] = None,
    root_concentration: Annotated[
        float | None, typer.Option("--root-concentration", metavar="A", rich_help_panel=MODEL, help="Of the root.")
    ] = None,
    column: grammar_options.Column = None,
    punctuation: grammar_options.Punctuation = True,
    max_length: grammar_options.MaxLength = None,
    iterations: Annotated[
        int | None,
        typer.Option(
            "--iterations", metavar="N", rich_help_panel=RUN, help="Iterations, passes or draws: 40, for gibbs 200."
        ),
    ] = None,
    restarts: Annotated[
        int, typer.Option("--restarts", metavar="N", rich_help_panel=RUN, help="Starts, with --init random.")
    ] = 1,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", rich_help_panel=RUN, help="Keep the state of the run in a file."),
    ] = None,
    resume: Annotated[
        bool | None,
        typer.Option("--resume/--restart", rich_help_panel=RUN, help="Continue from the checkpoint, or begin again."),
    ] = None,
    seed: options.Seed = 0,
    jobs: grammar_options.Jobs = None,
    log: options.Log = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Learn a grammar from sentences without trees.

    Heads in the file are not looked at. An interrupted run writes no grammar.
    """
    with command_output(as_json, quiet) as out:
        from subchain.cli.run_log import logging_to
        from subchain.cli.targets import check_target
        from subchain.errors import unknown_name

        if model not in KINDS:
            raise unknown_name("grammar", model, KINDS)
        algorithm = _algorithm(inference)
        check_target(output, sentences)
        text = grammar_options.read_sentences(sentences, column, punctuation, max_length)
        began = time.perf_counter()
        grammar = _grammar()(
            inference=algorithm, init=init, n_init=restarts, hard=hard, concentration=concentration,
            root_concentration=root_concentration, stop_concentration=stop_concentration, iterations=iterations,
            random_state=seed, n_jobs=jobs, progress="auto" if not (verbose or quiet or as_json) else False,
        )  # fmt: skip
        with logging_to(log, verbose):
            grammar.fit(text, checkpoint=checkpoint, resume=resume)
        if grammar.status_ == "interrupted":
            raise KeyboardInterrupt
        grammar.save(output)
        seconds, objective = time.perf_counter() - began, grammar.trace_.known_objectives()
        out.add(
            model=str(output), n_sentences=len(text), n_words=int(text.lengths.sum()), n_tags=len(grammar.tags_),
            objective=objective[-1] if objective else None, status=grammar.status_, seconds=seconds,
        )  # fmt: skip
        words = f"{number_of(int(text.lengths.sum()), 'word')}, {number_of(len(grammar.tags_), 'tag')}"
        out.line(f"{number_of(len(text), 'sentence')}, {words} ({seconds:.1f} s)")
        out.line(f"grammar written to {output}")


def _grammar() -> Any:
    from subchain.grammar import DMV

    return DMV


def _algorithm(text: str) -> Any:
    """Return the name of an algorithm, or what its call gives."""
    from subchain.cli.calls import parse
    from subchain.cli.choices import INFERENCES

    found = parse(text, "--inference", {name: INFERENCES[name] for name in ALGORITHMS})
    return text if text in ALGORITHMS else found.evaluate()
