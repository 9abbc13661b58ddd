"""`subchain grammar fit`: learn a grammar from sentences without trees."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subchain.cli import grammar_options, options
from subchain.cli.output import command_output

if TYPE_CHECKING:
    from subchain.cli.output import Output

#: Options that are not for all kinds of grammars.
OPTIONS = {
    "rules": ("pcfg",), "nonterminals": ("pcfg",), "preterminals": ("pcfg",), "unit": ("pcfg",),
    "init": ("dmv", "pcfg"), "hard": ("dmv", "pcfg"), "stop_concentration": ("dmv",), "root_concentration": ("dmv",),
    "annotations": ("latent",), "training": ("latent",), "column": ("dmv", "pcfg"), "no_punctuation": ("dmv", "pcfg"),
    "max_length": ("dmv", "pcfg"),
}  # fmt: skip
#: Those that say how sentences are read, and names of settings that are longer than their options'.
OF_DATA = ("column", "no_punctuation", "max_length")
NAMES = {"nonterminals": "n_nonterminals", "preterminals": "n_preterminals", "annotations": "n_annotations"}
ALGORITHMS = ("em", "vi", "cvi", "svi", "scvi", "gibbs", "hastings")


def grammar_fit(
    sentences: grammar_options.Sentences,
    output: grammar_options.Output,
    model: grammar_options.Kind = None,
    rules: grammar_options.Rules = None,
    nonterminals: grammar_options.Nonterminals = None,
    preterminals: grammar_options.Preterminals = None,
    unit: grammar_options.Unit = "word",
    inference: grammar_options.Inference = "em",
    init: grammar_options.Init = None,
    hard: grammar_options.Hard = False,
    concentration: grammar_options.Concentration = None,
    stop_concentration: grammar_options.StopConcentration = None,
    root_concentration: grammar_options.RootConcentration = None,
    annotations: grammar_options.Annotations = None,
    training: grammar_options.Training = None,
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
    """Learn a grammar from sentences without trees, or from a treebank (--model latent).

    Heads of words in the file are not looked at. An interrupted run writes no grammar.
    """
    with command_output(as_json, quiet) as out:
        from subchain.cli.run_log import logging_to
        from subchain.cli.targets import check_target

        kind = _kind(model, rules, nonterminals)
        check_target(output, sentences, checkpoint, rules)
        if checkpoint is not None:
            check_target(checkpoint, sentences, rules)
        given = {
            "rules": rules, "nonterminals": nonterminals, "preterminals": preterminals,
            "unit": unit if unit != "word" else None, "init": init, "hard": hard or None,
            "stop_concentration": stop_concentration, "root_concentration": root_concentration,
            "annotations": annotations, "training": training, "column": column,
            "no_punctuation": None if punctuation else True, "max_length": max_length,
        }  # fmt: skip
        _refuse(kind, given)
        run = {
            "inference": _algorithm(inference), "n_init": restarts, "concentration": concentration,
            "iterations": iterations, "random_state": seed, "n_jobs": jobs,
            "progress": "auto" if not (verbose or quiet or as_json) else False,
        }  # fmt: skip
        known = {name: value for name, value in (run | given).items() if value is not None and name not in OF_DATA}
        settings = {NAMES.get(name, name): value for name, value in known.items()}
        grammar, text = MAKERS[kind](settings, sentences, column, punctuation, max_length)
        for stage in grammar.stage_checkpoints(checkpoint) if kind == "latent" and checkpoint is not None else ():
            check_target(stage, sentences, output)
        began = time.perf_counter()
        with logging_to(log, verbose):
            grammar.fit(text, checkpoint=checkpoint, resume=resume)
        _save(out, grammar, text, output, time.perf_counter() - began)


def _save(out: Output, grammar: Any, text: Any, output: Path, seconds: float) -> None:
    """Write the grammar, unless its fit was interrupted, and say what was learned from what."""
    from subchain.cli.grammar_kinds import learned

    if grammar.status_ == "interrupted":
        raise KeyboardInterrupt
    grammar.save(output)
    objective, (numbers, told) = grammar.trace_.known_objectives(), learned(grammar, text)
    out.add(
        model=str(output), **numbers, objective=objective[-1] if objective else None, status=grammar.status_,
        seconds=seconds,
    )  # fmt: skip
    out.line(f"{told} ({seconds:.1f} s)")
    out.line(f"grammar written to {output}")


def _kind(model: str | None, rules: Path | None, nonterminals: int | None) -> str:
    """Return the kind of grammar that the options mean."""
    from subchain.errors import InputError, unknown_name

    is_free = rules is not None or nonterminals is not None
    found = ("pcfg" if is_free else "dmv") if model is None else model
    if found not in MAKERS:
        raise unknown_name("grammar", found, MAKERS)
    if found == "pcfg" and not is_free:
        raise InputError("a pcfg needs --rules FILE, or --nonterminals N for one that is to be found.")
    return found


def _refuse(kind: str, given: dict[str, Any]) -> None:
    """Raise an `InputError` that names the first option which is for other kinds of grammars."""
    from subchain.errors import InputError

    for name, value in given.items():
        if value is not None and kind not in OPTIONS[name]:
            raise InputError(f"--{name.replace('_', '-')} is for --model {' or '.join(OPTIONS[name])}, not {kind}.")


def _dmv(
    settings: dict[str, Any], path: Path, column: str | None, punctuation: bool, max_length: int | None
) -> tuple[Any, Any]:
    """Return a dependency model and its sentences."""
    from subchain.grammar import DMV

    return DMV(**settings), grammar_options.read_sentences(path, column, punctuation, max_length)


def _pcfg(
    settings: dict[str, Any], path: Path, column: str | None, punctuation: bool, max_length: int | None
) -> tuple[Any, Any]:
    """Return a context-free grammar and its sentences."""
    from subchain.cli.grammar_kinds import read_tokens
    from subchain.cli.inputs import existing
    from subchain.grammar import PCFG

    if "rules" in settings:
        existing(settings["rules"])
    grammar = PCFG(**settings)
    return grammar, read_tokens(path, grammar._unit(), column, punctuation, max_length)


def _latent(
    settings: dict[str, Any], path: Path, column: str | None, punctuation: bool, max_length: int | None
) -> tuple[Any, Any]:
    """Return a grammar with latent annotations, and its treebank."""
    from subchain.grammar import LatentPCFG

    return LatentPCFG(**settings), path


#: Grammars that can be fitted, and what makes them.
MAKERS = {"dmv": _dmv, "pcfg": _pcfg, "latent": _latent}


def _algorithm(text: str) -> Any:
    """Return the name of an algorithm, or what its call gives."""
    from subchain.cli.calls import parse
    from subchain.cli.choices import INFERENCES

    found = parse(text, "--inference", {name: INFERENCES[name] for name in ALGORITHMS})
    return text if text in ALGORITHMS else found.evaluate()
