"""Checkpoints of a word aligner: one file a stage, which belongs to the data, the prior and earlier stages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from subchain.data.digest import digest
from subchain.data.parallel_text import ParallelText
from subchain.errors import InputError
from subchain.inference import Algorithm
from subchain.inference.run.checkpoint import Checkpoint
from subchain.models.settings import describe
from subchain.structures.alignment.model import AlignmentPosterior


class StageFile(NamedTuple):
    """Checkpoint of one stage: its file, if there is one; whether to go on from it; and what it belongs to."""

    path: Path | None
    resume: bool | None
    identity: dict[str, Any]


def stage_identities(
    stages: Sequence[str],
    algorithms: Sequence[Algorithm],
    text: ParallelText,
    settings: dict[str, Any],
    known: AlignmentPosterior | None,
    known_stage: str | None,
) -> list[dict[str, Any]]:
    """Return what the checkpoint of each stage belongs to, but for the statistics that the stage starts from."""
    common = {
        "prior": None
        if known is None
        else digest([known_stage, known.arrays()]),  # before the data, whose codes depend on it
        "data": digest([text.source_tokens, text.source_offsets, text.target_tokens, text.target_offsets]),
        "settings": {name: value for name, value in settings.items() if name != "n_jobs"},
    }
    found: list[dict[str, Any]] = []
    earlier: list[dict[str, Any]] = []
    for stage, algorithm in zip(stages, algorithms, strict=True):
        inference = _plain(algorithm.identity())
        found.append(common | {"stage": stage, "inference": inference, "earlier stages": list(earlier) or None})
        run = {name: value for name, value in algorithm.get_params(deep=False).items() if name != "time_limit"}
        earlier.append({"stage": stage, "inference": inference | _plain(run)})
    return found


def stage_files(
    checkpoint: str | os.PathLike[str],
    resume: bool | None,
    identities: list[dict[str, Any]],
    root: np.random.SeedSequence,
) -> list[StageFile]:
    """Return the checkpoints of all stages; raise an `InputError`, before anything is fitted, if one does not fit."""
    found, missing = list[StageFile](), None
    for number, identity in enumerate(identities):
        path = Path(f"{os.fspath(checkpoint)}.{number + 1}")
        if resume and path.exists() and missing is not None:
            raise InputError(
                f"there is {path}, but not {missing}, the checkpoint of the stage before; bring that back, or begin "
                "again with resume=False."
            )
        Checkpoint(path, identity, root).check(resume)
        if not path.exists():
            missing = path
        found.append(StageFile(path, None if resume and missing else resume, identity))
    return found


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as JSON values."""
    return {name: describe(value, 0) for name, value in settings.items()}
