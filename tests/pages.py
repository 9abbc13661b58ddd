"""Pages of the documentation as programs.

A page runs from top to bottom in a folder of its own. Its `python` blocks share one namespace, and the last statement
of the last one is an expression that must be true. Its `sh`, `bash` and `console` blocks run where they stand between
them, in the same folder, and must not fail; `subchain` and `python` are those that run the page, and of a `console`
block lines that begin with `$ ` are commands and the others what they print. Three comments direct this:

- `<!-- needs: chromatin -->` in the first lines names a folder of the data folder, without which the page is skipped;
- `<!-- not run: why -->` before a block keeps it from being run;
- a `python` block inside a comment runs as the others do: it makes what the page takes for granted, a file for example.

`text` is for what programs print. To try a page: `python tests/pages.py docs/tour.md`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHELLS = ("sh", "bash", "console")
#: Languages of blocks that are only looked at.
SHOWN = ("text", "json", "toml", "yaml", "csv")

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r"<!-- not run: \S.*?-->\s*\Z", re.DOTALL)
NEEDS = re.compile(r"<!-- needs: (.*?) -->")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, its lines, the number of the first, and whether it is to be run."""

    language: str
    code: str
    line: int
    runs: bool


def pages() -> list[Path]:
    """The README and every page under docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text, found = page.read_text(encoding="utf8"), []
    for fence in FENCE.finditer(text):
        language, indent = fence["language"].partition(" ")[0].strip(), len(fence["indent"])
        code = "".join(line[indent:] or "\n" for line in fence["code"].splitlines(keepends=True))
        runs = language in ("python", *SHELLS) and not NOT_RUN.search(text[: fence.start()])
        found.append(Block(language, code, text.count("\n", 0, fence.start("code")) + 1, runs))
    return found


def needs(page: Path) -> list[str]:
    """Folders of data without which a page cannot be run."""
    head = "\n".join(page.read_text(encoding="utf8").splitlines()[:5])
    return [name.strip() for names in NEEDS.findall(head) for name in names.split(",")]


def imports(page: Path) -> set[str]:
    """Packages that a page imports."""
    found = set()
    for block in blocks(page):
        if block.runs and block.language == "python":
            for node in ast.walk(ast.parse(block.code)):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                found |= {name.partition(".")[0] for name in names}
    return found


def commands(block: Block) -> str:
    """What a shell block runs."""
    if block.language != "console":
        return block.code
    return "\n".join(line[2:] for line in block.code.splitlines() if line.startswith("$ "))


def run(page: Path) -> None:
    """Run a page here and now."""
    module = types.ModuleType("page")
    sys.modules["page"] = module  # classes of the page belong to it
    running = [block for block in blocks(page) if block.runs]
    last = max((number for number, block in enumerate(running) if block.language == "python"), default=None)
    for number, block in enumerate(running):
        if block.language == "python":
            _run_python(page, block, module, must_be_true=number == last)
        else:
            _run_shell(page, block)


def _run_python(page: Path, block: Block, module: types.ModuleType, must_be_true: bool) -> None:
    tree = ast.increment_lineno(ast.parse(block.code), block.line - 1)  # so that errors name lines of the page
    statement = tree.body.pop() if must_be_true else None
    exec(compile(tree, page, "exec"), module.__dict__)
    if must_be_true:
        assert isinstance(statement, ast.Expr), f"{page} must end with an expression that is true"
        value = eval(compile(ast.Expression(statement.value), page, "eval"), module.__dict__)
        assert value, f"{page}:{statement.lineno}: {ast.unparse(statement)} is {value!r}, not true"


def _run_shell(page: Path, block: Block) -> None:
    python = f"'{sys.executable}'"
    ours = {"python": python, "python3": python, "subchain": f"{python} -m subchain.cli"}
    known = "".join(f'{name}() {{ {command} "$@"; }}\n' for name, command in ours.items())
    print(f"{page}:{block.line}", flush=True)
    subprocess.run(["bash", "-euo", "pipefail", "-c", known + commands(block)], check=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
