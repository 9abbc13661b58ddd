"""`subchain lm sample`: text that a language model generates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.output import command_output

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file by `subchain lm train`.")]
Number = Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of words.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]


def lm_sample(
    model: ModelPath, number: Number = 100, seed: options.Seed = 0, device: Device = "auto",
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Generate text, one sentence in each line."""
    with command_output(as_json) as out:
        from subchain.cli.lm_files import END, known_words, load_language_model

        fitted = load_language_model(model, device)
        known_words(fitted)
        words = [str(word) for word in fitted.decode(fitted.sample(number, seed).observations)]
        sentences: list[list[str]] = [[]]
        for word in words:
            if word == END:
                sentences.append([])
            else:
                sentences[-1].append(word)
        lines = [" ".join(sentence) for sentence in sentences if sentence]
        out.add(sentences=lines)
        for line in lines:
            out.line(line)
