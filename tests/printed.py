"""What a program prints, compared with what a page says that it prints.

Whitespace and the width of rules do not count. Numbers may differ by one in the last decimal of the page and by 1e-4
of their value, so that integers below ten thousand are compared exactly; times and sizes of files (`1.7 s`, `557 kB`)
may be any number. `…` on the page stands for anything, also for nothing and for many lines.
"""

from __future__ import annotations

import re
from itertools import pairwise

RELATIVE = 1e-4
ELLIPSIS = "…"
MEASURED = {"s", "ms", "kB", "MB"}

_TOKEN = re.compile(
    r"""(?P<number>(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?(?:[eE](?P<exponent>[-+]?\d+))?)
      | (?P<rule>[─━═]+) | \w+ | \S""",
    re.VERBOSE,
)
Token = tuple[str, float | None, float]


def difference(said: str, printed: str) -> str | None:
    """Return where two texts part, or None if they agree."""
    (first, *others), found = _split(_tokens(said)), _tokens(printed)
    if not others:
        return None if _agree(first, found) else _first_difference(first, found)
    if not _agree(first, found[: len(first)]):
        return _first_difference(first, found)
    found = found[len(first) :]
    *middle, last = others
    for part in middle:
        starts = range(len(found) - len(part) + 1)
        start = next((start for start in starts if _agree(part, found[start : start + len(part)])), None)
        if start is None:
            return f"the page has {_text(part)!r}, which the program did not print there"
        found = found[start + len(part) :]
    end = found[max(len(found) - len(last), 0) :]
    return None if _agree(last, end) else _first_difference(last, end)


def _tokens(text: str) -> list[Token]:
    """Words, signs and numbers; a number has its value and the unit of its last decimal."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        if match["number"] is None:
            tokens.append(("─" if match["rule"] else match[0], None, 0.0))
        else:
            value = float(match["number"].replace(",", "").replace("−", "-"))
            decimals = len(match["decimals"] or ".") - 1
            unit = 10.0 ** (int(match["exponent"] or 0) - decimals) if decimals else 0.0
            tokens.append((match[0], value, unit))
    return [_measured(token, after) for token, after in pairwise([*tokens, ("", None, 0.0)])]


def _measured(token: Token, after: Token) -> Token:
    """A number that is followed by seconds or bytes agrees with every other one."""
    return (token[0], 0.0, 0.0) if token[1] is not None and after[0] in MEASURED else token


def _split(tokens: list[Token]) -> list[list[Token]]:
    """The tokens between ellipses."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token[0] == ELLIPSIS:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _agree(said: list[Token], printed: list[Token]) -> bool:
    return len(said) == len(printed) and all(map(_same, said, printed))


def _same(said: Token, printed: Token) -> bool:
    if said[1] is None or printed[1] is None:
        return said[0] == printed[0]
    return abs(said[1] - printed[1]) <= 1.001 * said[2] + RELATIVE * abs(said[1])


def _first_difference(said: list[Token], printed: list[Token]) -> str:
    same = 0
    while same < min(len(said), len(printed)) and _same(said[same], printed[same]):
        same += 1
    return f"the page has {_text(said[same:])!r}, the program printed {_text(printed[same:])!r}"


def _text(tokens: list[Token]) -> str:
    return " ".join(token[0] for token in tokens[:12])
