"""Rendering of a page from its template: scripts, styles and data inside one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib import resources
from typing import Any

from subchain.errors import InputError


def render_page(
    template: str, scripts: Iterable[str], styles: Iterable[str], contents: dict[str, Any], **values: Any
) -> str:
    """Return a page as HTML text.

    Parameters
    ----------
    template, scripts, styles : files, relative to this package; scripts in the order of execution
    contents : the data of the scripts, JSON values
    values : what the template names
    """
    try:
        import jinja2
    except ImportError:
        raise InputError("a report needs jinja2, which is not installed; run pip install jinja2.") from None
    texts = [_file(name) for name in scripts]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_file(template)).render(
        styles=[_file(name) for name in styles],
        scripts=texts,
        hashes=" ".join(f"'sha256-{_hash(text)}'" for text in texts),
        contents=_json(contents),
        **values,
    )


def _json(value: Any) -> str:
    """Return JSON for a script element, with <, > and & escaped so that it cannot end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _file(name: str) -> str:
    return resources.files("subchain.reports").joinpath(name).read_text(encoding="utf8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf8")).digest()).decode("ascii")
