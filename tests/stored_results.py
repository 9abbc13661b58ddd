"""Results in JSON files: numbers and arrays by name, exact to the last digit, one line each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

#: Results agree up to this relative difference; entries that are next to nothing, up to the absolute one.
RELATIVE, ABSOLUTE = 1e-10, 1e-12


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Stored entries by name; none if there is no file yet."""
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def write_results(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Write entries, each a dictionary of texts, numbers and arrays."""
    blocks = []
    for name, entry in entries.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(_plain(value))}" for key, value in entry.items()]
        blocks.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    path.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def differences(found: Mapping[str, Any], expected: Mapping[str, Any], relative: float = RELATIVE) -> list[str]:
    """Say where results are not those expected, one line for each name; empty if all agree."""
    lines = [f"{name}: not found" for name in expected if name not in found]
    for name in [name for name in expected if name in found]:
        now, before = np.asarray(found[name], dtype=np.float64), np.asarray(expected[name], dtype=np.float64)
        if now.size == before.size == 0:
            continue
        if now.shape != before.shape:
            lines.append(f"{name}: shape {now.shape}, expected {before.shape}")
        elif not np.allclose(now, before, rtol=relative, atol=ABSOLUTE, equal_nan=True):
            lines.append(f"{name}: {_worst(now, before)}")
    return lines


def _worst(now: np.ndarray, before: np.ndarray) -> str:
    with np.errstate(invalid="ignore"):
        error = np.abs(now - before) / np.maximum(np.abs(before), ABSOLUTE)
    error = np.where(np.isnan(now) != np.isnan(before), np.inf, np.nan_to_num(error))
    where = np.unravel_index(int(error.argmax()), error.shape)
    place = f" at {tuple(map(int, where))}" if where else ""
    return f"{now[where]!r}{place}, expected {before[where]!r} (relative difference {error[where]:.1e})"
