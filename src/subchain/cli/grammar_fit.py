"""`subchain grammar fit`: learn a grammar from sentences without trees."""

from __future__ import annotations

import time
from typing import Any

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output, number_of

#: Grammars that can be fitted.
KINDS = ("dmv",)
ALGORITHMS = ("em", "vi", "cvi", "svi", "scvi", "gibbs")


def grammar_fit(
    sentences: grammar_options.Sentences,
    output: grammar_options.Output,
    model: grammar_options.Kind = "dmv",
    inference: grammar_options.Inference = "em",
    init: grammar_options.Init = "harmonic",
    hard: grammar_options.Hard = False,
    concentration: grammar_options.Concentration = 0.1,
    stop_concentration: grammar_options.StopConcentration = None,
    root_concentration: grammar_options.RootConcentration = None,
    column: grammar_options.Column = None,
    punctuation: grammar_options.Punctuation = True,
    max_length: grammar_options.MaxLength = None,
    iterations: grammar_options.Iterations = None,
    restarts: grammar_options.Restarts = 1,
    checkpoint: grammar_options.Checkpoint = None,
    resume: grammar_options.Resume = None,
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
        check_target(output, sentences, checkpoint)
        if checkpoint is not None:
            check_target(checkpoint, sentences, output)
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
