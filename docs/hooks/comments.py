"""Comments of a page are for those who run or write it; the site is made without them.

With a comment before it, the first heading would not become the title either.
"""

from __future__ import annotations

import re
from typing import Any

COMMENT = re.compile(r"^<!--.*?-->\n?", re.DOTALL | re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Take the comments out."""
    return COMMENT.sub("", markdown).lstrip()
