"""Checkpoints: the state of a run after an epoch, from which it goes on in the same bits."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any

import torch

from subchain.core.files import check_version, read_arrays, reading, write_arrays
from subchain.core.ranges import header_number
from subchain.errors import FileFormatError, InputError
from subchain.neural.files import checked_tensors, plain_tensors, plain_trace, stored_trace
from subchain.neural.training import RunMemory, Trainer

KIND, VERSION = "neural checkpoint", 1
#: Largest seed, exclusive.
SEEDS = 1 << 32


def write(path: str | os.PathLike[str], trainer: Trainer, identity: Mapping[str, Any]) -> None:
    """Write the state of a run after an epoch; warn if the disk is full, which is no reason to lose the run."""
    memory = trainer.memory()
    arrays = plain_tensors("networks", memory.networks) | plain_tensors("best", memory.best)
    arrays |= plain_tensors("averaged", memory.averaged or {}) | plain_trace(memory.trace)
    for number, moments in memory.optimizer.items():
        arrays |= plain_tensors(f"optimizer.{number}", moments)
    header = {
        "kind": KIND, "version": VERSION, "identity": dict(identity), "updates": memory.updates, "rate": memory.rate,
        "seed": trainer.seed,
    }  # fmt: skip
    try:
        write_arrays(path, arrays, header)
    except OSError as error:
        warnings.warn(
            f"the checkpoint {os.fspath(path)!r} could not be written ({error.strerror or error}); the run goes on.",
            stacklevel=2,
        )


def read(path: str | os.PathLike[str], trainer: Trainer, identity: Mapping[str, Any]) -> None:
    """Have a run go on from a checkpoint; raise an `InputError` if it is one of another model or other data."""
    arrays, header = read_arrays(path, KIND)
    check_version(path, header, VERSION)
    theirs, ours = header.get("identity"), json.loads(json.dumps(dict(identity)))
    if theirs != ours:
        known = theirs if isinstance(theirs, dict) else {}
        wrong = [name for name, value in ours.items() if known.get(name) != value]
        raise InputError(
            f"the checkpoint {os.fspath(path)!r} belongs to another run: {', '.join(wrong) or 'its settings'} differ. "
            "Use the settings and data of that run, or another checkpoint file."
        )
    with reading(path):
        own, kind = trainer.networks.state_dict(), trainer.kind
        averaged = None if trainer.averaged is None else checked_tensors(arrays, "averaged", own, kind)
        moments = {}
        for number, parameter in enumerate(trainer.networks.parameters()):
            shapes = {"step": torch.empty(()), "exp_avg": parameter, "exp_avg_sq": parameter}
            moments[number] = checked_tensors(arrays, f"optimizer.{number}", shapes, kind)
            moments[number]["step"] = moments[number]["step"].float()
        trace, updates, rate = stored_trace(arrays), header_number(header, "updates"), header["rate"]
        if updates != len(trace) * trainer.updates_of_epoch or not isinstance(rate, float) or not 0.0 <= rate < 1e9:
            raise FileFormatError("its number of updates or its step size cannot be right")
        trainer.restore(
            RunMemory(
                checked_tensors(arrays, "networks", own, kind), averaged, checked_tensors(arrays, "best", own, kind),
                moments, trace, updates, rate,
            )
        )  # fmt: skip


def stored_seed(path: str | os.PathLike[str]) -> int:
    """Return the seed of the run that a checkpoint belongs to."""
    _, header = read_arrays(path, KIND)
    check_version(path, header, VERSION)
    with reading(path):
        return header_number(header, "seed", SEEDS - 1)
