"""Model files: exact, versioned, without pickle.

A model file is a safetensors file with the arrays of parameters, prior and statistics, and a JSON header with settings,
state names, vocabularies and the history of the run.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import subchain
from subchain.core.files import check_version, read_arrays, reading, write_arrays
from subchain.core.ranges import header_number, probabilities, stored
from subchain.core.records import Record
from subchain.core.samples import Samples
from subchain.core.stored_records import RecordReader
from subchain.data import Vocabulary
from subchain.data.mapped import MappedFile, intact
from subchain.emissions import Emission
from subchain.engines import Cpu
from subchain.engines.statistics import HMMStatistics
from subchain.errors import FileFormatError
from subchain.inference.run.journey import RunSummary
from subchain.inference.run.trace import Trace, status_of
from subchain.inference.run.training import TrainingMarginals
from subchain.models.settings import build, describe, describe_seed
from subchain.structures.chain.model import HMMPoint, HMMPosterior

if TYPE_CHECKING:
    from subchain.models.hmm import HMM

    Model = TypeVar("Model", bound=HMM)

KIND = "model"
VERSION = 2
#: Records of a file, in the order in which they are read, and those that not every file has.
RECORDS: dict[str, type[Record]] = {
    "point_": HMMPoint, "prior_": HMMPosterior, "statistics_": HMMStatistics, "training_marginals_": TrainingMarginals,
}  # fmt: skip
OPTIONAL = ("training_marginals_",)


def save_model(model: HMM, path: str | os.PathLike[str], *, marginals: bool = True) -> None:
    """Write a fitted model; `marginals` includes the training marginals and samples."""
    arrays: dict[str, Any] = {}
    has_marginals = marginals and model.training_marginals_ is not None
    records = [name for name in RECORDS if has_marginals or name not in OPTIONAL]
    for name in records:
        arrays.update({f"{name}.{key}": array for key, array in getattr(model, name).arrays().items()})
    if marginals and model.samples_ is not None:
        arrays.update({f"samples_.{key}": array for key, array in model.samples_.items()})
    if model.end_marginal_ is not None:
        arrays["end_marginal"] = model.end_marginal_
    n_states = model.n_states_
    settings = {
        name: describe(value, n_states)
        for name, value in model.get_params(deep=False).items()
        if name not in ("init", "random_state", "progress") and (name != "engine" or isinstance(value, str | Cpu))
    }
    settings["init"] = model.init if isinstance(model.init, str) else "auto"
    settings["random_state"] = describe_seed(model.random_state)
    header = {
        "kind": KIND,
        "version": VERSION,
        "subchain": subchain.__version__,
        "settings": settings,
        "family": describe(model.family_, n_states),
        "schemas": {name: getattr(model, name).schema() for name in records},
        "state_names": list(model.state_names_),
        "vocabularies": [_plain_vocabulary(vocabulary) for vocabulary in model.vocabularies_],
        "columns": None if model.columns_ is None else list(model.columns_),
        "grouped_by": model.grouped_by_,
        "n_sequences": model.n_sequences_,
        "n_batches": model.n_batches_,
        "status": model.status_,
        "trace": model.trace_.to_json(),
        "runs": [dataclasses.asdict(run) for run in model.runs_],
    }
    if has_marginals:
        entries = "training_marginals_.entries"
        file = MappedFile.of(arrays[entries])
        if file is not None:  # of CVI(storage=...); a file that is cut must not be saved as zeros
            with intact(file):
                arrays[entries] = np.array(arrays[entries])
    write_arrays(path, arrays, header)


def load_model(kind: type[Model], path: str | os.PathLike[str]) -> Model:
    """Return the model of a file, as an object of class `kind`."""
    arrays, header = read_arrays(path, KIND)
    check_version(path, header, VERSION)
    with reading(path):
        if header["version"] == 1:
            arrays, header = _from_version_1(arrays, header)
        return _restore(kind, arrays, header)


def _restore(kind: type[Model], arrays: dict[str, Any], header: dict[str, Any]) -> Model:
    """Return the model with these arrays and this header, both of the current version."""
    model = kind(**{name: build(value) for name, value in header["settings"].items()})
    reader, schemas = RecordReader(arrays), header["schemas"]
    for name, record_kind in RECORDS.items():
        if name in schemas or name not in OPTIONAL:
            setattr(model, name, reader.read(schemas[name], name, kind=record_kind))
    model.prior_.check_fit(model.statistics_, model.point_)
    model.family_ = build(header["family"])
    if not (isinstance(model.family_, Emission) and model.family_.describes(model.point_.emission)):
        raise FileFormatError(f"the family {model.family_!r:.60} does not have the parameters of the file")
    model.n_states_ = len(model.point_.chain.initial)
    model.state_names_ = [str(name) for name in header["state_names"]]
    model.vocabularies_ = tuple(_vocabulary(plain) for plain in header["vocabularies"])
    model.columns_ = None if header["columns"] is None else tuple(_text(name) for name in header["columns"])
    model.grouped_by_ = None if header.get("grouped_by") is None else _text(header["grouped_by"])
    model.n_sequences_, model.n_batches_ = header_number(header, "n_sequences"), header_number(header, "n_batches")
    if "end_marginal" in arrays:
        model.end_marginal_ = stored(arrays, "end_marginal", probabilities(), (model.n_states_,))
    if model.training_marginals_ is not None and model.training_marginals_.n_states != model.n_states_:
        raise FileFormatError(f"training_marginals_ have {model.training_marginals_.n_states} states")
    draws = {key.removeprefix("samples_."): array for key, array in arrays.items() if key.startswith("samples_.")}
    model.samples_ = Samples.from_file(draws, model.n_states_) if draws else None
    model.status_ = status_of(header["status"])
    model.trace_ = Trace.from_json(header["trace"])
    model.runs_ = [RunSummary.from_json(run) for run in header["runs"]]
    return model


#: Current names of records, settings and arrays by their names in files of version 1.
_RECORDS_OF_1 = {
    "TrainingBeliefs": "TrainingMarginals",
    "Point": "HMMPoint",
    "ModelPosterior": "HMMPosterior",
    "Statistics": "HMMStatistics",
}
_SETTINGS_OF_1 = {"together": "cluster_size", "left": "neighbour_weighting"}
_SETTINGS_OF_EM = ("max_iter", "tolerance", "time_limit", "patience")
_OF_WHOLE_PASSES = ("max_iter", "tolerance")
_ARRAYS_OF_1 = {"beliefs_": "training_marginals_", "end_belief": "end_marginal"}


def _from_version_1(arrays: dict[str, Any], header: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arrays and header of a file of version 1 with the current names."""

    def translated(value: Any) -> Any:
        if isinstance(value, dict) and value.get("component") == "EM":
            is_whole, settings = value["settings"].get("batch") is None, value["settings"]
            names = _SETTINGS_OF_EM if is_whole else [name for name in settings if name not in _OF_WHOLE_PASSES]
            value = value | {"settings": {name: settings[name] for name in names}}
        if isinstance(value, dict):
            return {_SETTINGS_OF_1.get(name, name): translated(inner) for name, inner in value.items()}
        return [translated(inner) for inner in value] if isinstance(value, list) else value

    def schema(given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        found: dict[str, Any] = {
            name: _RECORDS_OF_1.get(inner, inner) if name == "record" else schema(inner)
            for name, inner in given.items()
        }
        if found.get("record") == "HMMStatistics":
            fields = found["fields"]
            counts = {name: fields.pop(name) for name in ("initial", "pairs")}
            fields["chain"] = {"record": "ChainSums", "fields": counts}
        return found

    header = header | {
        "settings": translated(header["settings"]),
        "schemas": {_ARRAYS_OF_1.get(name, name): schema(given) for name, given in header["schemas"].items()},
    }
    renamed = {}
    for name, array in arrays.items():
        first, dot, rest = name.partition(".")
        if first == "statistics_" and rest in ("initial", "pairs"):
            rest = f"chain.{rest}"
        renamed[_ARRAYS_OF_1.get(first, first) + dot + rest] = array
    return renamed, header


def _text(plain: Any) -> str:
    if not isinstance(plain, str):
        raise FileFormatError(f"the name of a column is {plain!r:.60}, not a text")
    return plain


def _plain_vocabulary(vocabulary: Vocabulary | None) -> dict[str, Any] | None:
    return None if vocabulary is None else {"symbols": vocabulary.to_list(), "unknown": vocabulary.unknown}


def _vocabulary(plain: dict[str, Any] | None) -> Vocabulary | None:
    return None if plain is None else Vocabulary(plain["symbols"], unknown=plain["unknown"])
