"""`subchain compare`: held-out scores of several models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from subchain.cli import options
from subchain.cli.output import command_output
from subchain.cli.reading_options import Reading, reads_data

if TYPE_CHECKING:
    from subchain.models.hmm import HMM


@reads_data
def compare(
    paths: Annotated[
        list[Path], typer.Argument(metavar="MODEL DATA", help="Model files, and last the data to score them by.")
    ],
    *,
    reading: Reading,
    as_json: options.AsJson = False,
) -> None:
    """Score models on the same data, best first. Use data that none of them was fitted to."""
    with command_output(as_json) as out:
        from subchain.cli.inputs import DataSource, load_model, read_for
        from subchain.cli.states import n_used
        from subchain.errors import InputError

        *files, data = paths
        if not files:
            raise InputError("compare needs at least one model, and then the data: MODEL... DATA.")
        source = DataSource([data], **reading)
        models = [load_model(file) for file in files]
        _check_measures(files, models)
        found: list[dict[str, Any]] = []
        for file, model in zip(files, models, strict=True):
            x = read_for(model, source)
            score = model.score(x) / x.n_observations
            found.append({
                "model": str(file), "score": score, "n_states": model.n_states_, "n_states_used": n_used(model),
                "n_parameters": model.n_parameters_, "n_observations": x.n_observations,
            })  # fmt: skip
        found.sort(key=lambda entry: -entry["score"])
        out.add(best=found[0]["model"], models=found)
        if not _are_alike(models):
            out.note("the models have different families or vocabularies, so their scores are not comparable.")
        rows = [
            ("" if place else "best", Path(e["model"]).name, f"{e['score']:.5f}", e["n_states_used"], e["n_parameters"])
            for place, e in enumerate(found)
        ]
        out.line(f"log probability per observation, {found[0]['n_observations']} observations of {data}")
        out.table(["", "model", "score", "states", "parameters"], rows, right=(2, 3, 4))


def _check_measures(files: list[Path], models: list[HMM]) -> None:
    """Raise an `InputError` if some scores are probabilities and others densities, which depend on units."""
    from subchain.emissions.densities import density_columns
    from subchain.errors import InputError

    measures = [density_columns(model.family_, model.emission_) for model in models]
    for file, model, measure in zip(files, models, measures, strict=True):
        same_columns = len(measure) == len(measures[0])
        if measure != measures[0] if same_columns else set(measure) != set(measures[0]):
            raise InputError(
                f"{files[0]} ({type(models[0].family_).__name__}) and {file} ({type(model.family_).__name__}) cannot "
                "be ranked: one scores a column by probabilities, the other by densities, which depend on its unit. "
                "Compare models whose families are of one kind."
            )


def _are_alike(models: list[HMM]) -> bool:
    """Return whether the models have the same family and vocabularies, so that scores are comparable."""
    first = models[0]
    return all(
        type(model.family_) is type(first.family_) and model.vocabularies_ == first.vocabularies_ for model in models
    )
