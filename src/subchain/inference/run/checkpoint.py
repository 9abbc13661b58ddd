"""Where a long run stands, on disk.

A checkpoint holds the states of all restarts, as far as these are small, and what identifies the data and the settings.
It is written after an iteration whenever the last write is long enough ago for writing to cost less than a twentieth of
the time, and at the end. A run that is resumed from it ends in the same bits as one that was never interrupted.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
import warnings
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from subchain.core.checks import path_of
from subchain.core.files import read_arrays, reading, write_arrays
from subchain.core.parts import Point, Posterior, check_alike
from subchain.core.ranges import header_number
from subchain.core.records import FIRST
from subchain.core.statistics import Statistics
from subchain.core.stored_records import RecordReader
from subchain.errors import FileFormatError, InputError
from subchain.inference.run.journey import LEFT_OUT, Journey, Restart, RunSummary
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.trace import Trace, status_of

if TYPE_CHECKING:
    from subchain.inference.run.algorithm import Algorithm
    from subchain.inference.run.problem import Problem

KIND = "checkpoint"
#: Version of what is written; the oldest that is read; and the first with the states of all restarts: files before have
#: those of the best and of the one under way. Since 4 results may leave out what follows from the rest.
VERSION, OLDEST, ALL_RESTARTS = 5, 3, 5
#: Digits of the largest seed of a run, and of the largest entropy that Python reads.
MAX_DIGITS, MAX_ENTROPY_DIGITS = 20, 4300
#: Bytes that the results of all restarts may take beside those of the best and of the one under way.
KEPT_BYTES = 1 << 26
#: Writing may take this share of the time.
SHARE = 0.05
#: Seconds after which one that could not be written is tried again.
AGAIN = 60.0


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
        self.path = path_of("checkpoint", path)
        self.identity = identity
        self.root = root
        self._due = 0.0

    def save(self, journey: Journey, *, force: bool = False) -> None:
        """Write the journey if it is time to, or if forced."""
        began = time.perf_counter()
        if self.path is None or (began < self._due and not force):
            return
        header: dict[str, Any] = {"kind": KIND, "version": VERSION, "identity": self.identity}
        header["entropy"] = str(self.root.entropy)
        header["restarts"], arrays = _pack_restarts(journey)
        try:
            write_arrays(self.path, arrays, header)
        except OSError as error:  # a full disk is no reason to lose the run
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error.strerror or error}); the run goes on.",
                stacklevel=2,
            )
            self._due = time.perf_counter() + AGAIN
            return
        for restart in journey.restarts:
            note = getattr(restart.state.results, "checkpointed", None)
            if note is not None:
                note()
        ended = time.perf_counter()
        self._due = ended + (ended - began) / SHARE

    def check_unused(self) -> None:
        """Raise an `InputError` if there is a file already, which a fit that begins would overwrite."""
        if self.path is not None and os.path.exists(self.path):
            raise InputError(
                f"the checkpoint {self.path} exists already: resume=True continues the fit that wrote it, resume=False "
                "begins again and overwrites it."
            )

    def check(self, resume: bool | None) -> None:
        """Raise an error if there is a file that the fit would refuse later."""
        if resume is None:
            self.check_unused()
        elif resume and self.path is not None and os.path.exists(self.path):
            self._check(read_arrays(self.path, KIND)[1])

    def is_same_fit(self) -> bool:
        """Return whether there is a file, and it is of a fit with this identity."""
        if self.path is None or not os.path.exists(self.path):
            return False
        return self._difference(read_arrays(self.path, KIND)[1]) is None

    def load(self) -> Journey:
        """Read the journey back; one that was ended before its first checkpoint begins afresh."""
        if self.path is None:
            raise InputError("resume=True needs checkpoint=PATH, the file to resume from.")
        if not os.path.exists(self.path):
            warnings.warn(f"there is no checkpoint {self.path} yet; the fit begins afresh.", stacklevel=3)
            return Journey()
        arrays, header = read_arrays(self.path, KIND)
        self._check(header)
        with reading(self.path):
            if header["version"] < ALL_RESTARTS:
                return _earlier(header, arrays)
            restarts = [_unpack_restart(plain, number, arrays) for number, plain in enumerate(header["restarts"])]
            journey = Journey(restarts)
            if not any(restart.has_results for restart in restarts) or (journey.winner and not journey.best):
                raise FileFormatError("no run has results")
            return journey

    def _check(self, header: dict[str, Any]) -> None:
        """Refuse the checkpoint of another fit."""
        with reading(self.path):
            header_number(header, "version")
            header["identity"].items()
        if header["version"] > VERSION:
            raise InputError(f"{self.path} was written by a newer version of subchain; update the package to resume.")
        if header["version"] < OLDEST:
            raise InputError(
                f"{self.path} was written by an earlier version of subchain; finish the run with that version, or "
                "begin again without resume."
            )
        key = self._difference(header)
        if key is not None:
            raise InputError(
                f"{self.path} belongs to another fit: its {key} was {header['identity'].get(key)!r}, "
                f"now it is {self.identity[key]!r}. Resume with the same data and settings, or choose another file."
            )

    def _difference(self, header: dict[str, Any]) -> str | None:
        """Return the first entry of the identity that a file has differently, None if it has them all."""
        stored = header["identity"]
        differing = (key for key, value in self.identity.items() if json.dumps(stored.get(key)) != json.dumps(value))
        return next(differing, None)


def stored_entropy(path: str | os.PathLike[str] | None) -> int | None:
    """The seed of the fit that a checkpoint belongs to, for fits that were given none; None without such a file."""
    path = path_of("checkpoint", path)
    if path is None or not os.path.exists(path):
        return None
    _, header = read_arrays(path, KIND)
    text = header.get("entropy")
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) <= MAX_ENTROPY_DIGITS else None


def check_resumed(problem: Problem, algorithm: Algorithm, state: RunState) -> None:
    """Raise a `FileFormatError` unless the results in a checkpoint have the form of results of the problem.

    A point that was left out is computed from the statistics.
    """
    results, expected = state.results, problem.prior.mean()
    prior = results.prior or problem.prior
    if results.statistics is None or results.reported is None or state.iteration == 0:
        raise FileFormatError("a run has no results")
    statistics, reported, stored_point = results.statistics, results.reported, cast(Point | None, results.point)
    if stored_point is None:
        check_alike(problem.prior.update(reported).mean(), expected, "the statistics and the fit")
        point, _ = algorithm.point(prior.update(reported), reported, None)
        average = None if reported is statistics else reported
        results = state.results = Known(statistics, point, results.memory, average, results.prior)
    point = results.point
    if algorithm.keeps_states:
        check_alike(prior, problem.prior, "the priors of the checkpoint and of the fit", by_shape=False)
    elif point.n_states is not None:
        point, expected = point.take(FIRST), expected.take(FIRST)
    check_alike(point, expected, "the parameters of the checkpoint and of the fit")
    check_alike(statistics, reported, "statistics and their average")
    prior.check_fit(statistics, results.point)
    for name in sorted(algorithm.measured(state.trace)):
        if len(state.trace.measures.get(name, [])) != len(state.trace):
            raise FileFormatError(f"the trace does not have the measure {name} of every iteration")


def _pack_restarts(journey: Journey) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return all restarts as JSON values, and their arrays; leave out results that would take too much."""
    found, arrays, left = list[dict[str, Any]](), dict[str, Any](), KEPT_BYTES
    for number, restart in enumerate(journey.restarts):
        own: dict[str, Any] = {}
        plain = _pack(restart.state, f"run{number}", own)
        if restart in journey.losers:
            left -= sum(np.asarray(array).nbytes for array in own.values())
            if left < 0:
                restart.leave_out()
                own, plain = {}, _pack(restart.state, f"run{number}", {})
        arrays |= own
        summary = None if restart.summary is None else dataclasses.asdict(restart.summary)
        found.append(plain | {"summary": summary})
    return found, arrays


def _unpack_restart(plain: dict[str, Any], number: int, arrays: dict[str, Any]) -> Restart:
    summary = None if plain["summary"] is None else RunSummary.from_json(plain["summary"])
    restart = Restart(_unpack(plain, f"run{number}", arrays), summary)
    if restart.state.results.statistics is None:
        restart.leave_out()
    if summary is None and not restart.has_results:
        raise FileFormatError(f"run {number} goes on, but has no results")
    return restart


def _earlier(header: dict[str, Any], arrays: dict[str, Any]) -> Journey:
    """Return the journey of a file of an earlier version, which has summaries, the best run, and that under way."""
    best, current = (
        None if header[name] is None else _unpack(header[name], name, arrays) for name in ("best", "current")
    )
    summaries = [RunSummary.from_json(summary) for summary in header["runs"]]
    if (best is None) == bool(summaries):
        raise FileFormatError(f"{len(summaries)} runs have ended, but {'none' if best is None else 'one'} is the best")
    journey = Journey([Restart(RunState(LEFT_OUT, status=summary.status), summary) for summary in summaries])
    if best is not None and journey.winner is not None:
        journey.winner.state = best
    if current is not None:
        journey.restarts.append(Restart(current))
    return journey


def _pack(state: RunState, name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {"iteration": state.iteration, "status": state.status, "trace": state.trace.to_json()}
    memory = state.results.memory
    plain |= {"seed": str(state.seed), "memory": sorted(memory)}
    arrays.update({f"{name}.memory.{key}": array for key, array in memory.items()})
    results = state.results
    average = None if results.reported is results.statistics else results.reported
    records: dict[str, Any] = {"statistics": results.statistics, "average": average, "prior": results.prior}
    if not getattr(results, "point_follows", False):
        records["point"] = results.point
    for part, record in records.items():
        plain[part] = None if record is None else record.schema()
        if record is not None:
            arrays.update({f"{name}.{part}.{key}": array for key, array in record.arrays().items()})
    return plain


def _unpack(plain: dict[str, Any], name: str, arrays: dict[str, Any]) -> RunState:
    reader = RecordReader(arrays)
    records: dict[str, Any] = {}
    for part, kind in (("point", Point), ("statistics", Statistics), ("average", Statistics), ("prior", Posterior)):
        records[part] = None if plain.get(part) is None else reader.read(plain[part], f"{name}.{part}", kind=kind)
    trace = Trace.from_json(plain["trace"])
    iteration, status, seed = header_number(plain, "iteration"), plain["status"], plain["seed"]
    if iteration != len(trace):
        raise FileFormatError(f"the trace of {name} has {len(trace)} entries for {iteration} iterations")
    if not (isinstance(seed, str) and seed.isdecimal() and len(seed) <= MAX_DIGITS):
        raise FileFormatError(f"the seed of {name} is {seed!r:.60}, not a whole number")
    memory = {key: arrays[f"{name}.memory.{key}"] for key in plain["memory"]}
    results = Known(records["statistics"], records["point"], memory, records["average"], records["prior"])
    return RunState(results, trace, iteration, None if status is None else status_of(status), int(seed))
