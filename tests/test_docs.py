"""Every block of code on the pages and in the README runs and prints what the page says; `pages.py` says how."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from printed import difference

from subchain.datasets import write_stand_in

#: Packages that a page may use and that need not be installed.
OPTIONAL = {"arviz", "hmmlearn", "matplotlib", "pandas", "polars", "pyarrow", "sklearn"}
PAGES = {str(page.relative_to(pages.ROOT)): page for page in pages.pages()}
RUNNING = [name for name, page in PAGES.items() if any(block.runs for block in pages.blocks(page))]


@pytest.mark.parametrize("name", RUNNING)
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_says(name: str, tmp_path: Path) -> None:
    page = PAGES[name]
    for package in sorted(OPTIONAL & pages.imports(page)):
        pytest.importorskip(package, reason=f"{package} is not installed")
    data, options = os.environ.get("SUBCHAIN_DATA", str(pages.ROOT.parent / "shared" / "data")), []
    if not all(Path(data, corpus).is_dir() for corpus in pages.needs(page)):
        data, options = str(tmp_path), ["--no-compare"]
        for corpus in pages.needs(page):
            write_stand_in(corpus, tmp_path / corpus)
    environment = os.environ | {"SUBCHAIN_DATA": str(Path(data).resolve())}
    done = subprocess.run(
        [sys.executable, pages.__file__, *options, page], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("name", RUNNING)
def test_a_page_that_runs_is_checked_by_what_it_prints_or_by_a_hidden_expression(name: str) -> None:
    found = pages.blocks(PAGES[name])
    assert any(block.is_check or pages.answers(block) for block in found)
    endings = [block.code.rstrip().splitlines()[-1] for block in found if block.language == "python" and block.runs]
    assert not any(line.startswith("assert ") for line in endings), "checks belong in a comment"


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if pages.figures(page)])
def test_figures_of_a_page_are_stored_beside_it(name: str) -> None:
    """`python tests/pages.py --figures PAGE` makes them."""
    folder = PAGES[name].parent / "figures"
    assert [figure for figure in pages.figures(PAGES[name]) if not (folder / figure).is_file()] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_block_is_a_program_that_runs_or_says_what_else_it_is(name: str) -> None:
    text = PAGES[name].read_text(encoding="utf8")
    found = pages.blocks(PAGES[name])
    assert text.count("```") == 2 * len(found), "a fence that is not closed, or code that is not understood"
    for block in found:
        assert block.language in ("python", *pages.SHELLS, *pages.SHOWN), f"line {block.line}: {block.language!r}"
        if block.language in pages.SHOWN and block.code not in {other.prints for other in found}:
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
$ echo yes | tee said
yes
```

```python
from pathlib import Path
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_comments_and_languages_say_what_is_run(page: Path) -> None:
    found = pages.blocks(page)
    assert [(block.language, block.line, block.runs) for block in found] == [
        ("python", 5, True),
        ("sh", 10, False),
        ("console", 14, True),
        ("python", 19, True),
    ]
    assert pages.commands(found[2]) == "echo yes | tee said"
    assert pages.needs(page) == ["chromatin", "mitbih"]
    assert pages.imports(page) == {"numpy", "pathlib"}


def test_python_and_shell_take_turns_in_one_folder(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(page.parent)
    assert pages.run(page) == {}
    assert (page.parent / "said").read_text() == "yes\n"


CHECKED = """# A page

```python
for count in (3, 1500):
    print(count, count / 7)
```

```text
{says}
```

![a curve](figures/curve.png)

<!-- not for readers
```python
open("curve.png", "w").close()
count == {count}
```
-->
"""


@pytest.mark.parametrize("says", ["3 0.4286\n1500  214.29", "3 …\n1500 214.2857142857143", "…\n1500 …"])
def test_outputs_are_compared_number_by_number(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(CHECKED.format(says=says, count=1500))
    assert pages.run(page) == {}


@pytest.mark.parametrize("says", ["4 0.4286\n1500 214.29", "3 0.4286", "3 0.44\n1500 214.29", "…\n1501 …"])
def test_a_page_that_has_drifted_is_noticed_and_can_be_written_anew(
    says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(CHECKED.format(says=says, count=1500))
    wrong = pages.run(page)
    assert len(wrong) == 1
    assert f"{page}:4" in capsys.readouterr().out
    pages.rewrite(page, wrong)
    assert page.read_text() == CHECKED.format(says="3 0.42857142857142855\n1500 214.28571428571428", count=1500)
    assert pages.run(page) == {}
    assert pages.run(page, compare=False) == {}


def test_a_hidden_expression_must_be_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(CHECKED.format(says="…", count=7))
    with pytest.raises(AssertionError, match="count == 7 is False, not true"):
        pages.run(page)


def test_a_figure_that_the_page_does_not_make_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(CHECKED.format(says="…", count=1500).replace('open("curve', 'open("other'))
    with pytest.raises(AssertionError, match="shows curve.png without making it"):
        pages.run(page)


def test_a_command_that_fails_shows_what_it_printed(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(page.parent)
    page.write_text("```sh\necho trouble >&2\nexit 3\n```\n")
    with pytest.raises(AssertionError, match="exit code 3\ntrouble"):
        pages.run(page)


@pytest.mark.parametrize(
    ("said", "printed", "agree"),
    [
        ("took 1.7 s", "took 23.0 s", True),
        ("557 kB", "601 kB", True),
        ("17 states", "18 states", False),
        ("133,620 letters", "133621 letters", True),
        ("-0.0 and −2.5", "0.0 and -2.5", True),
        ("a ───── b", "a ── b", True),
        ("[1. 2.]", "[ 1.  2. ]", True),
        ("x …", "x", True),
        ("x … z", "x y", False),
        ("H3K4me3 1", "H3K4me1 1", False),
        ("1e-05", "1.1e-05", False),
    ],
)
def test_what_counts_as_the_same_output(said: str, printed: str, agree: bool) -> None:
    assert (difference(said, printed) is None) == agree


def test_files_and_folders_on_the_page_of_the_architecture_exist() -> None:
    text = PAGES["docs/architecture.md"].read_text(encoding="utf8")
    named = {name.rstrip("/") for name in re.findall(r"`([\w/.-]+(?:\.py|\.toml|\.md|/))`", text)}
    folders = [pages.ROOT / name for name in ("src", "tests", "docs", "experiments", "benchmarks")]
    there = [path.as_posix() for folder in folders for path in (folder, *folder.rglob("*"))]
    there += [path.as_posix() for path in pages.ROOT.glob("*.*")]
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in there)] == []
