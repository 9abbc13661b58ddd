"""The device that a model is on."""

from __future__ import annotations

from typing import Any

import torch

from subchain.errors import InputError


def resolve_device(given: Any) -> torch.device:
    """Return the device with a name; "auto" is a GPU where PyTorch finds one, else the processor."""
    if isinstance(given, str) and given == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(given)
    except (RuntimeError, TypeError):
        raise _unknown(given) from None
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise _unknown(given)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise InputError(
            f"device={given!r} needs a GPU that PyTorch can use, and there is none; use device='auto' or 'cpu'."
        )
    if (device.index or 0) >= count:
        raise InputError(
            f"device={given!r} does not exist: PyTorch finds {count} GPU{'s' * (count > 1)}, with numbers from 0."
        )
    return device


def _unknown(given: Any) -> InputError:
    return InputError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:0' with the number of a GPU, not {given!r}.")
