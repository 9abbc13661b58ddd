"""Docstrings as the reference wants them: where the place of a type holds a description, it becomes one.

Classes have the docstrings of the imported package: some get descriptions of settings from their base class.

Many of our docstrings say what a value is on the line of its name, `pairs : (K, K) expected transitions`, with no type:
the annotation has it. A reader of the NumPy style takes such words for a type, and would set them as code. Also roles
of Sphinx, :func:`name`, lose their prefix.
"""

from __future__ import annotations

import inspect
import pydoc
import re
from typing import Any

from griffe import Extension

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(?=`)")
SECTION = re.compile(r"^(?:Parameters|Attributes)\n-{3,}\n((?:.*\n?)+?)(?=^\S.*\n-{3,}$|\Z)", re.MULTILINE)
ITEM = re.compile(r"^(?P<names>[*\w]+(?:, \w+)*) ?: (?P<rest>.+)\n?(?P<more>(?:^(?: +\S.*)?\n?)*)", re.MULTILINE)
#: Words that types are made of; what stands in brackets or quotation marks does not count.
WORDS = {
    "array", "arrays", "as", "at", "bool", "boolean", "by", "callable", "column", "columns", "dict", "file",
    "files", "float", "floats", "generator", "in", "index", "indices", "int", "integer", "integers", "iterable",
    "list", "lists", "mapping", "matrix", "model", "name", "names", "none", "number", "numbers", "numpy", "object",
    "of", "open", "optional", "or", "pair", "pairs", "path", "paths", "per", "scalar", "sequence", "sequences",
    "several", "shape", "str", "string", "strings", "table", "tables", "them", "to", "tuple", "vector", "with",
}  # fmt: skip


class HouseStyle(Extension):
    """Rewrites docstrings before they are parsed."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Tidy the docstring of one object."""
        if obj.docstring is not None:
            if obj.is_class and obj.path.startswith("subchain."):
                obj.docstring.value = imported(obj.path) or obj.docstring.value
            obj.docstring.value = tidy(obj.docstring.value)


def imported(path: str) -> str | None:
    """Return the docstring of an imported class; None where an extra that it needs is not installed."""
    try:
        return inspect.getdoc(pydoc.locate(path))
    except pydoc.ErrorDuringImport as error:
        if isinstance(error.value, ImportError):
            return None
        raise


def tidy(docstring: str) -> str:
    """The docstring with descriptions where descriptions belong."""
    return SECTION.sub(lambda section: ITEM.sub(_item, section[0]), ROLE.sub("", docstring))


def _item(item: re.Match[str]) -> str:
    if not is_prose(item["rest"]):
        return item[0]
    description = re.sub(r"\n +", "\n    ", f"    {item['rest']}\n{item['more']}").rstrip()
    after = item[0][len(item[0].rstrip()) :]  # the empty line before the next section
    return f"{item['names']}\n{description}{after}"


def is_prose(text: str) -> bool:
    """Whether words in the place of a type say more than a type does."""
    plain = re.sub(r"\(.*?\)|`.*?`|\".*?\"|'.*?'|\[.*?\]", " ", text)
    return any(word not in WORDS for word in re.findall(r"(?<![\w.])[a-z]{2,}(?![\w.])", plain))
