"""`help` of every public class describes all its settings, and shows their defaults."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import pytest

import subchain
from subchain.core.components import Component

PACKAGES = ["emissions", "transitions", "inference", "data", "datasets", "metrics", "selection", "alignment", "grammar"]
SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n((?:(?!^\w+\n-+$).*\n?)*)", re.MULTILINE)


def public_classes() -> list[type]:
    """Classes that users construct: all that `subchain` exports, and families, priors and algorithms of its parts."""
    modules = [subchain, *(importlib.import_module(f"subchain.{name}") for name in PACKAGES)]
    found = [getattr(module, name) for module in modules for name in module.__all__]
    classes = {item for item in found if inspect.isclass(item) and not issubclass(item, BaseException)}
    made = [one for one in classes if one.__name__ in subchain.__all__ or issubclass(one, Component)]
    return sorted((one for one in made if not inspect.isabstract(one)), key=lambda one: one.__qualname__)


def described(kind: type) -> set[str]:
    """Names in the sections of a docstring that describe arguments; under `**names` also those in double backticks."""
    text = "".join(SECTION.findall(inspect.getdoc(kind) or ""))
    lines = [line.partition(" :")[0] for line in text.splitlines() if line and not line.startswith(" ")]
    others = re.findall(r"``(\w+)``", text.partition("\n**")[2])
    return {name.strip(" *") for line in lines for name in line.split(",")} | set(others)


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__qualname__)
def test_help_describes_every_setting(kind: type) -> None:
    settings = [parameter.name for parameter in inspect.signature(kind).parameters.values()]
    assert set(settings) <= described(kind)


@pytest.mark.parametrize("kind", [one for one in public_classes() if issubclass(one, Component)])
def test_help_shows_the_defaults(kind: type[Component]) -> None:
    shown = inspect.signature(kind).parameters
    if subchain.Product is kind:
        assert list(shown) == ["families"]
        return
    given: dict[type, dict[str, Any]] = {
        subchain.HMM: {"n_states": 2, "emission": "gaussian"},
        subchain.Cluster: {"address": "local:2"},
    }
    required = given.get(kind, {})
    settings = kind(**required).get_params(deep=False)
    assert settings.keys() <= shown.keys()
    for name in settings.keys() - required.keys():
        assert shown[name].default == settings[name], name
