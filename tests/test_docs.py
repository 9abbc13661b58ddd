"""The code on the pages of the documentation runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("page", ["beam.md", "collapsed.md", "from-hmmlearn.md", "long-chains.md", "unknown-states.md"])
def test_a_page_runs_from_top_to_bottom(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(encoding="utf8"), re.DOTALL)
    assert blocks
    *statements, last = "\n".join(blocks).strip().splitlines()
    names: dict[str, object] = {}
    exec("\n".join(statements), names)
    assert eval(last, names)
