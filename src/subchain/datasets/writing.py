"""Writer of random chains of any length to `.npy` files, in bounded memory.

For the same seed the files hold the data that the generators return in memory. Writes are atomic.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from subchain.data.sequences import Sequences
from subchain.datasets.chains import Chain
from subchain.datasets.laws import Law, RandomState, Seeds, blocks, offsets_of
from subchain.datasets.paths import BLOCK_SIZE, positive
from subchain.datasets.synthetic import random_bernoulli, random_categorical, random_gaussian, random_poisson
from subchain.errors import InputError, unknown_name

_LAWS: dict[str, Callable[..., Law[Chain]]] = {
    "bernoulli": random_bernoulli,
    "categorical": random_categorical,
    "gaussian": random_gaussian,
    "poisson": random_poisson,
}


def write_chain(
    path: str | os.PathLike[str],
    n: int,
    kind: str = "gaussian",
    *,
    dtype: DTypeLike | None = None,
    block_size: int = BLOCK_SIZE,
    random_state: RandomState = None,
    **parameters: Any,
) -> Chain:
    """Write one long random chain to disk, block by block.

    Use it for chains that do not fit in memory, or as input of the command line.

    Parameters
    ----------
    path : path
        File of the observations, which must end in `.npy`. The hidden states of `x.npy` are written to `x.states.npy`.
    n : int
        Number of positions.
    kind : {"gaussian", "categorical", "poisson", "bernoulli"}
        Family of the observations.
    dtype : dtype, optional
        Type of the numbers in the file, such as `numpy.float32` or `numpy.uint8`; by default that of the generator.
    block_size : int
        Positions per block; it affects the memory used, not the files.
    random_state : int, SeedSequence, Generator or None
        Seed; the same seed gives the same files.
    **parameters
        Settings of the random model, as in `gaussian_chain`, `categorical_chain`, `poisson_chain`, `bernoulli_chain`.

    Returns
    -------
    Chain
        The record of the family, with memory-mapped `observations` and `states`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> chain = write_chain(pathlib.Path(folder.name) / "x.npy", 1_000, "gaussian", dtype="float32", random_state=0)
    >>> chain.observations.values.shape, sorted(p.name for p in pathlib.Path(folder.name).iterdir())
    ((1000, 2), ['x.npy', 'x.states.npy'])
    >>> folder.cleanup()
    """
    if kind not in _LAWS:
        raise unknown_name("kind of chain", kind, _LAWS)
    target = Path(path)
    if target.suffix != ".npy":
        raise InputError(f"path must end in '.npy', the format of the file; given {str(target)!r}.")
    states_target = target.with_suffix(".states.npy")
    seeds, offsets = Seeds.spawn(random_state), offsets_of(n, None)
    law = _LAWS[kind](seeds.parameters, **parameters)
    # The observations are renamed last, so that a file of observations always has its file of states.
    with _complete_file(target) as values_file, _complete_file(states_target) as states_file:
        states_type = np.min_scalar_type(-len(law.initial))
        for block, (states, values) in enumerate(blocks(law, offsets, seeds, positive("block_size", block_size))):
            if block == 0:
                values_type = _storage_type(values.dtype, dtype)
                _write_header(states_file, (n,), states_type)
                _write_header(values_file, (n, *values.shape[1:]), values_type)
            states_file.write(states.astype(states_type).data)
            values_file.write(_stored(values, values_type).data)
    return law.record(Sequences(np.load(target, mmap_mode="r"), offsets), np.load(states_target, mmap_mode="r"))


@contextmanager
def _complete_file(target: Path) -> Iterator[BinaryIO]:
    """Yield an open temporary file; rename it to `target` at the end of the block, or delete it if the block raises."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _write_header(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    npy.write_array_header_1_0(file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})


def _storage_type(drawn: np.dtype[Any], wanted: DTypeLike | None) -> np.dtype[Any]:
    """Return the type of the numbers in the file: an integer type for integers, a floating type for floats."""
    if wanted is None:
        return drawn
    stored = np.dtype(wanted)
    if not np.issubdtype(stored, np.integer if np.issubdtype(drawn, np.integer) else np.floating):
        raise InputError(f"dtype must be of the kind of {drawn} for this chain; given {stored}.")
    return stored


def _stored(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a block converted to `dtype`; raise an `InputError` if a value does not fit."""
    if np.issubdtype(dtype, np.integer) and values.max() > np.iinfo(dtype).max:
        raise InputError(f"the value {values.max()} does not fit into {dtype}; use a wider dtype.")
    return values.astype(dtype, copy=False)
