"""The rooms of the package import downwards only; the contracts are in pyproject.toml."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1], no_cache=True))"


def test_imports_go_downwards_only() -> None:
    """In a process of its own: import-linter configures logging, which disables every logger that there is."""
    pytest.importorskip("importlinter", reason="import-linter is not installed; it is part of '.[test]'")
    configuration = Path(__file__).resolve().parents[1] / "pyproject.toml"
    called = [sys.executable, "-c", LINT, str(configuration)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(called, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
