"""Pages of the documentation as programs.

A page runs from top to bottom in a folder of its own. Its `python` blocks share one namespace; its `sh`, `bash` and
`console` blocks run where they stand between them, in the same folder, and must not fail. `subchain` and `python` are
those that run the page, and of a `console` block lines that begin with `$ ` are commands and the others what they
print. What the page says is checked:

- A `text` block that follows a block at once is what that block prints. The two are compared (`printed.py`); of shell
  blocks both outputs count.
- A picture, `![...](figures/name.png)`, is one that the page writes as `name.png`.
- A `python` block inside a comment runs as the others do: it makes what the page takes for granted, a file for example,
  or checks what is not printed. If its last statement is a comparison, it must be true.

Two more comments direct this:

- `<!-- needs: chromatin -->` in the first lines names a folder of the data folder (`SUBCHAIN_DATA`). Without it a page
  runs on files of the same form (`subchain.datasets.write_stand_in`), and what it prints is not compared;
- `<!-- not run: why -->` before a block keeps it from being run.

Any other `text` block is only shown. To try a page, to write anew what has changed in its outputs, and to store its
pictures beside it:

    python tests/pages.py docs/tour.md
    python tests/pages.py --write docs/tour.md
    python tests/pages.py --figures docs/gallery.md
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from printed import difference

ROOT = Path(__file__).resolve().parents[1]
SHELLS = ("sh", "bash", "console")
#: Languages of blocks that are only looked at.
SHOWN = ("text", "json", "toml", "yaml", "csv")

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: \S.*?-->\s*\Z", re.DOTALL)
NEEDS = re.compile(r"<!-- needs: (.*?) -->")
FIGURE = re.compile(r"!\[[^\]]*\]\(figures/([^)]+)\)")


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes
    ----------
    language, code : what it is written in, and its lines
    line : number of its first line on the page
    runs : whether it is run
    hidden : whether it stands in a comment
    prints : what the page says that it prints; None if it says nothing
    """

    language: str
    code: str
    line: int
    runs: bool
    hidden: bool = False
    prints: str | None = None

    @property
    def is_check(self) -> bool:
        """Whether it ends with a comparison, or several, that must be true."""
        if not (self.hidden and self.runs and self.language == "python"):
            return False
        last = ast.parse(self.code).body[-1]
        return isinstance(last, ast.Expr) and isinstance(last.value, ast.Compare | ast.BoolOp)


def pages() -> list[Path]:
    """The README and every page under docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    text, found = page.read_text(encoding="utf8"), []
    comments = [comment.span() for comment in COMMENT.finditer(text)]
    fences = list(FENCE.finditer(text))
    for fence, after in zip(fences, [*fences[1:], None], strict=False):
        language = fence["language"].partition(" ")[0].strip()
        runs = language in ("python", *SHELLS) and not NOT_RUN.search(text[: fence.start()])
        hidden = any(start < fence.start() < stop for start, stop in comments)
        is_answer = after is not None and after["language"] == "text" and not text[fence.end() : after.start()].strip()
        prints = _code(after) if after is not None and runs and is_answer else None
        line = text.count("\n", 0, fence.start("code")) + 1
        found.append(Block(language, _code(fence), line, runs, hidden, prints))
    return found


def _code(fence: re.Match[str]) -> str:
    indent = len(fence["indent"])
    return "".join(line[indent:] or "\n" for line in fence["code"].splitlines(keepends=True))


def needs(page: Path) -> list[str]:
    """Folders of data without which a page is run on stand-ins."""
    head = "\n".join(page.read_text(encoding="utf8").splitlines()[:5])
    return [name.strip() for names in NEEDS.findall(head) for name in names.split(",")]


def figures(page: Path) -> list[str]:
    """Names of the pictures that a page shows and therefore makes."""
    return FIGURE.findall(page.read_text(encoding="utf8"))


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


def answers(block: Block) -> str | None:
    """What a block prints according to the page; None if the page does not say."""
    if block.language != "console":
        return block.prints
    return "\n".join(line for line in block.code.splitlines() if not line.startswith("$ "))


def run(page: Path, compare: bool = True) -> dict[Block, str]:
    """Run a page in the present folder; return what the blocks printed that the page is wrong about.

    Without `compare` neither outputs nor hidden expressions are looked at.
    """
    module = types.ModuleType("page")
    sys.modules["page"] = module  # classes of the page belong to it
    wrong = {}
    for block in blocks(page):
        if block.runs:
            said = answers(block)
            printed = _run_python(page, block, module, compare) if block.language == "python" else _run_shell(block)
            if compare and said is not None and (where := difference(said, printed)):
                print(f"{page}:{block.line}: {where}\n{printed}", flush=True)
                wrong[block] = printed
    missing = [name for name in figures(page) if not Path(name).exists()]
    assert not missing, f"{page} shows {', '.join(missing)} without making it"
    return wrong


def _run_python(page: Path, block: Block, module: types.ModuleType, compare: bool) -> str:
    tree = ast.increment_lineno(ast.parse(block.code), block.line - 1)  # so that errors name lines of the page
    check = tree.body.pop() if block.is_check else None
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(tree, page, "exec"), module.__dict__)
    if isinstance(check, ast.Expr) and compare:
        value = eval(compile(ast.Expression(check.value), page, "eval"), module.__dict__)
        assert value, f"{page}:{check.lineno}: {ast.unparse(check)} is {value!r}, not true"
    return output.getvalue()


def _run_shell(block: Block) -> str:
    python = f"'{sys.executable}'"
    ours = {"python": python, "python3": python, "subchain": f"{python} -m subchain.cli"}
    known = "".join(f'{name}() {{ {command} "$@"; }}\n' for name, command in ours.items())
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", known + commands(block)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"line {block.line}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def rewrite(page: Path, wrong: dict[Block, str]) -> None:
    """Put what blocks print in the place of what the page said."""
    text = page.read_text(encoding="utf8")
    for block, printed in wrong.items():
        assert block.prints is not None, f"line {block.line}: only `text` blocks are written anew"
        begin = text.index(block.prints, text.index(block.code))
        lines = "".join(f"{line.rstrip()}\n" for line in printed.rstrip("\n").splitlines())
        text = text[:begin] + lines + text[begin + len(block.prints) :]
    page.write_text(text, encoding="utf8")


@contextlib.contextmanager
def _folder_of_its_own() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Run pages of the documentation.")
    parser.add_argument("page", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="write outputs that have changed into the page")
    parser.add_argument("--figures", action="store_true", help="store the pictures in `figures` beside the page")
    parser.add_argument("--no-compare", action="store_true", help="only see whether everything runs")
    options = parser.parse_args()
    os.environ |= {"PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "agg", "NO_COLOR": "1", "COLUMNS": "120"}
    sys.path.insert(0, str(ROOT / "src"))
    failed = False
    for page in [path.resolve() for path in options.page]:
        with _folder_of_its_own() as folder:
            wrong = run(page, compare=not options.no_compare)
            if options.figures:
                (page.parent / "figures").mkdir(exist_ok=True)
                for name in figures(page):
                    shutil.copy(folder / name, page.parent / "figures" / name)
        if options.write:
            rewrite(page, wrong)
        failed |= bool(wrong) and not options.write
    sys.exit("what a page says differs from what it prints" if failed else 0)


if __name__ == "__main__":
    main()
