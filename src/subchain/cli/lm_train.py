"""`subchain lm train`: train a neural HMM on a text with one sentence in each line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.output import command_output

TextPath = Annotated[Path, typer.Argument(metavar="TEXT", help="Text with one sentence in each line.")]
Target = Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="The model file.")]
Validation = Annotated[
    Path | None, typer.Option("--validation", metavar="TEXT", help="Held-out text; the best weights on it are kept.")
]
States = Annotated[int, typer.Option("--states", metavar="K", help="Number of states.")]
Groups = Annotated[
    Path | None,
    typer.Option("--groups", metavar="FILE", help="A word and its group in each line; without it there are no groups."),
]
Features = Annotated[
    int | None, typer.Option("--features", metavar="F", help="Low-rank transitions with so many features.")
]
Embedding = Annotated[int, typer.Option("--embedding", metavar="H", help="Length of embeddings.")]
Epochs = Annotated[int, typer.Option("--epochs", metavar="N", help="Number of passes over the text.")]
Streams = Annotated[int, typer.Option("--streams", metavar="N", help="Streams of text side by side in an update.")]
Length = Annotated[int, typer.Option("--length", metavar="N", help="Words of each stream in an update.")]
Rate = Annotated[float, typer.Option("--learning-rate", metavar="R", help="Largest step size.")]
Dropout = Annotated[float, typer.Option("--state-dropout", metavar="SHARE", help="Share of states left out.")]
Precision = Annotated[str, typer.Option("--precision", help="single, mixed or double.")]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="FILE", help="File for the state of the run after each epoch.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")]
Restart = Annotated[bool, typer.Option("--restart", help="Begin again and overwrite the checkpoint.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]


def lm_train(
    text: TextPath,
    output: Target,
    validation: Validation = None,
    states: States = 1024,
    groups: Groups = None,
    features: Features = None,
    embedding: Embedding = 256,
    epochs: Epochs = 16,
    streams: Streams = 32,
    length: Length = 32,
    learning_rate: Rate = 2e-3,
    state_dropout: Dropout = 0.5,
    precision: Precision = "single",
    checkpoint: Checkpoint = None,
    resume: Resume = False,
    restart: Restart = False,
    seed: options.Seed = 0,
    device: Device = "auto",
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a language model on text with one sentence in each line; words that end sentences count."""
    with command_output(as_json, quiet) as out:
        from subchain.cli.lm_files import read_sentences
        from subchain.cli.targets import check_target
        from subchain.errors import InputError
        from subchain.neural import LowRank, NeuralHMM, Training

        if (resume or restart) and checkpoint is None:
            raise InputError(f"--{'resume' if resume else 'restart'} needs --checkpoint FILE, the file that is meant.")
        if resume and restart:
            raise InputError("--resume and --restart contradict each other: leave one out.")
        check_target(output, text, validation, groups, checkpoint)
        training = Training(
            epochs=epochs, streams=streams, length=length, learning_rate=learning_rate, state_dropout=state_dropout,
            precision=precision,
        )  # fmt: skip
        model = NeuralHMM(
            states, None if groups is None else str(groups), None if features is None else LowRank(features), embedding,
            training, random_state=seed, device=device, progress=not (quiet or as_json),
        )  # fmt: skip
        data = read_sentences(text)
        held_out = None if validation is None else read_sentences(validation, data.vocabulary)
        model.fit(data, validation=held_out, checkpoint=checkpoint, resume=resume if resume or restart else None)
        model.save(output)
        best = min(model.trace_.best) if held_out is not None else None
        out.add(
            model=str(output), n_parameters=model.n_parameters_, n_words=data.n_observations, epochs=len(model.trace_),
            training_perplexity=model.trace_.train[-1], validation_perplexity=best,
        )  # fmt: skip
        out.line(f"{model.n_parameters_} parameters, {len(model.trace_)} epochs over {data.n_observations} words")
        if best is not None:
            out.line(f"validation perplexity {best:.2f}")
        out.line(f"model written to {output}")
