"""What can be imported from the package itself."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import subchain
from subchain.core.moved import MOVED, RENAMED

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"


def test_every_name_is_exported_and_leads_somewhere() -> None:
    assert set(subchain.__all__) == set(subchain._HOME)
    for name in subchain.__all__:
        assert getattr(subchain, name).__name__ == name
    assert set(subchain.__all__) <= set(dir(subchain))


@pytest.mark.parametrize("old", MOVED)
def test_a_documented_module_that_moved_is_found_with_a_warning(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} was moved; import from {MOVED[old]}") as caught:
        module = importlib.import_module(old)
    assert caught[0].filename == importlib.__file__  # where the import stands
    present = importlib.import_module(MOVED[old])
    names = [name for name, item in vars(present).items() if getattr(item, "__module__", None) == present.__name__]
    assert names
    renamed = RENAMED.get(old, {})
    assert all(getattr(module, name) is getattr(present, name) for name in names if name not in renamed)
    assert all(getattr(module, before) is getattr(present, now) for before, now in renamed.items())


def test_no_name_of_a_package_is_hidden_by_a_module_of_it() -> None:
    """A module that is imported takes the place of what `__init__` gave the same name."""
    program = """
import importlib, pkgutil, subchain, types
names = [module.name for module in pkgutil.walk_packages(subchain.__path__, "subchain.")]
modules = [importlib.import_module(name) for name in names if "neural" not in name and "__main__" not in name]
for module in modules:
    hidden = [name for name in getattr(module, "__all__", ()) if isinstance(getattr(module, name), types.ModuleType)]
    assert not hidden, (module, hidden)
"""
    subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(SOURCES)}, check=True)


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"subchain\.recrods"):
        importlib.import_module("subchain.recrods")


def test_importing_the_package_loads_no_module_that_is_not_asked_for() -> None:
    program = "import sys, subchain; print(sorted({'numpy', 'numba', 'scipy'} & set(sys.modules)))"
    command = [sys.executable, "-W", "error", "-c", program]
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_has_one_source() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    assert "version" not in settings["project"]
    assert "version" in settings["project"]["dynamic"]
    assert settings["tool"]["hatch"]["version"]["path"] == "src/subchain/__init__.py"
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf8"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == subchain.__version__


@pytest.mark.parametrize(
    "name",
    [
        "cli.output",
        "data.reading",
        *(
            f"datasets.{module}"
            for module in ("alice", "chains", "paths", "published", "stand_ins", "synthetic", "writing")
        ),
        "tasks.colours",
        "tasks.segments",
    ],
)
def test_modules_have_examples(name: str) -> None:
    """Pytest runs them (`--doctest-modules` in pyproject.toml)."""
    module = importlib.import_module(f"subchain.{name}")
    assert any(test.examples for test in doctest.DocTestFinder().find(module))


def test_examples_are_run_and_warnings_are_errors(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getoption("doctestmodules")
    assert "src/subchain" in pytestconfig.getini("testpaths")
    assert pytestconfig.getini("filterwarnings")[0] == "error"
