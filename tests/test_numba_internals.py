"""What the package uses of Numba and llvmlite beyond their documented interface, and that the versions are bounded."""

from __future__ import annotations

import ast
import importlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Numba's documented interface, which needs no upper bound.
DOCUMENTED = {"numba", "numba.extending", "numba.typed"}

#: Everything else: who uses it, and which names. A new minor version of Numba may change any of them.
INTERNALS = {
    "numerics/bus_errors.py": {
        "llvmlite": {"ir"},
        "numba.core.compiler_lock": {"global_compiler_lock"},
        "numba.core.registry": {"cpu_target"},
    },
    "numerics/claiming.py": {"llvmlite": {"ir"}, "numba.core": {"types"}},
    "numerics/compilation.py": {"numba.core": {"event"}},
    "numerics/kernel_cache.py": {
        "numba.core.caching": {"NullCache"},
        "numba.core.compiler_lock": {"global_compiler_lock"},
    },
    "numerics/linking.py": {
        "llvmlite": {"binding"},
        "numba.core": {"types"},
        "numba.core.caching": {"FunctionCache"},
        "numba.core.compiler": {"Compiler"},
        "numba.core.errors": {"NumbaError"},
        "numba.core.registry": {"cpu_target"},
    },
    "numerics/subnormals.py": {"llvmlite": {"ir"}, "numba.core": {"types"}},
    "numerics/vectors/lowering.py": {
        "llvmlite": {"ir"},
        "numba.core": {"cgutils", "types"},
        "numba.core.typing.templates": {"signature"},
    },
    "numerics/vectors/types.py": {
        "llvmlite": {"ir"},
        "numba.core": {"types"},
        "numba.core.typing.templates": {"ConcreteTemplate", "infer_global", "signature"},
    },
    "propagation/alignment/views.py": {
        "llvmlite": {"ir"},
        "numba.core": {"types"},
        "numba.np.arrayobj": {"populate_array"},
    },
    "propagation/compiled.py": {"numba.core": {"types"}},
}


def used(path: Path) -> dict[str, set[str]]:
    """Names that a module imports from Numba's and llvmlite's internals, by the module they come from."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom):
            pairs = [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            pairs = [(alias.name, "") for alias in node.names]
        else:
            continue
        for module, name in pairs:
            if module.partition(".")[0] in ("numba", "llvmlite") and module not in DOCUMENTED:
                found.setdefault(module, set()).add(name)
    return found


def test_internals_are_used_where_they_are_named() -> None:
    sources = ROOT / "src" / "subchain"
    found = {path.relative_to(sources).as_posix(): used(path) for path in sorted(sources.rglob("*.py"))}
    assert {path: names for path, names in found.items() if names} == INTERNALS


@pytest.mark.parametrize(
    ("module", "name"),
    sorted({(module, name) for users in INTERNALS.values() for module, names in users.items() for name in names}),
)
def test_internals_are_there_in_the_installed_version(module: str, name: str) -> None:
    found = importlib.import_module(module)
    assert hasattr(found, name) or importlib.import_module(f"{module}.{name}")


def test_every_kernel_that_is_kept_on_disk_names_what_it_calls() -> None:
    """A kernel with Numba's own cache could be read before the kernels whose machine code it calls."""
    for path in sorted((ROOT / "src" / "subchain").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            assert not (isinstance(node, ast.keyword) and node.arg == "cache"), f"{path}:{node.lineno}"


def test_versions_are_bounded_above() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    bounds = [dependency for dependency in project["dependencies"] if dependency.startswith("numba")]
    assert len(bounds) == 1
    assert "<" in bounds[0]
