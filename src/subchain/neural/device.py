"""The device that a model is on."""

from __future__ import annotations

from typing import Any

import torch

from subchain.errors import InputError


def resolve_device(given: Any) -> torch.device:
    """Return the device with a name; "auto" is a GPU where PyTorch finds one, else the processor."""
    if given == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(given)
    except (RuntimeError, TypeError):
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', not {given!r}.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "device='cuda' needs a GPU that PyTorch can use, and there is none; use device='auto' or 'cpu'."
        )
    return device
