"""Files of models and checkpoints: safetensors with a JSON header, checked before they are used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from subchain.core.files import read_arrays, write_arrays
from subchain.data.vocabulary import Vocabulary
from subchain.errors import FileFormatError, InputError
from subchain.neural.training import NeuralTrace, Trainer
from subchain.neural.transitions import LowRank, Softmax

#: Kinds of files.
MODEL, CHECKPOINT = "neural model", "neural checkpoint"
VERSION = 1
#: Tensors that AdamW keeps for each parameter.
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
TRACE = ("train", "validation", "averaged", "learning_rate", "seconds")

Arrays = Mapping[str, NDArray[Any]]


def plain_tensors(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return tensors as arrays whose names begin with a prefix."""
    return {f"{prefix}.{name}": value.detach().cpu().numpy() for name, value in tensors.items()}


def tensors_in(arrays: Arrays, prefix: str) -> dict[str, Tensor]:
    """Return the tensors of arrays whose names begin with a prefix."""
    start = f"{prefix}."
    return {name[len(start) :]: torch.tensor(value) for name, value in arrays.items() if name.startswith(start)}


def load_into(module: nn.Module, arrays: Arrays, prefix: str, path: Any) -> None:
    """Give a module the tensors of a file; raise a `FileFormatError` if they are not its own."""
    tensors, own = tensors_in(arrays, prefix), module.state_dict()
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    if shapes != {name: tuple(value.shape) for name, value in own.items()}:
        raise FileFormatError(f"{path} is damaged: its networks ({prefix}) do not have the shapes of its settings.")
    if not all(bool(torch.isfinite(value).all()) for value in tensors.values()):
        raise FileFormatError(f"{path} is damaged: its networks ({prefix}) hold numbers that are not finite.")
    module.load_state_dict(tensors)


def plain_transition(transition: Softmax | LowRank) -> dict[str, Any]:
    """Return a transition as JSON values."""
    features = int(transition.features) if isinstance(transition, LowRank) else None
    return {"name": type(transition).__name__, "features": features}


def transition_from(plain: Any) -> Softmax | LowRank:
    """Return the transition of JSON values."""
    return LowRank(plain["features"]) if plain["name"] == "LowRank" else Softmax()


def plain_vocabulary(vocabulary: Vocabulary | None) -> Any:
    """Return a vocabulary as JSON values."""
    return None if vocabulary is None else {"symbols": vocabulary.to_list(), "unknown": vocabulary.unknown}


def vocabulary_from(plain: Any) -> Vocabulary | None:
    """Return the vocabulary of JSON values."""
    return None if plain is None else Vocabulary(plain["symbols"], unknown=plain["unknown"])


def write_checkpoint(path: str | os.PathLike[str], trainer: Trainer, identity: Mapping[str, Any]) -> None:
    """Write the state of a run after an epoch."""
    state = trainer.state()
    arrays = plain_tensors("networks", state["networks"]) | plain_tensors("best", state["best"])
    if state["averaged"] is not None:
        arrays |= plain_tensors("averaged", state["averaged"])
    for number, moments in state["optimizer"]["state"].items():
        arrays |= plain_tensors(f"optimizer.{number}", moments)
    for name in TRACE:
        arrays[f"trace.{name}"] = np.array(state["trace"][name], dtype=np.float64)
    header = {
        "kind": CHECKPOINT, "version": VERSION, "identity": dict(identity), "updates": state["updates"],
        "rate": state["rate"],
    }  # fmt: skip
    write_arrays(path, arrays, header)


def read_checkpoint(path: str | os.PathLike[str], trainer: Trainer, identity: Mapping[str, Any]) -> None:
    """Have a run go on from a checkpoint; raise an `InputError` if it is one of another model or other data."""
    arrays, header = read_arrays(path, CHECKPOINT)
    check_version(header, path)
    theirs = header.get("identity")
    if theirs != dict(identity):
        theirs = theirs if isinstance(theirs, dict) else {}
        wrong = [name for name, value in identity.items() if theirs.get(name) != value]
        raise InputError(
            f"the checkpoint {os.fspath(path)!r} belongs to another run: {', '.join(wrong) or 'its settings'} differ. "
            "Use the settings and data of that run, or another checkpoint file."
        )
    load_into(trainer.networks, arrays, "networks", path)
    if trainer.averaged is not None:
        load_into(trainer.averaged, arrays, "averaged", path)
    load_into(trainer.networks, arrays, "best", path)  # for the checks of shapes and numbers
    load_into(trainer.networks, arrays, "networks", path)
    parameters = list(trainer.networks.parameters())
    moments = {number: tensors_in(arrays, f"optimizer.{number}") for number in range(len(parameters))}
    for number, found in moments.items():
        if set(found) != set(MOMENTS) or found["exp_avg"].shape != parameters[number].shape:
            raise FileFormatError(f"{path} is damaged: it does not hold the moments of all parameters.")
    try:
        trace = NeuralTrace(**{name: arrays[f"trace.{name}"].tolist() for name in TRACE})
        updates, rate = int(header["updates"]), float(header["rate"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} is damaged: {error} is missing or no number.") from None
    groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.restore(
        {
            "networks": trainer.networks.state_dict(),
            "averaged": None if trainer.averaged is None else trainer.averaged.state_dict(),
            "best": tensors_in(arrays, "best"),
            "optimizer": {"state": moments, "param_groups": groups},
            "trace": {name: getattr(trace, name) for name in TRACE}, "updates": updates, "rate": rate,
        }
    )  # fmt: skip


def check_version(header: Mapping[str, Any], path: Any) -> None:
    """Raise a `FileFormatError` for a file in a newer format."""
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FileFormatError(f"{path} was written in a newer format; update the package to read it.")
