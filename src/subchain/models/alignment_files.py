"""Files of word aligners: the posterior, the words, the settings and the history of the fit; no pickle."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import subchain
from subchain.core.files import check_version, read_arrays, reading, write_arrays
from subchain.core.parts import KINDS
from subchain.core.stored_records import RecordReader
from subchain.errors import FileFormatError
from subchain.inference.run.trace import Trace, status_of
from subchain.models.alignment_settings import READ_WITH, check_settings
from subchain.models.alignment_stages import STAGES, stage_jumps
from subchain.models.settings import build, describe, describe_seed
from subchain.structures.alignment.model import AlignmentPosterior

if TYPE_CHECKING:
    from subchain.models.aligner import WordAligner

    Model = TypeVar("Model", bound=WordAligner)

KIND, VERSION = "word aligner", 2
#: Settings of files that were written before these were offered.
EARLIER: dict[str, Any] = {"end_jumps": False}


def save_aligner(aligner: WordAligner, path: str | os.PathLike[str]) -> None:
    """Write a fitted aligner."""
    given = aligner.get_params(deep=False)
    settings = {name: describe(value, 0) for name, value in given.items() if name not in ("random_state", "progress")}
    settings["random_state"] = describe_seed(aligner.random_state)
    header = {
        "kind": KIND,
        "version": VERSION,
        "subchain": subchain.__version__,
        "settings": settings,
        "read_with": {name: describe(value, 0) for name, value in aligner._read_with.items()},
        "schema": aligner.posterior_.schema(),
        "weights": aligner.kind_,
        "stage": aligner.stage_,
        "source_words": list(aligner.source_words_),
        "target_words": list(aligner.target_words_),
        "status": aligner.status_,
        "traces": [trace.to_json() for trace in aligner.traces_],
    }
    arrays = {f"posterior_.{name}": array for name, array in aligner.posterior_.arrays().items()}
    write_arrays(path, arrays, header)


def load_aligner(kind: type[Model], path: str | os.PathLike[str]) -> Model:
    """Return the aligner of a file, as an object of class `kind`."""
    arrays, header = read_arrays(path, KIND)
    check_version(path, header, VERSION)
    with reading(path):
        aligner = kind(**EARLIER | {name: build(value) for name, value in header["settings"].items()})
        aligner.posterior_ = RecordReader(arrays).read(header["schema"], "posterior_", kind=AlignmentPosterior)
        stage = header["stage"] if "stage" in header else "hmm" if header["is_chain"] is True else "ibm1"
        if header["weights"] not in KINDS or stage not in STAGES:
            raise FileFormatError("the file does not say how text is aligned")
        aligner.kind_, aligner.stage_ = header["weights"], stage
        aligner._check()
        aligner._read_with = _read_with(aligner, header.get("read_with"))
        if stage_jumps(stage, aligner._read_with).counts.shape != aligner.posterior_.jumps.counts.shape:
            raise FileFormatError("the jumps of the file are not those of its settings")
        aligner.source_words_, aligner.target_words_ = _words(header["source_words"]), _words(header["target_words"])
        table = aligner.posterior_.translation
        if (len(aligner.source_words_), len(aligner.target_words_)) != (len(table.null_source), len(table.null_target)):
            raise FileFormatError("the words are not those of the translation table")
        aligner.status_ = status_of(header["status"])
        aligner.traces_ = [Trace.from_json(trace) for trace in header["traces"]]
        aligner.trace_ = aligner.traces_[-1]
        return aligner


def _read_with(aligner: WordAligner, plain: Any) -> dict[str, Any]:
    """Return the settings that the posterior is read with: those of the fit, or of the aligner in an earlier file."""
    settings = aligner.get_params(deep=False)
    if plain is None:
        return {name: settings[name] for name in READ_WITH}
    found = {name: plain[name] for name in READ_WITH}
    check_settings(settings | found)
    return found


def _words(plain: Any) -> list[str]:
    if not isinstance(plain, list) or not all(isinstance(word, str) for word in plain):
        raise FileFormatError("the words of the file are no list of texts")
    return plain
