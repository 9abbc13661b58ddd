"""The examples in docstrings run."""

from __future__ import annotations

import doctest

import pytest

from subchain.cli import output
from subchain.data import reading


@pytest.mark.parametrize("module", [output, reading], ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted
    assert found.failed == 0
