"""`subchain predict`: predict the hidden states of data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from subchain.cli import options, predict_options
from subchain.cli.output import Output, command_output
from subchain.cli.reading_options import Reading, reads_data

if TYPE_CHECKING:
    from subchain.cli.predictions import Predictions

DECODINGS = ("posterior", "viterbi")


@reads_data
def predict(
    model: options.ModelPath,
    data: options.DataPaths,
    output: predict_options.PredictionsPath = None,
    decoding: predict_options.Decoding = "posterior",
    probabilities: predict_options.Probabilities = False,
    join: predict_options.Join = False,
    chrom: predict_options.Chrom = None,
    bin_size: predict_options.BinSize = 1,
    offset: predict_options.Offset = 0,
    colours: predict_options.Colours = True,
    track: predict_options.Track = None,
    *,
    reading: Reading,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict the hidden state of every observation."""
    with command_output(as_json, quiet) as out:
        from subchain.cli.bed import BedFile
        from subchain.cli.inputs import DataSource, described, load_model, read_for
        from subchain.cli.joined import Joined
        from subchain.cli.predictions import Predictions, is_bed, writer_for
        from subchain.cli.targets import check_target
        from subchain.emissions.choice import n_missing_entries
        from subchain.errors import unknown_name

        if decoding not in DECODINGS:
            raise unknown_name("value of --decoding:", decoding, DECODINGS)
        bed = BedFile(chrom, bin_size, offset, colours, track)
        bed.check()
        write = None if output is None else writer_for(output, probabilities, join, bed)
        if output is not None:
            check_target(output, model, *data)
        fitted = load_model(model)
        source = DataSource(data, **reading)
        x = read_for(fitted, source)
        in_segments = output is not None and is_bed(output)
        if output is not None and in_segments:
            bed.check_data(x, output)
        n_missing = n_missing_entries(fitted.family_, x)
        predictions = Predictions(fitted, x, decoding, probabilities, in_segments)
        if join:
            predictions.joined = Joined.of(fitted, x, data)
        out.add(
            n_observations=x.n_observations, n_sequences=x.n_sequences, decoding=decoding,
            state_names=fitted.state_names_, shares=predictions.shares(), n_missing=n_missing,
        )  # fmt: skip
        if write is not None and output is not None:
            write(predictions, output)
            _say_written(out, bed.targets(x, output) if in_segments else [output], described(x, n_missing))
        else:
            _show(out, predictions)


def _show(out: Output, predictions: Predictions) -> None:
    """Print the states."""
    if out.as_json:
        out.add(states=predictions.data.split(predictions.states))
    else:
        predictions.print_table()


def _say_written(out: Output, targets: list[Path], what: str) -> None:
    files = [str(file) for file in targets]
    out.add(output=files[0] if len(files) == 1 else files)
    named = files[0] if len(files) == 1 else f"{len(files)} files, {files[0]} to {files[-1]}"
    out.line(f"states of {what}, written to {named}")
