"""Trees as the commands of `subchain grammar` write them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subchain.data import Dependencies

FORMATS = ("conllu", "heads", "tree")


def check_format(format: str) -> None:
    """Raise an `InputError` unless trees can be written in this format."""
    from subchain.errors import unknown_name

    if format not in FORMATS:
        raise unknown_name("value of --format:", format, FORMATS)


def show_trees(text: Dependencies, format: str) -> None:
    """Write trees to standard output."""
    sys.stdout.write(_written(text, format))


def save_trees(text: Dependencies, output: Path, format: str) -> None:
    """Write trees to a file, atomically."""
    from subchain.core.files import writing

    written = _written(text, format)
    with writing(output) as file:
        file.write(written)


def _written(text: Dependencies, format: str) -> str:
    """Return trees as text."""
    from subchain.data.dependency_writing import drawn_tree, write_sentences

    if format == "tree":
        trees = zip(text.words, text.heads or [], strict=True)
        return "\n\n".join(drawn_tree(words, heads.tolist()) for words, heads in trees) + "\n"
    parts: list[str] = []
    write_sentences(text, parts.append, format)
    return "".join(parts)
