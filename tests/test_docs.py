"""The code on the pages of the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[1] / "docs"
RUNNING = [
    *(f"algorithms/{page.name}" for page in sorted((PAGES / "algorithms").glob("*.md"))),
    "collapsed.md",
    "from-hmmlearn.md",
    "long-chains.md",
    "tour.md",
    "unknown-states.md",
    "which-inference.md",
]


@pytest.mark.parametrize("page", RUNNING)
def test_a_page_runs_from_top_to_bottom(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(encoding="utf8"), re.DOTALL)
    assert blocks
    if page == "from-hmmlearn.md":
        pytest.importorskip("hmmlearn", reason="hmmlearn is not installed")
    *statements, last = "\n".join(blocks).strip().splitlines()
    names: dict[str, object] = {}
    exec("\n".join(statements), names)
    assert eval(last, names)
