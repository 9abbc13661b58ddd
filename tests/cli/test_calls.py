"""Calls that are made and printed."""

from __future__ import annotations

from typing import Any

import pytest

from subchain import CVI, SCVI, Guards
from subchain.cli.calls import Call, parse, script
from subchain.cli.choices import BOUNDARIES, INFERENCES
from subchain.errors import InputError


def read(text: str) -> Call:
    return parse(text, "--inference", INFERENCES, BOUNDARIES)


@pytest.mark.parametrize("text", ["cvi", "CVI", "CVI()"])
def test_a_name_is_a_call_without_settings(text: str) -> None:
    assert str(read(text)) == "CVI()"
    assert isinstance(read(text).evaluate(), CVI)


def test_a_call_is_made_as_it_is_printed() -> None:
    call = read("SCVI(10, boundary=Guards(), forgetting=0.7)")
    assert str(call) == "SCVI(10, boundary=Guards(), forgetting=0.7)"
    made = call.evaluate()
    assert isinstance(made, SCVI)
    assert isinstance(made.boundary, Guards)
    assert made.forgetting == 0.7
    assert call.names() == {"SCVI", "Guards"}


@pytest.mark.parametrize(
    "text",
    ["__import__('os').getcwd()", "HMM()", "SCVI(boundary=open('x'))", "CVI(max_iter=1+x)", "CVI(**{})", "C V I", ""],
)
def test_nothing_but_known_names_is_ever_called(text: str) -> None:
    with pytest.raises(InputError, match="--inference"):
        read(text)


def test_a_program_imports_what_it_uses() -> None:
    model = Call("HMM", (2, Call("Poisson"))).with_settings(inference=Call("VI"), n_init=None)
    text = script(Call("read", ("a.csv",)), model, {"validation": Call("HoldOut", (0.1,))}, "m")
    assert text.splitlines() == [
        "from subchain import HMM, HoldOut, Poisson, VI, read",
        "",
        "data = read('a.csv')",
        "model = HMM(2, Poisson(), inference=VI())",
        "model.fit(data, validation=HoldOut(0.1))",
        "model.save('m')",
    ]


def test_settings_that_do_not_exist_are_named() -> None:
    broken: Any = read("CVI(speed=3)")
    with pytest.raises(InputError, match="speed"):
        broken.evaluate()
