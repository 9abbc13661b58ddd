"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import subchain.selection

MODULES = [module.name for module in pkgutil.iter_modules(subchain.selection.__path__)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str):
    assert doctest.testmod(importlib.import_module(f"subchain.selection.{name}")).failed == 0


def test_every_public_function_has_an_example():
    for name in subchain.selection.__all__:
        member = getattr(subchain.selection, name)
        if not isinstance(member, type):
            assert doctest.DocTestFinder(recurse=False).find(member)[0].examples
