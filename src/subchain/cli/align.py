"""`subchain align`: link the words of sentence pairs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subchain.cli import align_options, options
from subchain.cli.output import command_output, number_of

if TYPE_CHECKING:
    from subchain.data import Links, ParallelText

#: Stages of fitting, by the model that links are taken from.
STAGES = {"ibm1": ("ibm1",), "diagonal": ("diagonal",), "hmm": ("ibm1", "hmm")}
#: Methods by which the two directions are combined.
SYMMETRIZATIONS = ("product", "grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union")


def align(
    source: align_options.Source,
    target: align_options.Target = None,
    output: align_options.LinksTarget = None,
    format: align_options.Format = "pharaoh",
    symmetrize: align_options.Symmetrize = None,
    threshold: align_options.Threshold = None,
    lowercase: align_options.Lowercase = False,
    columns: align_options.Columns = None,
    model: align_options.Model = "hmm",
    inference: align_options.Inference = None,
    iterations: align_options.Iterations = None,
    agreement: align_options.Agreement = True,
    priors: align_options.Priors = None,
    fitted: align_options.Fitted = None,
    save: align_options.Save = None,
    seed: options.Seed = 0,
    jobs: align_options.Jobs = None,
    log: options.Log = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Link the words of sentence pairs that translate each other.

    Both directions are fitted to the text and combined. Line n of the output has the links of pair n. A pair with an
    empty sentence has none. An interrupted run writes nothing.
    """
    with command_output(as_json, quiet) as out:
        from subchain.cli.run_log import logging_to
        from subchain.cli.targets import check_target

        settings = {
            "symmetrize": symmetrize, "threshold": threshold, "stages": STAGES.get(model), "random_state": seed,
            "agreement": agreement, "iterations": iterations, "n_jobs": jobs,
        }  # fmt: skip
        _check(format, symmetrize, model, inference, priors, fitted, save)
        for path in (output, save):
            if path is not None:
                check_target(path, source, target, priors, fitted)
        began = time.perf_counter()
        text = _read(source, target, columns, lowercase)
        progress = "auto" if not (verbose or quiet or as_json) else False
        with logging_to(log, verbose):
            if fitted is not None:
                aligner = _load(fitted).set_params(**_given(symmetrize=symmetrize, threshold=threshold, n_jobs=jobs))
                links = aligner.links(text)
            else:
                aligner = _fit(text, inference, priors, progress, settings)
                links = aligner.links()
        if save is not None:
            aligner.save(save)
        if output is not None or not as_json:
            _write(output, links, format)
        seconds = time.perf_counter() - began
        out.add(
            output=None if output is None else str(output), n_pairs=len(text), n_links=len(links.source),
            seconds=seconds, pairs_per_second=len(text) / seconds,
        )  # fmt: skip
        if output is not None:
            rate = f"{seconds:.1f} s, {len(text) / seconds:,.0f} pairs per second"
            out.line(f"{number_of(len(links.source), 'link')} of {number_of(len(text), 'sentence pair')} ({rate})")
            out.line(f"links written to {output}")
        elif as_json:
            out.add(links=[pair.tolist() for pair in links])


def _check(format: str, symmetrize: str | None, model: str, inference: str | None, *files: Path | None) -> None:
    """Raise an `InputError` for options that are unknown or contradict each other, before anything is read."""
    from subchain.cli.inputs import existing
    from subchain.data.links import FORMATS
    from subchain.errors import InputError, unknown_name

    priors, fitted, save = files
    for option, value, known in (
        ("--format", format, FORMATS), ("--symmetrize", symmetrize, SYMMETRIZATIONS), ("--model", model, STAGES),
    ):  # fmt: skip
        if value is not None and value not in known:
            raise unknown_name(f"value of {option}:", value, known)
    if inference is not None:
        _algorithm(inference)
    if fitted is not None and (priors is not None or save is not None or inference is not None):
        raise InputError("--fitted fits nothing; leave out --priors, --save and --inference.")
    for path in (priors, fitted):
        if path is not None:
            existing(path)


def _algorithm(text: str) -> Any:
    from subchain.cli.calls import parse
    from subchain.cli.choices import INFERENCES

    return parse(text, "--inference", {name: INFERENCES[name] for name in ("cvi", "em", "vi", "scvi", "gibbs")})


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _read(source: Path, target: Path | None, columns: str | None, lowercase: bool) -> ParallelText:
    from subchain.cli.inputs import existing
    from subchain.data import read_parallel
    from subchain.errors import InputError

    for path in (source, target):
        if path is not None:
            existing(path)
    chosen: tuple[str, str] | None = None
    if columns is not None:
        first, comma, second = columns.partition(",")
        if not comma or "," in second:
            raise InputError(f"--columns must name two columns, as in --columns en,fr, not {columns!r}.")
        chosen = first.strip(), second.strip()
    text = read_parallel(source, target, lowercase=lowercase, columns=chosen)
    if not len(text.source_tokens) or not len(text.target_tokens):
        raise InputError("the text has no words on one of its sides; give files that are not empty.")
    return text


def _load(path: Path) -> Any:
    from subchain import alignment

    return alignment.WordAligner.load(path)


def _fit(
    text: ParallelText, inference: str | None, priors: Path | None, progress: bool | str, settings: dict[str, Any]
) -> Any:
    """Return the aligner fitted to the text; an interrupted fit ends the command."""
    from subchain import alignment

    algorithm = None if inference is None else _algorithm(inference).evaluate()
    aligner = alignment.WordAligner(progress=progress, **_given(inference=algorithm, **settings))
    aligner.fit(text, **_given(prior=None if priors is None else _load(priors)))
    if getattr(aligner, "status_", None) == "interrupted":
        raise KeyboardInterrupt
    return aligner


def _write(output: Path | None, links: Links, format: str) -> None:
    from subchain.data.links import write_lines, write_links

    if output is None:
        write_lines(links, sys.stdout.write, format)
    else:
        write_links(output, links, format)
