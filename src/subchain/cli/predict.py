"""`subchain predict`: the hidden states of data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.conversation import conversation, number_of

BED = "Segments (.bed)"


def predict(
    model: options.ModelPath,
    data: options.DataPaths,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="OUT",
            help="A file that ends in .csv, .tsv, .npy, .txt, .parquet or .bed ('{sequence}.bed': one for each "
            "sequence); without it a table goes to standard output.",
        ),
    ] = None,
    decoding: Annotated[
        str,
        typer.Option(
            "--decoding", metavar="RULE",
            help="posterior (the most probable state of each position) or viterbi (the most probable path).",
        ),
    ] = "posterior",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also, or in .npy files only, the probability of each state.")
    ] = False,
    chrom: Annotated[
        str | None,
        typer.Option(
            "--chrom", metavar="A,B,...",
            help="Chromosome of each sequence; the sequences' names if not given. One chromosome is for one sequence, "
            "or for a file each: -o '{sequence}.bed'.",
            rich_help_panel=BED,
        ),
    ] = None,
    bin_size: Annotated[
        int, typer.Option("--bin", metavar="BASES", help="Bases that a position stands for.", rich_help_panel=BED)
    ] = 1,
    offset: Annotated[
        int,
        typer.Option("--offset", metavar="BASES", help="Base at which sequences begin.", rich_help_panel=BED),
    ] = 0,
    colours: Annotated[
        bool,
        typer.Option(
            "--colours/--no-colours",
            help="Nine columns with a score (1000 times the mean probability) and a colour, or four: chromosome, "
            "start, end, state.",
            rich_help_panel=BED,
        ),
    ] = True,
    track: Annotated[
        str | None,
        typer.Option(
            "--track", metavar="NAME", help="A first line for genome browsers, with a name for the track.",
            rich_help_panel=BED,
        ),
    ] = None,
    unit: options.Unit = None,
    sequences: options.SequenceRule = None,
    lower: options.Lower = None,
    columns: options.Columns = None,
    sequence: options.SequenceColumn = None,
    array: options.Array = None,
    as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Find the hidden state of every observation."""
    with conversation(as_json) as talk:
        from subchain.cli.answers import Answers, is_bed, writer_for
        from subchain.cli.inputs import Reading, load_model, read_for
        from subchain.cli.segments import BedFile
        from subchain.cli.writing import check_target
        from subchain.errors import unknown_name

        known = ("posterior", "viterbi")
        if decoding not in known:
            raise unknown_name("value of --decoding:", decoding, known)
        bed = BedFile(chrom, bin_size, offset, colours, track)
        bed.check()
        write = None
        if output is not None:
            write = writer_for(output, probabilities, bed)
            check_target(output, model, *data)
        fitted = load_model(model)
        x = read_for(fitted, Reading(data, unit, sequences, lower, columns, sequence, array))
        in_segments = output is not None and is_bed(output)
        if output is not None and in_segments:
            bed.check_data(x, output)
        answers = Answers(fitted, x, decoding, probabilities, in_segments)
        talk.fact(
            n_observations=x.n_observations, n_sequences=x.n_sequences, decoding=decoding,
            state_names=fitted.state_names_, shares=answers.shares(),
        )  # fmt: skip
        if write is not None and output is not None:
            write(answers, output)
            files = [str(file) for file in (bed.targets(x, output) if in_segments else [output])]
            talk.fact(output=files[0] if len(files) == 1 else files)
            where = f"{number_of(x.n_observations, 'observation')} in {number_of(x.n_sequences, 'sequence')}"
            named = files[0] if len(files) == 1 else f"{len(files)} files, {files[0]} to {files[-1]}"
            talk.say(f"states of {where} written to {named}")
        elif talk.as_json:
            talk.fact(states=x.split(answers.states))
        else:
            answers.print_table()
