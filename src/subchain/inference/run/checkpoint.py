"""Where a long run stands, on disk.

A checkpoint holds the state of the run that is going on, the best run so far, and what identifies the data and the
settings. It is written after an iteration whenever the last write is long enough ago for writing to cost less than a
twentieth of the time, and at the end. A run that is resumed from it ends in the same bits as one that was never
interrupted.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import warnings
from typing import Any

import numpy as np

from subchain.core.files import read_arrays, write_arrays
from subchain.core.records import build_record
from subchain.errors import FileFormatError, InputError, SubchainError
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.trace import Status, Trace

KIND = "checkpoint"
VERSION = 3
#: Writing may take this share of the time.
SHARE = 0.05
#: Seconds after which one that could not be written is tried again.
AGAIN = 60.0


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """How one restart ended."""

    objective: float
    status: Status
    iterations: int


@dataclasses.dataclass
class Journey:
    """All restarts of a fit: those that ended, the best of them, the one under way; and whether it was cut short."""

    summaries: list[RunSummary] = dataclasses.field(default_factory=list)
    best: RunState | None = None
    current: RunState | None = None
    interrupted: bool = False


class Checkpoint:
    """Writes and reads the journey of one fit.

    Parameters
    ----------
    path : file, or None for no checkpoint
    identity : what must agree between the interrupted and the resumed fit
    root : where its random numbers come from
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, identity: dict[str, Any], root: np.random.SeedSequence
    ) -> None:
        self.path = path
        self.identity = identity
        self.root = root
        self._due = 0.0

    def save(self, journey: Journey, *, force: bool = False) -> None:
        """Write the journey if it is time to, or if forced."""
        began = time.perf_counter()
        if self.path is None or (began < self._due and not force):
            return
        arrays: dict[str, Any] = {}
        header: dict[str, Any] = {"kind": KIND, "version": VERSION, "identity": self.identity}
        header["entropy"] = str(self.root.entropy)
        header["runs"] = [dataclasses.asdict(summary) for summary in journey.summaries]
        for name, state in (("best", journey.best), ("current", journey.current)):
            header[name] = None if state is None else _pack(state, name, arrays)
        try:
            write_arrays(self.path, arrays, header)
        except OSError as error:  # a full disk is no reason to lose the run
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error.strerror or error}); the run goes on.",
                stacklevel=2,
            )
            self._due = time.perf_counter() + AGAIN
            return
        for state in (journey.best, journey.current):
            note = getattr(None if state is None else state.results, "checkpointed", None)
            if note is not None:
                note()
        ended = time.perf_counter()
        self._due = ended + (ended - began) / SHARE

    def load(self) -> Journey:
        """Read the journey back; one that was ended before its first checkpoint begins afresh."""
        if self.path is None:
            raise InputError("resume=True needs checkpoint=PATH, the file to resume from.")
        if not os.path.exists(self.path):
            warnings.warn(f"there is no checkpoint {self.path} yet; the fit begins afresh.", stacklevel=3)
            return Journey()
        arrays, header = read_arrays(self.path, KIND)
        try:
            self._check(header)
            best, current = (
                None if header[name] is None else _unpack(header[name], name, arrays) for name in ("best", "current")
            )
            return Journey([RunSummary(**summary) for summary in header["runs"]], best, current)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            if isinstance(error, SubchainError):
                raise
            raise FileFormatError(f"{self.path} is damaged: its header does not fit its arrays ({error!r}).") from None

    def _check(self, header: dict[str, Any]) -> None:
        """Refuse the checkpoint of another fit."""
        if header["version"] > VERSION:
            raise InputError(f"{self.path} was written by a newer version of subchain; update the package to resume.")
        if header["version"] < VERSION:
            raise InputError(
                f"{self.path} was written by an earlier version of subchain; finish the run with that version, or "
                "begin again without resume."
            )
        for key, value in self.identity.items():
            if json.dumps(header["identity"].get(key)) != json.dumps(value):
                raise InputError(
                    f"{self.path} belongs to another fit: its {key} was {header['identity'].get(key)!r}, "
                    f"now it is {value!r}. Resume with the same data and settings, or choose another file."
                )


def stored_entropy(path: str | os.PathLike[str] | None) -> int | None:
    """The seed of the fit that a checkpoint belongs to, for fits that were given none; None without such a file."""
    if path is None or not os.path.exists(path):
        return None
    _, header = read_arrays(path, KIND)
    text = header.get("entropy")
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _pack(state: RunState, name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {"iteration": state.iteration, "status": state.status, "trace": state.trace.to_json()}
    memory = state.results.memory
    plain |= {"seed": str(state.seed), "memory": sorted(memory)}
    arrays.update({f"{name}.memory.{key}": array for key, array in memory.items()})
    results = state.results
    average = None if results.reported is results.statistics else results.reported
    records = {"statistics": results.statistics, "point": results.point, "average": average, "prior": results.prior}
    for part, record in records.items():
        plain[part] = None if record is None else record.schema()
        if record is not None:
            arrays.update({f"{name}.{part}.{key}": array for key, array in record.arrays().items()})
    return plain


def _unpack(plain: dict[str, Any], name: str, arrays: dict[str, Any]) -> RunState:
    records: dict[str, Any] = {
        part: None if plain.get(part) is None else build_record(plain[part], arrays, f"{name}.{part}.")
        for part in ("statistics", "point", "average", "prior")
    }
    for record in records.values():
        if record is not None and records["point"].n_states is not None:
            record.check_states(records["point"].n_states)
    trace = Trace.from_json(plain["trace"])
    memory = {key: arrays[f"{name}.memory.{key}"] for key in plain["memory"]}
    results = Known(records["statistics"], records["point"], memory, records["average"], records["prior"])
    return RunState(results, trace, plain["iteration"], plain["status"], int(plain["seed"]))
