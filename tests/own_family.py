"""The family of docs/own-family.md, as a module: what a user would have written."""

from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "own-family.md"


def code_blocks() -> list[str]:
    """The Python of the page."""
    return [block.split("```")[0] for block in PAGE.read_text(encoding="utf-8").split("```python\n")[1:]]


exec(compile(code_blocks()[0], str(PAGE), "exec"))
