"""The rooms of the package import downwards only; the contracts are in pyproject.toml."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_imports_go_downwards_only(capsys: pytest.CaptureFixture[str]) -> None:
    linter = pytest.importorskip("importlinter.cli", reason="import-linter is not installed; it is part of '.[test]'")
    configuration = Path(__file__).resolve().parents[1] / "pyproject.toml"
    status = linter.lint_imports(config_filename=str(configuration), no_cache=True)
    assert status == linter.EXIT_STATUS_SUCCESS, capsys.readouterr().out
