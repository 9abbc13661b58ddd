"""`python -m experiments`: figures and tables of papers, listed and run, with one page of what came out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subchain.cli import options, run
from subchain.cli.exit_codes import ExitCode
from subchain.cli.options import examples
from subchain.cli.output import Output, command_output

if TYPE_CHECKING:
    from experiments.experiment import Experiment

#: Exit code of a run in which a claim did not hold; the others are those of `subchain`.
REFUTED = 6

DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="FOLDER", help="Where data are; else SUBCHAIN_DATA, else ../shared/data."),
]


def list_experiments(data: DataFolder = None, as_json: options.AsJson = False) -> None:
    """List all experiments: the paper, the figure, and the data that each needs."""
    with command_output(as_json) as out, _data_from(data):
        from experiments.corpora import SOURCES, VARIABLE, data_folder, is_there
        from experiments.registry import EXPERIMENTS

        needed = {corpus for kind in EXPERIMENTS.values() for corpus in kind.needs}
        missing = [corpus for corpus in SOURCES if corpus in needed and not is_there(corpus)]
        rows = [
            (name, kind.heading(), kind.source(), ", ".join(c + (" (missing)" * (c in missing)) for c in kind.needs))
            for name, kind in EXPERIMENTS.items()
        ]
        out.table(["name", "what", "paper", "data"], rows)
        out.add(
            data_folder=str(data_folder()), missing={corpus: SOURCES[corpus] for corpus in missing},
            experiments=[
                {"name": name, "title": kind.heading(), "source": kind.source(), "needs": kind.needs}
                for name, kind in EXPERIMENTS.items()
            ],
        )  # fmt: skip
        if missing:
            out.line(f"\nnot in {data_folder()} (set --data or {VARIABLE}):")
            for corpus in missing:
                out.line(f"  {corpus}: {SOURCES[corpus]}")


def run_experiments(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Which ones; see the list.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and settings, for a look.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", help="Runs of every setting; 3, 10 or 20 if not given.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="SECONDS", help="Time of a run, for experiments that are about time."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder of tables, figures and the page.")
    ] = Path("results"),
    data: DataFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Run experiments. Each leaves a table, a figure and a verdict; a page shows all of the folder.

    The exit code is 3 if data are missing, and 6 if a claim does not hold.
    """
    with command_output(as_json) as out, _data_from(data):
        from experiments.page import write_page
        from experiments.registry import EXPERIMENTS
        from subchain.cli.exit_codes import UnwritableError
        from subchain.errors import InputError, unknown_name

        if bool(names) == everything:
            raise InputError("name the experiments to run, or give --all; `python -m experiments list` has the names.")
        for name in names or ():
            if name not in EXPERIMENTS:
                raise unknown_name("experiment", name, EXPERIMENTS)
        if seeds is not None and seeds < 1:
            raise InputError(f"--seeds must be at least 1, not {seeds}.")
        if budget is not None and not budget > 0.0:
            raise InputError(f"--budget must be a positive number of seconds, not {budget:g}.")
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnwritableError(f"the folder {str(output)!r} cannot be made: {error.strerror}.") from None
        results: list[dict[str, Any]] = []
        try:
            for name in names or EXPERIMENTS:
                own = {} if seeds is None else {"seeds": seeds}
                experiment = EXPERIMENTS[name](quick, tell=lambda line: out.line(f"  {line}"), budget=budget, **own)
                results.append(_run(out, experiment, output))
        except KeyboardInterrupt:
            out.note(f"interrupted; {len(results)} experiments were done before, and the page is about these.")
            out.exit_code = ExitCode.INTERRUPTED
        page = write_page(output)
        out.add(page=str(page), experiments=results)
        out.line(f"\npage written to {page}")


@contextmanager
def _data_from(folder: Path | None) -> Iterator[None]:
    """Look for data in this folder as long as a command runs; the environment is then as it was."""
    from experiments.corpora import VARIABLE

    if folder is None:
        yield
        return
    if not folder.is_dir():
        from subchain.cli.exit_codes import UnreadableError

        raise UnreadableError(
            f"--data {str(folder)!r} is no folder; it should be one that holds a folder for each corpus. `python -m "
            "experiments list` says which are needed, and where they come from."
        )
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _run(out: Output, experiment: Experiment, output: Path) -> dict[str, Any]:
    """One experiment; data that are missing do not keep the others from running."""
    from experiments.corpora import MissingDataError

    out.line(f"\n{experiment.title}")
    try:
        claims = experiment.run(output)
    except MissingDataError as error:
        out.note(f"{experiment.name} was not run: {error}")
        out.exit_code = out.exit_code or ExitCode.UNREADABLE
        return {"name": experiment.name, "run": False, "why": str(error)}
    for claim in claims:
        out.line(f"  {claim}")
    if any(claim.failed for claim in claims):
        out.exit_code = out.exit_code or REFUTED
    shown = [
        {"claim": claim.text, "published": claim.published, "found": claim.evidence, "verdict": claim.verdict}
        for claim in claims
    ]
    return {"name": experiment.name, "run": True, "claims": shown}


app = typer.Typer(
    name="experiments",
    help="Figures and tables of papers, done again.",
    epilog=examples(
        "python -m experiments list",
        "python -m experiments run reversed_cycles --quick",
        "python -m experiments run --all --quick -o results",
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list", epilog=examples("python -m experiments list", "python -m experiments list --json"))(
    list_experiments
)
app.command(
    "run",
    epilog=examples(
        "python -m experiments run sentences --quick --data ~/corpora",
        "python -m experiments run --all --quick -o results",
    ),
)(run_experiments)

if __name__ == "__main__":
    run(lambda: app, "python -m experiments")
