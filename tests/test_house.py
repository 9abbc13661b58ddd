"""Limits on the size of functions and files that ruff cannot check, with the exceptions of today.

The lists of exceptions may only shrink: an entry that grew fails, and so does one that is no longer needed.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "subchain"

#: Largest number of lines of a file, of a function, and of a compiled kernel; largest number of parameters.
FILE, FUNCTION, KERNEL, PARAMETERS = 450, 60, 90, 12

#: Decorators that compile, and names under which modules keep them with their settings.
COMPILERS = {"njit", "kernel", "part", "bare_part", "ordered_kernel", "ordered_part", "rare", "implements"}
COMPILERS |= {"register_jitable", "bare_kernel", "small_kernel", "family_part", "seldom", "step", "stage", "verb"}
COMPILERS |= {"linked", "called"}

LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}
MANY_PARAMETERS: dict[str, int] = {}


class Function(NamedTuple):
    """A function of the package: `name` is "file.py Class.function", lines are without the docstring."""

    name: str
    lines: int
    parameters: int
    is_kernel: bool
    is_constructor: bool
    is_command: bool


def files() -> dict[str, str]:
    """Every module of the package, by its path below the package."""
    found = sorted(SOURCES.rglob("*.py"))
    return {path.relative_to(SOURCES).as_posix(): path.read_text(encoding="utf8") for path in found}


def functions(path: str, text: str) -> Iterator[Function]:
    """Every function and method of a module, nested ones too."""

    def walk(node: ast.AST, prefix: str) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield measured(child, prefix)
            inner = f"{prefix}{child.name}." if isinstance(child, (ast.ClassDef, ast.FunctionDef)) else prefix
            yield from walk(child, inner)

    def measured(node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> Function:
        docstring = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
        lines = length(node) - (length(docstring) if docstring is not None else 0)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own = [argument for argument in arguments if argument.arg not in ("self", "cls")]
        is_command = path.startswith("cli/") and node.name == Path(path).stem
        return Function(
            f"{path} {prefix}{node.name}", lines, len(own), is_kernel(node), node.name == "__init__", is_command
        )

    return walk(ast.parse(text), "")


def length(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is compiled, by its decorators."""
    called = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
    return any(ast.unparse(decorator).rpartition(".")[2] in COMPILERS for decorator in called)


def check(found: dict[str, int], exceptions: dict[str, int], limit: str) -> None:
    """Compare what is above a limit with the exceptions; entries are to be deleted once they are below it."""
    grown = {name: size for name, size in found.items() if size > exceptions.get(name, 0)}
    assert grown == {}, f"above {limit}"
    shrunk = {name: found.get(name) for name, size in exceptions.items() if found.get(name) != size}
    assert shrunk == {}, f"smaller than in the list of exceptions to {limit}: write the new size, or delete the entry"


ALL = [function for path, text in files().items() for function in functions(path, text)]


def test_files_are_short() -> None:
    sizes = {path: text.count("\n") for path, text in files().items()}
    check({path: size for path, size in sizes.items() if size > FILE}, LONG_FILES, f"{FILE} lines")


def test_functions_are_short() -> None:
    long = {one.name: one.lines for one in ALL if one.lines > (KERNEL if one.is_kernel else FUNCTION)}
    check(long, LONG_FUNCTIONS, f"{FUNCTION} lines, of a kernel {KERNEL}")


def test_functions_have_few_parameters() -> None:
    plain = [one for one in ALL if not one.is_constructor and not one.is_command]
    many = {one.name: one.parameters for one in plain if one.parameters > PARAMETERS}
    check(many, MANY_PARAMETERS, f"{PARAMETERS} parameters")


def test_a_module_is_measured_as_it_should_be() -> None:
    text = '''
class A:
    """Two lines
    of words."""

    def __init__(self, a, *, b=1):
        """One."""
        self.a = a

@kernel
def fit(a, b):
    def inner(c):
        return c
    return inner
'''
    assert list(functions("cli/fit.py", text)) == [
        Function("cli/fit.py A.__init__", 2, 2, False, True, False),
        Function("cli/fit.py fit", 4, 2, True, False, True),
        Function("cli/fit.py fit.inner", 2, 1, False, False, False),
    ]


def test_exceptions_from_rules_about_size_are_all_needed() -> None:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed; it is part of '.[test]'")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["tool"]["ruff"]["lint"]
    rules = {"C901", "PLR0912", "PLR0913", "PLR0915"}
    limits = [
        *(f"lint.pylint.{name} = {value}" for name, value in settings["pylint"].items()),
        f"lint.mccabe.max-complexity = {settings['mccabe']['max-complexity']}",
    ]
    command = [ruff, "check", "--isolated", "--exit-zero", "--output-format", "json", "--select", ",".join(rules)]
    command += [part for limit in limits for part in ("--config", limit)]
    done = subprocess.run([*command, "src", "docs"], cwd=ROOT, capture_output=True, text=True, check=True)
    broken: dict[str, set[str]] = {}
    for entry in json.loads(done.stdout):
        path = Path(entry["filename"]).relative_to(ROOT).as_posix()
        broken.setdefault(path, set()).add(entry["code"])
    excepted = {path: rules & set(codes) for path, codes in settings["per-file-ignores"].items() if rules & set(codes)}
    assert excepted == broken, "per-file-ignores in pyproject.toml"
