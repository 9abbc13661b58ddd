"""Model files: safetensors with a JSON header, checked before they are used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subchain.core.files import check_version, read_arrays, reading, write_arrays
from subchain.core.ranges import header_number
from subchain.data.vocabulary import Vocabulary
from subchain.data.word_groups import word_groups
from subchain.errors import FileFormatError, unknown_name
from subchain.neural.device import resolve_device
from subchain.neural.emissions import WordTable
from subchain.neural.fitted import Trained
from subchain.neural.parameters import PRECISIONS, Networks
from subchain.neural.training import TRACE, NeuralTrace
from subchain.neural.transitions import Softmax, Transition
from subchain.transitions import LowRank

KIND, VERSION = "neural model", 1

Arrays = Mapping[str, NDArray[Any]]


def write_model(path: str | os.PathLike[str], trained: Trained) -> None:
    """Write a trained model."""
    networks, words = trained.networks, trained.vocabulary
    arrays = plain_tensors("networks", networks.state_dict()) | plain_trace(trained.trace)
    arrays["groups"] = trained.groups
    header = {
        "kind": KIND, "version": VERSION, "n_states": networks.n_groups * networks.size, "embedding": networks.width,
        "joined": trained.joined, "precision": trained.precision, "transition": plain_transition(trained.transition),
        "end": trained.end,
        "vocabulary": None if words is None else {"symbols": words.to_list(), "unknown": words.unknown},
    }  # fmt: skip
    write_arrays(path, arrays, header)


def read_model(path: str | os.PathLike[str], device: Any) -> Trained:
    """Return the model of a file, on a device."""
    where = resolve_device(device)
    arrays, header = read_arrays(path, KIND)
    check_version(path, header, VERSION)
    with reading(path):
        groups, precision = word_groups(arrays["groups"], None), header["precision"]
        if precision not in PRECISIONS:
            raise unknown_name("precision", precision, PRECISIONS)
        transition, vocabulary = transition_from(header["transition"]), _vocabulary(header["vocabulary"])
        if vocabulary is not None and len(vocabulary) != len(groups):
            raise FileFormatError("its vocabulary does not fit its groups")
        end = None if header["end"] is None else header_number(header, "end", len(groups) - 1)
        n_groups, n_states = int(groups.max()) + 1, header_number(header, "n_states")
        if n_states % n_groups or not n_states or not isinstance(header["joined"], bool):
            raise FileFormatError("its states cannot be divided among its groups, or it does not say what is joined")
        with torch.device("meta"):  # shapes alone, until the file has shown that it holds as much
            width = header_number(header, "embedding")
            networks = Networks(len(groups), n_groups, n_states // n_groups, width, transition)
        tensors = checked_tensors(arrays, "networks", networks.state_dict(), PRECISIONS[precision][0])
        networks.load_state_dict(tensors, assign=True)
        trace = stored_trace(arrays)
    return Trained(
        networks.to(where).requires_grad_(), WordTable.of(groups, where), transition, precision, header["joined"],
        vocabulary, end, trace,
    )  # fmt: skip


def plain_tensors(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return tensors as arrays whose names begin with a prefix."""
    return {f"{prefix}.{name}": value.detach().cpu().numpy() for name, value in tensors.items()}


def checked_tensors(
    arrays: Arrays, prefix: str, expected: Mapping[str, Tensor], kind: torch.dtype
) -> dict[str, Tensor]:
    """Return the tensors of arrays whose names begin with a prefix.

    Raises a `FileFormatError` if they do not have the shapes of `expected`, or hold numbers that are not finite.
    """
    start = f"{prefix}."
    found = {name[len(start) :]: torch.tensor(value) for name, value in arrays.items() if name.startswith(start)}
    shapes = {name: tuple(value.shape) for name, value in found.items()}
    if shapes != {name: tuple(value.shape) for name, value in expected.items()}:
        raise FileFormatError(f"its tensors ({prefix}) do not have the shapes of its settings")
    if not all(value.is_floating_point() and bool(torch.isfinite(value).all()) for value in found.values()):
        raise FileFormatError(f"its tensors ({prefix}) hold numbers that are not finite")
    return {name: value.to(kind) for name, value in found.items()}


def plain_trace(trace: NeuralTrace) -> dict[str, NDArray[Any]]:
    """Return the history of training as arrays."""
    return {f"trace.{name}": np.array(getattr(trace, name), dtype=np.float64) for name in TRACE}


def stored_trace(arrays: Arrays) -> NeuralTrace:
    """Return the history of training of arrays."""
    columns = {name: arrays[f"trace.{name}"] for name in TRACE}
    if len({column.shape for column in columns.values()}) != 1 or columns["train"].ndim != 1:
        raise FileFormatError("the parts of its trace are not equally long")
    return NeuralTrace(**{name: column.tolist() for name, column in columns.items()})


def plain_transition(transition: Transition) -> dict[str, Any]:
    """Return a transition as JSON values."""
    features = int(transition.features) if isinstance(transition, LowRank) else None
    return {"name": type(transition).__name__, "features": features}


def transition_from(plain: Any) -> Transition:
    """Return the transition of JSON values."""
    if plain["name"] == "LowRank":
        return LowRank(header_number(plain, "features"))
    if plain["name"] == "Softmax":
        return Softmax()
    raise unknown_name("transition", plain["name"], ("LowRank", "Softmax"))


def _vocabulary(plain: Any) -> Vocabulary | None:
    """Return the vocabulary of JSON values."""
    return None if plain is None else Vocabulary(plain["symbols"], unknown=plain["unknown"])
