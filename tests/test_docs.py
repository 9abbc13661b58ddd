"""Every block of code on the pages of the documentation and in the README runs; `pages.py` says how."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest

#: Packages that a page may use and that need not be installed.
OPTIONAL = {"arviz", "hmmlearn", "matplotlib", "pandas", "polars", "pyarrow", "sklearn"}
PAGES = {str(page.relative_to(pages.ROOT)): page for page in pages.pages()}
RUNNING = [name for name, page in PAGES.items() if any(block.runs for block in pages.blocks(page))]


@pytest.mark.parametrize("name", RUNNING)
def test_a_page_runs_from_top_to_bottom(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    page = PAGES[name]
    environment = os.environ | {"PYTHONPATH": str(pages.ROOT / "src"), "MPLBACKEND": "agg", "NO_COLOR": "1"}
    for package in sorted(OPTIONAL & pages.imports(page)):
        pytest.importorskip(package, reason=f"{package} is not installed")
    for corpus in pages.needs(page):
        folder: Path = request.getfixturevalue("shared_data")
        if not (folder / corpus).is_dir():
            pytest.skip(f"{folder} has no {corpus}")
        environment["SUBCHAIN_DATA"] = str(folder.resolve())
    done = subprocess.run(
        [sys.executable, pages.__file__, page], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("name", PAGES)
def test_a_block_is_a_program_that_runs_or_says_what_else_it_is(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf8")
    found = pages.blocks(PAGES[name])
    assert text.count("```") == 2 * len(found), "a fence that is not closed, or code that is not understood"
    for block in found:
        assert block.language in ("python", *pages.SHELLS, *pages.SHOWN), f"line {block.line}: {block.language!r}"
        if block.language in pages.SHOWN:
            told = re.search(r"^(\$ |subchain |python3? )", block.code, re.MULTILINE)
            assert told is None, f"line {block.line}: commands belong into a block that is run"


def test_there_are_pages_to_run() -> None:
    assert {"README.md", "docs/tour.md", "docs/own-family.md"} <= set(RUNNING)


PAGE = """<!-- needs: chromatin, mitbih -->
# A page

```python
import numpy as np
```

<!-- not run: takes a day -->
```sh
rm everything
```

```console
$ echo yes > said
yes
```

```python
from pathlib import Path

{last}
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE.format(last='Path("said").read_text() == "yes\\n"'))
    return path


def test_comments_and_languages_say_what_is_run(page: Path) -> None:
    found = pages.blocks(page)
    assert [(block.language, block.line, block.runs) for block in found] == [
        ("python", 5, True),
        ("sh", 10, False),
        ("console", 14, True),
        ("python", 19, True),
    ]
    assert pages.commands(found[2]) == "echo yes > said"
    assert pages.needs(page) == ["chromatin", "mitbih"]
    assert pages.imports(page) == {"numpy", "pathlib"}


def test_python_and_shell_take_turns_in_one_folder(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(page.parent)
    pages.run(page)
    assert (page.parent / "said").exists()


@pytest.mark.parametrize(("last", "complaint"), [("1 == 2", "21: 1 == 2 is False"), ("x = 1", "must end with")])
def test_a_page_whose_last_line_is_not_true_fails(
    page: Path, last: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.write_text(PAGE.format(last=last))
    monkeypatch.chdir(page.parent)
    with pytest.raises(AssertionError, match=complaint):
        pages.run(page)


def test_files_and_folders_on_the_page_of_the_architecture_exist() -> None:
    text = PAGES["docs/architecture.md"].read_text(encoding="utf8")
    named = {name.rstrip("/") for name in re.findall(r"`([\w/.-]+(?:\.py|\.toml|\.md|/))`", text)}
    folders = [pages.ROOT / name for name in ("src", "tests", "docs", "experiments", "benchmarks")]
    there = [path.as_posix() for folder in folders for path in (folder, *folder.rglob("*"))]
    there += [path.as_posix() for path in pages.ROOT.glob("*.*")]
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in there)] == []
