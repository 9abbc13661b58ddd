"""`subchain fit`: fit a model to files, and print the equivalent Python code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from subchain.cli import fit_options, options
from subchain.cli.exit_codes import ExitCode
from subchain.cli.output import Output, command_output, number_of
from subchain.cli.reading_options import Reading, reads_data
from subchain.cli.settings_file import write_settings

if TYPE_CHECKING:
    from subchain.models.hmm import HMM

#: Maximum number of bytes of training marginals in a model file.
MAX_MARGINAL_BYTES = 100_000_000
#: Suffix of model files.
SUFFIX = ".safetensors"


@reads_data
def fit(
    context: typer.Context,
    data: options.DataPaths,
    output: fit_options.ModelTarget = None,
    emission: fit_options.Emission = None,
    groups: fit_options.Groups = None,
    states: fit_options.States = None,
    infinite: fit_options.Infinite = False,
    max_states: fit_options.MaxStates = None,
    transition: fit_options.Transition = None,
    inference: fit_options.Inference = None,
    max_iter: fit_options.MaxIter = None,
    tolerance: fit_options.Tolerance = None,
    time_limit: fit_options.TimeLimit = None,
    restarts: fit_options.Restarts = 1,
    init: fit_options.Init = None,
    seed: fit_options.Seed = 0,
    holdout: fit_options.Holdout = None,
    checkpoint: fit_options.Checkpoint = None,
    resume: fit_options.Resume = False,
    restart: fit_options.Restart = False,
    jobs: fit_options.Jobs = None,
    *,
    reading: Reading,
    settings: fit_options.Settings = None,
    save_settings: fit_options.SaveSettings = None,
    log: options.Log = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a model to data. Options that are not given are chosen; the equivalent Python code is printed.

    Ctrl-C ends the run; the model of the last complete iteration is written. SIGTERM does the same.
    """
    with command_output(as_json, quiet) as out:
        from subchain.cli.choices import ModelOptions, check_options
        from subchain.cli.inputs import DataSource
        from subchain.cli.run_log import logging_to
        from subchain.cli.targets import check_target
        from subchain.data.standard_input import name_of

        model_options = ModelOptions(
            emission, states, infinite, max_states, transition, inference, time_limit, max_iter, init, restarts, seed,
            jobs, tolerance, None if groups is None else str(groups),
        )  # fmt: skip
        check_options(model_options)
        target = output or Path(f"{name_of(data[0])}{SUFFIX}")
        check_target(target, *data)
        arguments = _arguments(holdout, checkpoint, resume, restart, (*data, target))
        source = DataSource(data, **reading)
        if save_settings is not None:
            check_target(save_settings, *data, target, checkpoint)
            write_settings(context, save_settings)
        with logging_to(log, verbose):
            _fit(out, model_options, source, arguments, target, "auto" if not (verbose or quiet) else False)


def _arguments(
    holdout: float | None, checkpoint: Path | None, resume: bool, restart: bool, other: tuple[Path, ...]
) -> dict[str, Any]:
    """Return the arguments of `HMM.fit`; raise an `InputError` for a checkpoint that would be overwritten."""
    from subchain.cli.calls import Call
    from subchain.cli.targets import check_target
    from subchain.errors import InputError

    arguments: dict[str, Any] = {} if holdout is None else {"validation": Call("HoldOut", (holdout,))}
    if (resume or restart) and checkpoint is None:
        raise InputError(f"--{'resume' if resume else 'restart'} needs --checkpoint FILE, the file that is meant.")
    if resume and restart:
        raise InputError("--resume and --restart contradict each other: leave one out.")
    if checkpoint is not None:
        check_target(checkpoint, *other)
        if checkpoint.exists() and not (resume or restart):
            raise InputError(
                f"the checkpoint {str(checkpoint)!r} exists already: --resume continues the fit that wrote it, "
                "--restart begins again and overwrites it."
            )
        arguments["checkpoint"] = str(checkpoint)
    if resume or restart:
        arguments["resume"] = resume
    return arguments


def _fit(
    out: Output, model_options: Any, source: Any, arguments: dict[str, Any], target: Path, progress: bool | str
) -> None:
    from subchain.cli.calls import Call, script
    from subchain.cli.choices import choose
    from subchain.cli.inputs import described
    from subchain.cli.states import show_restarts, show_states, summary
    from subchain.emissions import resolve_emission
    from subchain.emissions.choice import n_missing_entries
    from subchain.inference.run.progress import is_shown

    read = source.call()
    data = read.evaluate()
    choices = choose(model_options, data)
    model: HMM = choices.model.evaluate()
    model.progress = False if out.as_json else progress
    marginals = model.inference.kept_bytes(data.lengths, model.n_states) <= MAX_MARGINAL_BYTES  # type: ignore[union-attr]
    if not marginals:
        choices.reasons.append("the posterior marginals of the training data are too large for the model file.")
    program = script(read, choices.model, arguments, str(target), marginals)
    emission = resolve_emission(model.emission)
    n_missing = n_missing_entries(emission, emission.prepare(data))
    out.line(described(data, n_missing))
    out.add(n_observations=data.n_observations, n_missing=n_missing)
    for reason in choices.reasons:
        out.note(reason)
    out.line(f"\n{program}\n")
    sys.stdout.flush()
    made = {key: value.evaluate() if isinstance(value, Call) else value for key, value in arguments.items()}
    try:
        model.fit(data, **made)
    except KeyboardInterrupt:
        out.fail(ExitCode.INTERRUPTED, _why_nothing(arguments.get("checkpoint")))
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _save(model, target, marginals)
    out.add(model=str(target), python=program, **summary(model))
    _print_status(out, model)
    if not is_shown(model.progress):  # else the table is on the terminal already
        show_restarts(out, model)
    show_states(out, model)
    out.line(f"\nmodel written to {target}")
    if model.status_ == "interrupted":
        out.exit_code = ExitCode.INTERRUPTED


def _why_nothing(checkpoint: str | None) -> str:
    """Return the message for a fit that was interrupted before its first iteration, or a second time."""
    kept = "" if checkpoint is None or not Path(checkpoint).exists() else f" Continue from {checkpoint} with --resume."
    return f"interrupted before the first complete iteration, or twice; no model was written.{kept}"


def _save(model: HMM, target: Path, marginals: bool) -> None:
    """Write the model; if that fails, write it to a temporary folder, because the fit may have taken hours."""
    from subchain.cli.exit_codes import UnwritableError, explain
    from subchain.cli.targets import write_elsewhere

    try:
        model.save(target, marginals=marginals)
    except OSError as error:
        rescued = write_elsewhere(target.name, lambda path: model.save(path, marginals=False))
        if rescued is None:
            raise
        raise UnwritableError(f"{explain(error)[1]} The model was saved to {str(rescued)!r} instead.") from None


def _print_status(out: Output, model: HMM) -> None:
    """Print the end of the run and the held-out score."""
    from subchain.cli.states import ENDS

    trace = model.trace_
    seconds = trace.seconds[-1] if trace.seconds else 0.0
    out.line(f"{ENDS[model.status_]} after {number_of(len(trace), 'iteration')}, {seconds:.1f} s")
    if trace.validation:
        out.line(f"held-out log probability per observation: {trace.validation[-1]:.4f}")
