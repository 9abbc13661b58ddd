"""`subchain select`: fit models with different numbers of states, and keep the best."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from subchain.cli import fit_options, options
from subchain.cli.exit_codes import ExitCode
from subchain.cli.output import Output, command_output
from subchain.cli.reading_options import Reading, reads_data

if TYPE_CHECKING:
    from subchain.cli.calls import Call
    from subchain.selection.states import Selection

#: Criteria by the names on the command line, and what they are called in a table.
CRITERIA = {"bic": "BIC", "aic": "AIC", "held-out": "log probability per held-out observation", "bound": "bound"}


@reads_data
def select(
    data: options.DataPaths,
    output: fit_options.ModelTarget = None,
    states: Annotated[
        str, typer.Option("--states", metavar="FROM-TO", help="Numbers of states to try: 2-8, or 2,4,8.")
    ] = "2-8",
    criterion: Annotated[
        str,
        typer.Option("--criterion", metavar="NAME", help="bic, aic, held-out (cross-validation) or bound."),
    ] = "bic",
    folds: Annotated[int, typer.Option("--folds", metavar="N", help="Number of folds for held-out.")] = 5,
    emission: fit_options.Emission = None,
    transition: fit_options.Transition = None,
    inference: fit_options.Inference = None,
    max_iter: fit_options.MaxIter = None,
    tolerance: fit_options.Tolerance = None,
    restarts: fit_options.Restarts = 3,
    init: fit_options.Init = None,
    seed: fit_options.Seed = 0,
    jobs: fit_options.Jobs = None,
    *,
    reading: Reading,
    log: options.Log = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose the number of states: fit each, compare by a criterion, write the best model."""
    with command_output(as_json, quiet) as out:
        from subchain.cli.calls import Call
        from subchain.cli.choices import ModelOptions, check_options, choose
        from subchain.cli.fit import SUFFIX
        from subchain.cli.inputs import DataSource
        from subchain.cli.run_log import logging_to
        from subchain.cli.targets import check_target
        from subchain.data.standard_input import name_of
        from subchain.errors import unknown_name

        sizes = numbers_of_states(states)
        if criterion not in CRITERIA:
            raise unknown_name("value of --criterion:", criterion, CRITERIA)
        model_options = ModelOptions(
            emission, max(sizes), False, None, transition, inference, None, max_iter, init, 1, seed, jobs, tolerance
        )
        check_options(model_options)
        target = output or Path(f"{name_of(data[0])}{SUFFIX}")
        check_target(target, *data)
        read = DataSource(data, **reading).call()
        x = read.evaluate()
        choices = choose(model_options, x)
        for reason in choices.reasons:
            out.note(reason)
        call = Call("select_states").with_settings(
            states=sizes, criterion=criterion.replace("-", "_"), model=choices.model,
            cv=folds if criterion == "held-out" else None, n_init=restarts, random_state=seed,
        )  # fmt: skip
        with logging_to(log, verbose):
            _select(out, read, call, target, x, "auto" if not (verbose or quiet or as_json) else False)


def _select(out: Output, read: Call, call: Call, target: Path, x: object, progress: bool | str) -> None:
    from subchain import select_states
    from subchain.cli.calls import imports
    from subchain.cli.states import show_states, summary

    arguments = ", ".join(
        f"{key}={value!r}" if key != "model" else f"model={value}" for key, value in call.settings.items()
    )
    program = "\n".join([
        imports(read, call), "", f"data = {read}", f"selection = select_states(data, {arguments})",
        f"selection.best_.save({str(target)!r})",
    ])  # fmt: skip
    out.line(f"\n{program}\n")
    sys.stdout.flush()
    settings = dict(call.settings)
    model = settings.pop("model").evaluate()
    model.progress = progress
    try:
        selection = select_states(x, model=model, **settings)
    except KeyboardInterrupt:
        out.fail(ExitCode.INTERRUPTED, "interrupted before all numbers of states were tried; no model was written.")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    selection.best_.save(target)
    out.add(
        model=str(target), python=program, criterion=selection.criterion, n_states=selection.n_states,
        table=[row._asdict() for row in selection.table], best=summary(selection.best_),
    )  # fmt: skip
    _print_selection(out, selection)
    show_states(out, selection.best_)
    out.line(f"\nmodel written to {target}")


def _print_selection(out: Output, selection: Selection) -> None:
    """Print the criterion of each number of states."""
    from subchain.tasks.numbers import rounded

    decimals = 4 if selection.criterion == "held_out" else 1
    rows = [
        (
            row.n_states, rounded(row.best, decimals), rounded(row.mean, decimals), rounded(row.spread, decimals),
            rounded(row.effective, 1), "chosen" if row.n_states == selection.n_states else "",
        )
        for row in selection.table
    ]  # fmt: skip
    better = "smaller" if selection.criterion in ("bic", "aic") else "larger"
    out.line(f"{CRITERIA[selection.criterion.replace('_', '-')]} by number of states ({better} is better)")
    out.table(["states", "best", "mean", "sd", "in use", ""], rows, right=(0, 1, 2, 3, 4))


def numbers_of_states(text: str) -> list[int]:
    """Return the numbers that an option names: a range such as 2-8, or several such as 2,4,8.

    Examples
    --------
    >>> numbers_of_states("2-5"), numbers_of_states("2,4,8")
    ([2, 3, 4, 5], [2, 4, 8])
    """
    from subchain.errors import InputError

    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(f"--states must be a range such as 2-8, or numbers such as 2,4,8, not {text!r}.")
        found += range(int(first), int(last or first) + 1)
    if not found or min(found) < 1 or len(set(found)) < len(found):
        raise InputError(f"--states must name different numbers of at least 1, not {text!r}.")
    return found
