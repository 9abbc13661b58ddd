"""Kernels share the machine code of what they call, also when they are read from the cache on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core import types

from subchain.numerics import linking
from subchain.propagation.collapsed import pieces
from subchain.propagation.compiled import FASTMATH

CALLEE = """
from subchain.numerics.linking import called

@called(fastmath={flags})
def double(x):
    return {result}
"""
CALLER = """
from callee import double
from subchain.numerics.linking import linked

@linked()
def quadruple(x):
    return 2 * double(x)
"""
PROGRAM = """
from caller import double, quadruple
print(quadruple(3.0))
print(sum(quadruple.stats.cache_hits.values()), sum(double.stats.cache_hits.values()))
print(next(iter(double.overloads.values())).fndesc.llvm_func_name)
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a program of two modules in a process of its own; return what it prints."""
    (tmp_path / "caller.py").write_text(CALLER)
    source = str(Path(linking.__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), source]), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)

    def in_process(result: str, flags: set[str] = FASTMATH, **more: str) -> list[str]:
        (tmp_path / "callee.py").write_text(CALLEE.format(result=result, flags=flags))
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment | more, capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[: 3 if more else 2]

    return in_process


def test_a_second_process_compiles_nothing(run) -> None:
    assert run("2 * x") == ["12.0", "0 0"]
    assert run("2 * x") == ["12.0", "1 1"]


def test_a_change_of_what_is_called_is_noticed(run) -> None:
    run("2 * x")
    assert run("20 * x") == ["120.0", "1 0"]


def test_and_one_of_its_type_too(run) -> None:
    run("2 * x")
    assert run("int(20 * x)") == ["120", "0 0"]


def test_names_are_the_same_in_all_processes(run, tmp_path) -> None:
    found = [run("2 * x", PYTHONHASHSEED=seed, NUMBA_CACHE_DIR=str(tmp_path / seed)) for seed in ("1", "2", "3")]
    assert found[0][:2] == ["12.0", "0 0"]
    assert found[0] == found[1] == found[2]


def test_other_options_of_what_is_called_are_noticed(run) -> None:
    """They are part of the name of its machine code; a call by the old name would lead nowhere."""
    run("2 * x")
    assert run("2 * x", flags={"contract"}) == ["12.0", "0 0"]


def test_a_kernel_has_no_copy_of_what_it_calls() -> None:
    @njit
    def caller(order, given):
        return pieces.most_positions(order, given)

    whole, flags, index = np.ones(1), np.ones(1, bool), np.zeros(1, np.int64)
    given = pieces.Pieces(index, index + 7, flags, flags, index, whole, 1)
    assert caller(index, given) == (7, 7)
    (compiled,) = caller.overloads.values()
    (copied,) = pieces.most_positions.overloads.values()
    assert compiled.library._final_module.get_function(copied.fndesc.llvm_func_name).is_declaration


def test_types_of_the_same_name_are_told_apart() -> None:
    float_pair = types.UniTuple(types.float64, 2)
    here = types.NamedUniTuple(types.float64, 2, type("Pair", (), {"_fields": ("x", "y"), "__module__": "here"}))
    there = types.NamedUniTuple(types.float64, 2, type("Pair", (), {"_fields": ("x", "y"), "__module__": "there"}))
    assert str(here) == str(there)
    assert len({linking._full_name(types.Tuple((kind,))) for kind in (here, there, float_pair)}) == 3
