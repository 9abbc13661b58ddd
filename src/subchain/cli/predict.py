"""`subchain predict`: predict the hidden states of data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from subchain.cli import options
from subchain.cli.output import command_output, number_of

BED = "Segments (.bed)"


def predict(
    model: options.ModelPath,
    data: options.DataPaths,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="OUT",
            help="Output file, .csv, .tsv, .npy, .txt, .parquet or .bed ('{sequence}.bed': one for each sequence); "
            "without it a table is printed to standard output.",
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
        bool, typer.Option("--probabilities", help="Include state probabilities (.npy: only these).")
    ] = False,
    chrom: Annotated[
        str | None,
        typer.Option(
            "--chrom", metavar="A,B,...",
            help="Chromosome of each sequence; the sequences' names by default. A single chromosome needs a single "
            "sequence, or one file per sequence: -o '{sequence}.bed'.",
            rich_help_panel=BED,
        ),
    ] = None,
    bin_size: Annotated[
        int, typer.Option("--bin", metavar="BASES", help="Number of bases per position.", rich_help_panel=BED)
    ] = 1,
    offset: Annotated[
        int,
        typer.Option("--offset", metavar="BASES", help="First base of each sequence.", rich_help_panel=BED),
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
            "--track", metavar="NAME", help="Write a track line for genome browsers, with this name.",
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
    """Predict the hidden state of every observation."""
    with command_output(as_json) as out:
        from subchain.cli.bed import BedFile
        from subchain.cli.inputs import DataSource, load_model, read_for
        from subchain.cli.predictions import Predictions, is_bed, writer_for
        from subchain.cli.targets import check_target
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
        x = read_for(fitted, DataSource(data, unit, sequences, lower, columns, sequence, array))
        in_segments = output is not None and is_bed(output)
        if output is not None and in_segments:
            bed.check_data(x, output)
        predictions = Predictions(fitted, x, decoding, probabilities, in_segments)
        out.add(
            n_observations=x.n_observations, n_sequences=x.n_sequences, decoding=decoding,
            state_names=fitted.state_names_, shares=predictions.shares(),
        )  # fmt: skip
        if write is not None and output is not None:
            write(predictions, output)
            files = [str(file) for file in (bed.targets(x, output) if in_segments else [output])]
            out.add(output=files[0] if len(files) == 1 else files)
            where = f"{number_of(x.n_observations, 'observation')} in {number_of(x.n_sequences, 'sequence')}"
            named = files[0] if len(files) == 1 else f"{len(files)} files, {files[0]} to {files[-1]}"
            out.line(f"states of {where} written to {named}")
        elif out.as_json:
            out.add(states=x.split(predictions.states))
        else:
            predictions.print_table()
