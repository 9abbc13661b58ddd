from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["alice", "chains", "paths", "published", "synthetic", "writing"])
def test_examples_in_docstrings_run(name: str):
    result = doctest.testmod(importlib.import_module(f"subchain.datasets.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
