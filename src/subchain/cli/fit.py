"""`subchain fit`: fit a model to files, and print the equivalent Python code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from subchain.cli import fit_options, options
from subchain.cli.exit_codes import ExitCode
from subchain.cli.output import Output, command_output, number_of

if TYPE_CHECKING:
    from subchain.models.hmm import HMM

#: Maximum number of bytes of training marginals in a model file.
MAX_MARGINAL_BYTES = 100_000_000
#: Suffix of model files.
SUFFIX = ".safetensors"


def fit(
    data: options.DataPaths,
    output: fit_options.ModelTarget = None,
    emission: fit_options.Emission = None,
    states: fit_options.States = None,
    infinite: fit_options.Infinite = False,
    max_states: fit_options.MaxStates = None,
    transition: fit_options.Transition = None,
    inference: fit_options.Inference = None,
    max_iter: fit_options.MaxIter = None,
    time_limit: fit_options.TimeLimit = None,
    restarts: fit_options.Restarts = 1,
    init: fit_options.Init = None,
    seed: fit_options.Seed = 0,
    holdout: fit_options.Holdout = None,
    checkpoint: fit_options.Checkpoint = None,
    resume: fit_options.Resume = False,
    jobs: fit_options.Jobs = None,
    unit: options.Unit = None,
    sequences: options.SequenceRule = None,
    lower: options.Lower = None,
    columns: options.Columns = None,
    sequence: options.SequenceColumn = None,
    array: options.Array = None,
    format: options.Format = None,
    lengths: options.Lengths = None,
    header: options.Header = None,
    separator: options.Separator = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit a model to data. Options that are not given are chosen; the equivalent Python code is printed.

    Ctrl-C ends the run; the model of the last complete iteration is written.
    """
    with command_output(as_json) as out:
        from subchain.cli.calls import Call
        from subchain.cli.choices import ModelOptions, check_options
        from subchain.cli.inputs import DataSource, name_of
        from subchain.cli.targets import check_target
        from subchain.errors import InputError

        model_options = ModelOptions(
            emission, states, infinite, max_states, transition, inference, time_limit, max_iter, init, restarts, seed,
            jobs,
        )  # fmt: skip
        check_options(model_options)
        if resume and checkpoint is None:
            raise InputError("--resume needs --checkpoint FILE, the file to continue from.")
        target = output or Path(f"{name_of(data[0])}{SUFFIX}")
        check_target(target, *data)
        settings: dict[str, Any] = {}
        if holdout is not None:
            settings["validation"] = Call("HoldOut", (holdout,))
        if checkpoint is not None:
            check_target(checkpoint, *data, target)
            settings["checkpoint"] = str(checkpoint)
        if resume:
            settings["resume"] = True
        source = DataSource(data, unit, sequences, lower, columns, sequence, array, format, lengths, header, separator)
        _fit(out, model_options, source, settings, target)


def _fit(out: Output, model_options: Any, source: Any, settings: dict[str, Any], target: Path) -> None:
    from subchain.cli.calls import Call, script
    from subchain.cli.choices import choose
    from subchain.cli.inputs import described
    from subchain.cli.states import show_states, summary
    from subchain.emissions import n_missing_entries, resolve_emission

    read = source.call()
    data = read.evaluate()
    choices = choose(model_options, data)
    model: HMM = choices.model.evaluate()
    marginals = model.inference.kept_bytes(data.lengths, model.n_states) <= MAX_MARGINAL_BYTES  # type: ignore[union-attr]
    if not marginals:
        choices.reasons.append("the posterior marginals of the training data are too large for the model file.")
    program = script(read, choices.model, settings, str(target), marginals)
    emission = resolve_emission(model.emission)
    n_missing = n_missing_entries(emission, emission.prepare(data))
    out.line(described(data, n_missing))
    out.add(n_observations=data.n_observations, n_missing=n_missing)
    for reason in choices.reasons:
        out.note(reason)
    out.line(f"\n{program}\n")
    if out.as_json:
        model.progress = False
    made = {key: value.evaluate() if isinstance(value, Call) else value for key, value in settings.items()}
    try:
        model.fit(data, **made)
    except KeyboardInterrupt:
        out.fail(ExitCode.INTERRUPTED, "interrupted before the first complete iteration; no model was written.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _save(model, target, marginals)
    out.add(model=str(target), python=program, **summary(model))
    _print_status(out, model)
    show_states(out, model)
    out.line(f"\nmodel written to {target}")
    if model.status_ == "interrupted":
        out.exit_code = ExitCode.INTERRUPTED


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
