from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from subchain.datasets import Chain, bernoulli_chain, categorical_chain, gaussian_chain, poisson_chain, write_chain
from subchain.datasets.laws import GaussianLaw
from subchain.errors import InputError

FAMILIES = [
    ("bernoulli", bernoulli_chain),
    ("categorical", categorical_chain),
    ("gaussian", gaussian_chain),
    ("poisson", poisson_chain),
]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("block_size", [1_000_000, 97])
@pytest.mark.parametrize(("kind", "generator"), FAMILIES)
def test_the_file_holds_what_the_generator_returns(
    tmp_path: Path, kind: str, generator: Callable[..., Chain], block_size: int
):
    in_memory = generator(1_000, n_states=5, stickiness=0.5, random_state=3)
    path = tmp_path / "x.npy"
    written = write_chain(path, 1_000, kind, n_states=5, stickiness=0.5, random_state=3, block_size=block_size)
    assert type(written) is type(in_memory)
    assert_array_equal(np.load(path), in_memory.observations.values)
    assert_array_equal(np.load(tmp_path / "x.states.npy"), in_memory.states)
    assert_array_equal(written.transition, in_memory.transition)
    assert np.load(path).dtype == in_memory.observations.values.dtype


def test_the_record_maps_the_files(tmp_path: Path):
    chain = write_chain(tmp_path / "x.npy", 500, "gaussian", random_state=0)
    assert isinstance(chain.observations.values, np.memmap)
    assert isinstance(chain.states, np.memmap)
    assert chain.observations.lengths.tolist() == [500]
    assert names(tmp_path) == ["x.npy", "x.states.npy"]


@pytest.mark.parametrize(("kind", "dtype"), [("gaussian", np.float32), ("categorical", np.uint8)])
def test_the_type_in_the_file_can_be_chosen(tmp_path: Path, kind: str, dtype: type):
    wide = write_chain(tmp_path / "wide.npy", 400, kind, random_state=0)
    narrow = write_chain(tmp_path / "narrow.npy", 400, kind, random_state=0, dtype=dtype)
    assert narrow.observations.values.dtype == dtype
    assert_array_equal(narrow.observations.values, wide.observations.values.astype(dtype))


@pytest.mark.parametrize(("kind", "dtype"), [("gaussian", np.int32), ("categorical", np.float64)])
def test_whole_numbers_and_real_ones_are_not_mixed(tmp_path: Path, kind: str, dtype: type):
    with pytest.raises(InputError, match="dtype must be of the kind of"):
        write_chain(tmp_path / "x.npy", 10, kind, dtype=dtype)
    assert names(tmp_path) == []


def test_a_type_that_is_too_narrow_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="does not fit into int8; use a wider dtype"):
        write_chain(tmp_path / "x.npy", 500, "categorical", n_symbols=1_000, dtype=np.int8, random_state=0)
    assert names(tmp_path) == []


def test_a_broken_run_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.npy"
    write_chain(path, 300, "gaussian", random_state=0)
    before = path.read_bytes()
    whole_emit, calls = GaussianLaw.emit, []

    def emit_twice(self, states, rng):
        calls.append(len(states))
        if len(calls) > 2:
            raise KeyboardInterrupt
        return whole_emit(self, states, rng)

    monkeypatch.setattr(GaussianLaw, "emit", emit_twice)
    with pytest.raises(KeyboardInterrupt):
        write_chain(path, 300, "gaussian", random_state=1, block_size=100)
    assert calls == [100, 100, 100]
    assert path.read_bytes() == before
    assert names(tmp_path) == ["x.npy", "x.states.npy"]


@pytest.mark.parametrize(
    ("path", "arguments", "message"),
    [
        ("x.csv", {}, "must end in '.npy'"),
        ("x.npy", {"kind": "gausian"}, "Did you mean 'gaussian'"),
        ("x.npy", {"block_size": 0}, "block_size must be at least 1"),
        ("x.npy", {"n": 0}, "n must be at least 1"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, path: str, arguments, message: str):
    with pytest.raises(InputError, match=message):
        write_chain(tmp_path / path, **({"n": 10} | arguments))
    assert names(tmp_path) == []
