"""`subchain fit`: learn a model from files, and say in Python what was done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subchain.cli import options
from subchain.cli.conversation import Conversation, conversation, number_of
from subchain.cli.exits import Status

if TYPE_CHECKING:
    from subchain.models.hmm import HMM

MODEL = "The model"
RUN = "The run"
#: Bytes of marginals of the training data that go into a model file.
LARGEST_BELIEFS = 100_000_000
#: What the names of model files end in.
SUFFIX = ".safetensors"


def fit(
    data: options.DataPaths,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="MODEL", help="The model file; DATA.safetensors here if not given."),
    ] = None,
    emission: Annotated[
        str | None,
        typer.Option(
            "--emission",
            metavar="FAMILY",
            rich_help_panel=MODEL,
            help="categorical, gaussian, diagonal_gaussian, poisson, bernoulli, or a call such as 'Categorical(0.1)'; "
            "by the kind of data if not given.",
        ),
    ] = None,
    states: Annotated[
        int | None, typer.Option("--states", metavar="K", help="Exactly so many states.", rich_help_panel=MODEL)
    ] = None,
    infinite: Annotated[
        bool,
        typer.Option(
            "--infinite", help="Find out how many states there are; so it is without --states.", rich_help_panel=MODEL
        ),
    ] = False,
    max_states: Annotated[
        int | None,
        typer.Option("--max-states", metavar="K", help="At most so many; 30 if not given.", rich_help_panel=MODEL),
    ] = None,
    transition: Annotated[
        str | None,
        typer.Option(
            "--transition",
            metavar="PRIOR",
            rich_help_panel=MODEL,
            help="dirichlet, hdp, or a call such as 'HDP(stickiness=10)'.",
        ),
    ] = None,
    inference: Annotated[
        str | None,
        typer.Option(
            "--inference",
            metavar="ALGORITHM",
            rich_help_panel=RUN,
            help="vi, em, cvi, svi, scvi, gibbs, beam, or a call such as 'CVI(max_iter=50)'; if not given cvi for "
            "symbols and vi for numbers, scvi and svi for more than a million symbols or three million numbers.",
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option("--max-iter", metavar="N", help="At most so many iterations.", rich_help_panel=RUN),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="SECONDS", help="End after so many seconds.", rich_help_panel=RUN),
    ] = None,
    restarts: Annotated[
        int, typer.Option("--restarts", metavar="N", help="Runs from different starts.", rich_help_panel=RUN)
    ] = 1,
    init: Annotated[
        str | None,
        typer.Option(
            "--init", metavar="START", help="auto, kmeans, context, random, exponential.", rich_help_panel=RUN
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random numbers.", rich_help_panel=RUN)] = 0,
    holdout: Annotated[
        float | None,
        typer.Option(
            "--holdout", metavar="SHARE", help="Hold a share of the positions out, and score them.", rich_help_panel=RUN
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="Keep the state of the run there.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.", rich_help_panel=RUN)] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Processor cores; all if not given.", rich_help_panel=RUN)
    ] = None,
    unit: options.Unit = None,
    sequences: options.SequenceRule = None,
    lower: options.Lower = None,
    columns: options.Columns = None,
    sequence: options.SequenceColumn = None,
    array: options.Array = None,
    as_json: options.AsJson = False,
) -> None:
    """Learn a model from data. What is not said is chosen, and told as a Python call.

    Ctrl-C ends the run; the model of the last whole iteration is written.
    """
    with conversation(as_json) as talk:
        from subchain.cli.calls import Call
        from subchain.cli.choices import Wishes, check_wishes
        from subchain.cli.inputs import Reading
        from subchain.cli.writing import check_target
        from subchain.errors import InputError

        wishes = Wishes(
            emission, states, infinite, max_states, transition, inference, time_limit, max_iter, init, restarts, seed,
            jobs,
        )  # fmt: skip
        check_wishes(wishes)
        if resume and checkpoint is None:
            raise InputError("--resume needs --checkpoint FILE, the file to go on from.")
        target = output or Path(f"{data[0].resolve().name.partition('.')[0]}{SUFFIX}")
        check_target(target, *data)
        settings: dict[str, Any] = {}
        if holdout is not None:
            settings["validation"] = Call("HoldOut", (holdout,))
        if checkpoint is not None:
            check_target(checkpoint, *data, target)
            settings["checkpoint"] = str(checkpoint)
        if resume:
            settings["resume"] = True
        _fit(talk, wishes, Reading(data, unit, sequences, lower, columns, sequence, array), settings, target)


def _fit(talk: Conversation, wishes: Any, reading: Any, settings: dict[str, Any], target: Path) -> None:
    from subchain.cli.calls import Call, script
    from subchain.cli.choices import choose
    from subchain.cli.states import show_states, summary

    read = reading.call()
    data = read.make()
    choices = choose(wishes, data)
    model: HMM = choices.model.make()
    marginals = model.inference.kept_bytes(data.lengths, model.n_states) <= LARGEST_BELIEFS  # type: ignore[union-attr]
    if not marginals:
        choices.reasons.append("what the run believes of each position is too large to go into the model file.")
    program = script(read, choices.model, settings, str(target), marginals)
    talk.say(
        f"{number_of(data.n_observations, 'observation')} in {number_of(data.n_sequences, 'sequence')}, "
        f"{number_of(data.n_features, 'column')}"
    )
    for reason in choices.reasons:
        talk.remark(reason)
    talk.say(f"\n{program}\n")
    if talk.as_json:
        model.progress = False
    made = {key: value.make() if isinstance(value, Call) else value for key, value in settings.items()}
    try:
        model.fit(data, **made)
    except KeyboardInterrupt:
        talk.fail(Status.INTERRUPTED, "interrupted before the first whole iteration; no model was written.")
        raise typer.Exit(Status.INTERRUPTED) from None
    _save(model, target, marginals)
    talk.fact(model=str(target), python=program, **summary(model))
    _tell_end(talk, model)
    show_states(talk, model)
    talk.say(f"\nmodel written to {target}")
    if model.status_ == "interrupted":
        talk.status = Status.INTERRUPTED


def _save(model: HMM, target: Path, marginals: bool) -> None:
    """Write the model; if there is no room for it, elsewhere, for what was learned may have taken hours."""
    from subchain.cli.exits import UnwritableError, explain
    from subchain.cli.writing import somewhere_else

    try:
        model.save(target, marginals=marginals)
    except OSError as error:
        rescued = somewhere_else(target.name, lambda path: model.save(path, marginals=False))
        if rescued is None:
            raise
        raise UnwritableError(f"{explain(error)[1]} The model itself is safe in {str(rescued)!r}.") from None


def _tell_end(talk: Conversation, model: HMM) -> None:
    from subchain.cli.states import ENDS

    trace = model.trace_
    seconds = trace.seconds[-1] if trace.seconds else 0.0
    talk.say(f"{ENDS[model.status_]} after {number_of(len(trace), 'iteration')}, {seconds:.1f} s")
    if trace.validation:
        talk.say(f"held out, log probability of an observation: {trace.validation[-1]:.4f}")
