"""Named arrays in a file: safetensors, written atomically, read with suspicion.

No pickle: a file can hold numbers and text, nothing that runs. A write goes to a temporary file beside the target,
which it replaces only when complete, so a crash leaves either the old file or the new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import FileFormatError, InputError

#: Key of the metadata entry that holds everything but the arrays.
HEADER = "subchain"


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a header of plain JSON values, atomically."""
    from safetensors.numpy import save

    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: the folder {target.parent} does not exist.")
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder; give the name of a file.")
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = save(contiguous, metadata={HEADER: json.dumps(header)})
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def read_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what `write_arrays` wrote; `kind` is what the header must call itself."""
    from safetensors import SafetensorError, safe_open

    source = Path(path)
    if not source.is_file():
        raise InputError(f"there is no file {source}.")
    try:
        with safe_open(str(source), framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        header = json.loads(metadata[HEADER])
    except KeyError:
        raise FileFormatError(f"{source} is a safetensors file, but not one that subchain has written.") from None
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise FileFormatError(f"{source} is damaged, truncated, or not a subchain file ({error}).") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise FileFormatError(f"{source} holds a {found or 'file of another kind'}, not a {kind}.")
    return arrays, header
