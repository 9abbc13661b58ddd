"""Attack model files and checkpoints: damaged bytes, and forged contents with a valid checksum.

A case is a function of its seed. It takes a file that the package wrote, changes it, reads it and uses what was read.
The verdict is one of three:

- refused: an error of the package says what is wrong;
- passed: the file was read, scores are numbers, probabilities are in range, and a resumed run goes on;
- violation: any other exception, a crash, a hang, or a result that is not in range.

`python -m fuzz.files forged 1000 --seed 0 --jobs 2` (with `src` and `tests` on the path) tries a thousand of them.
"""

from __future__ import annotations

import copy
import functools
import json
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fuzz.attacked import Attacked, every_file
from fuzz.children import PASSED, REFUSED, VIOLATION, Verdict, command
from subchain.core.files import CHECKSUM, HEADER, _checksum, read_arrays
from subchain.errors import SubchainError

HOSTILE_NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 2.0, 1e9, -1e9, 1e300, -1e300, 1e-300, 1 << 62, -(1 << 62))
HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 3, 10**9, 10**30, 1e308, float("inf"), float("nan"), "", "x", "learned", [], {}, [[]],
    [1, "a"], {"a": 1}, "9" * 5000, {"component": "HMM", "settings": {}}, {"component": "Gaussian", "settings": {}},
    {"array": [1.0], "dtype": "V1000000000"}, {"array": [1.0], "dtype": "<U1000000000"},
    {"array": "eJwDAAAAAAE=", "dtype": "<f8", "shape": [1 << 40]}, {"array": [[1], [2, 3]], "dtype": "<f8"},
)  # fmt: skip
CLASSES = (
    "Chain", "BandedChain", "DirichletChain", "SticksChain", "LearnedInitial", "GivenInitial", "CategoricalParameters",
    "GaussianParameters", "PoissonParameters", "DirichletTable", "NormalInverseWishart", "GammaRates", "ChainSums",
    "CategoricalSums", "GaussianSums", "TreePosterior", "AlignmentPosterior", "AlignmentStatistics", "HMMPoint",
    "HMMPosterior", "HMMStatistics", "Frozen", "FrozenChain", "Popen",
)  # fmt: skip


#: Names that the format has for types of numbers.
DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "uint64": "U64",
    "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip


class Subject(NamedTuple):
    """A file that the package wrote: the name of what is attacked, and its bytes."""

    name: str
    content: bytes

    @property
    def attacked(self) -> Attacked:
        return every_file()[self.name]


@functools.cache
def subjects() -> tuple[Subject, ...]:
    """Write all files that are attacked, once per process."""
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "file"
        for attacked in every_file().values():
            attacked.write(path)
            found.append(_timeless(Subject(attacked.name, path.read_bytes())))
    return tuple(found)


def _timeless(subject: Subject) -> Subject:
    """Return the file as if every iteration had taken a second: all else is the same in every process."""
    arrays, header = unpacked(subject)
    for owner, key in list(_places(header)):
        if key == "seconds":
            times = owner[key]  # of every iteration of a trace, or of a whole run
            owner[key] = [float(number) for number in range(1, len(times) + 1)] if isinstance(times, list) else 1.0
    return subject._replace(content=packed(arrays, json.dumps(header)))


# ---- cases -----------------------------------------------------------------------------------------------------------


def damaged(seed: int) -> tuple[Subject, bytes]:
    """Return a file and its bytes after damage: changed, cut, repeated or swapped stretches."""
    rng = random.Random(f"damaged {seed}")
    subject, other = rng.sample(subjects(), 2)
    content = bytearray(subject.content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        start = rng.randrange(len(content)) if rng.random() < 0.5 else rng.randrange(min(len(content), 4000))
        stop = min(start + rng.choice((1, 1, 4, 64, 1000)), len(content))
        kind = rng.choice(("flip", "fill", "cut", "drop", "repeat", "swap", "graft"))
        if kind == "flip":
            content[start] ^= 1 << rng.randrange(8)
        elif kind == "fill":
            content[start:stop] = bytes([rng.choice((0, 32, 34, 44, 48, 125, 255))]) * (stop - start)
        elif kind == "cut":
            del content[max(start, 1) :]
        elif kind == "drop":
            del content[start : max(stop, 1)]
        elif kind == "repeat":
            content[start:start] = content[start:stop]
        elif kind == "swap":
            at = rng.randrange(len(content))
            content[start:stop], content[at : at + stop - start] = content[at : at + stop - start], content[start:stop]
        else:
            content[start:stop] = other.content[start:stop]
        content = content or bytearray(b"{")
    return subject, bytes(content)


def forged(seed: int) -> tuple[Subject, bytes]:
    """Return a file and its bytes with other contents and the checksum of these."""
    rng = random.Random(f"forged {seed}")
    subject = rng.choice(subjects())
    arrays, header = unpacked(subject)
    text = None
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kind = rng.random()
        if kind < 0.5:
            _forge_array(rng, arrays)
        elif kind < 0.97:
            _forge_header(rng, header)
        else:
            levels = rng.choice((70, 900, 100_000))
            text = json.dumps(header).replace('"status":', '"deep": ' + "[" * levels + "]" * levels + ', "status":', 1)
    return subject, packed(arrays, json.dumps(header) if text is None else text)


def unpacked(subject: Subject) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the header of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(subject.content)
        arrays, header = read_arrays(path, subject.attacked.kind)
    return dict(arrays), header


def packed(arrays: dict[str, np.ndarray], header: str) -> bytes:
    """Return a file with these arrays, this header and their checksum; `safetensors` would shuffle its entries."""
    contiguous = {name: np.ascontiguousarray(arrays[name]).reshape(arrays[name].shape) for name in sorted(arrays)}
    entries: dict[str, Any] = {"__metadata__": {HEADER: header, CHECKSUM: _checksum(contiguous, header)}}
    at = 0
    for name, array in contiguous.items():
        place = [at, at := at + array.nbytes]
        entries[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": place}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in contiguous.values())


def _forge_array(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    name = rng.choice(sorted(arrays))
    array = arrays[name].copy()
    kind = rng.choice(("entry", "entry", "entry", "all", "shape", "type", "gone", "renamed", "swapped", "permuted"))
    if kind in ("entry", "all") and array.size:
        value = rng.choice(HOSTILE_NUMBERS)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = np.asarray(value).astype(array.dtype)
        if kind == "all":
            array[...] = value
        else:
            array.flat[rng.randrange(array.size)] = value
        arrays[name] = array
    elif kind == "shape":
        arrays[name] = rng.choice(list(_shapes(array)))
    elif kind == "type":
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(
                rng.choice(("float32", "float16", "int64", "int32", "uint8", "bool", "float64"))
            )
    elif kind == "gone":
        del arrays[name]
    elif kind == "renamed":
        arrays[rng.choice((name + "x", name[:-1], name.rpartition(".")[0] or "x"))] = arrays.pop(name)
    elif kind == "swapped":
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif array.ndim:
        arrays[name] = array[np.random.default_rng(rng.randrange(1 << 30)).permutation(len(array))]


def _shapes(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the array in other shapes."""
    yield from (array[..., None], array.reshape(-1), array.T)
    if array.size < 1 << 10:
        yield np.zeros((1 << 16, *array.shape), np.uint8)
    if array.ndim:
        yield from (array[:0], array[:-1], np.concatenate((array, array)))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in JSON values with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def _forge_header(rng: random.Random, header: dict[str, Any]) -> None:
    places = [(owner, key) for owner, key in _places(header) if key != "identity"]
    if not places:
        return
    owner, key = rng.choice(places)
    kind = rng.choice(("value", "value", "value", "gone", "renamed", "swapped", "class"))
    if kind == "class":
        classes = [(owner, key) for owner, key in places if key in ("record", "component")]
        if classes:
            owner, key = rng.choice(classes)
            owner[key] = rng.choice(CLASSES)
    elif kind == "gone":
        del owner[key]
    elif kind == "renamed" and isinstance(owner, dict):
        owner[rng.choice((key + "x", "x", ""))] = owner.pop(key)
    elif kind == "swapped":
        other, at = rng.choice(places)
        owner[key], other[at] = copy.deepcopy(other[at]), copy.deepcopy(owner[key])
    else:
        owner[key] = copy.deepcopy(rng.choice(HOSTILE_VALUES))


# ---- verdicts --------------------------------------------------------------------------------------------------------


def verdict(subject: Subject, content: bytes, path: Path, seed: int = 0) -> Verdict:
    """Write a file, read it and use what was read."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = subject.attacked.use(path)
    except SubchainError as error:
        return Verdict(seed, REFUSED, type(error).__name__)
    except (Exception, RecursionError, MemoryError) as error:
        return Verdict(seed, VIOLATION, f"{subject.name}: {type(error).__name__}: {error!s:.200}")
    return Verdict(seed, PASSED) if found is None else Verdict(seed, VIOLATION, f"{subject.name}: {found}")


# ---- cases -----------------------------------------------------------------------------------------------------------


def prepare(files: tuple[Subject, ...]) -> None:
    """Attack the files that the parent process wrote, instead of writing the same once more."""
    global subjects
    subjects = lambda: files  # noqa: E731


def run_damaged(seed: int) -> Verdict:
    return _run(seed, *damaged(seed))


def run_forged(seed: int) -> Verdict:
    return _run(seed, *forged(seed))


def _run(seed: int, subject: Subject, content: bytes) -> Verdict:
    with tempfile.TemporaryDirectory() as folder:
        return verdict(subject, content, Path(folder) / "file", seed)


ATTACKS = {"damaged": run_damaged, "forged": run_forged}

if __name__ == "__main__":
    sys.exit(command(__doc__.partition("\n")[0], ATTACKS, lambda seed: "see `damaged` or `forged`", subjects()))
