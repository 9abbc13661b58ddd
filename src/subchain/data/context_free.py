"""Context-free rules with probabilities, and the text that they are written in.

    S  -> NP VP [0.9] | VP [0.1]      # a comment
    NP -> 'the' N | /[A-Z].*/
    V  -> <substring>

Symbols are words without quotes; tokens stand in quotes. A regular expression between slashes stands for every token of
the sentences that it matches as a whole, ``<substring>`` for every run of tokens that occurs in the sentences. The left
side of the first rule is the start. Blanks around the arrow, bars and brackets are not needed. A line may begin
with a bar and so continue the one before it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from subchain.errors import InputError


class Token(NamedTuple):
    """A token of sentences."""

    text: str

    def __str__(self) -> str:
        return repr(self.text)


class Pattern(NamedTuple):
    """All tokens of the sentences that a regular expression matches as a whole."""

    expression: str

    def __str__(self) -> str:
        return f"/{self.expression}/"


class Substring(NamedTuple):
    """All runs of tokens that occur in the sentences."""

    def __str__(self) -> str:
        return "<substring>"


Item = str | Token | Pattern | Substring


@dataclasses.dataclass(frozen=True)
class Rule:
    """A left-hand side, what it becomes, and the probability of this if it was given."""

    left: str
    right: tuple[Item, ...]
    probability: float | None = None

    def __str__(self) -> str:
        return f"{self.left} -> {' '.join(map(str, self.right))}"


_PIECES = re.compile(
    r"""\s*(?:
      (?P<arrow>->|→)
    | (?P<bar>\|)
    | \[(?P<number>[^\]]*)\]
    | '(?P<single>(?:[^'\\]|\\.)*)'
    | "(?P<double>(?:[^"\\]|\\.)*)"
    | /(?P<pattern>(?:[^/\\]|\\.)+)/
    | (?P<substring><substring>)
    | (?P<comment>\#.*)
    | (?P<symbol>(?!->)[^\s'"\[\]|/#<>→](?:(?!->)[^\s'"\[\]|→])*)
    | (?P<wrong>\S)
    )""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")
#: Largest distance of given probabilities of one left-hand side from a sum of one.
TOLERANCE = 1e-3


class _Reader:
    """Rules of a text, line by line; errors name the line."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.left: str | None = None

    def read(self, number: int, line: str) -> None:
        """Add the rules of a line."""
        pieces = [(match.lastgroup, match[match.lastgroup or 0]) for match in _PIECES.finditer(line.rstrip())]
        pieces = [piece for piece in pieces if piece[0] not in (None, "comment")]
        if not pieces:
            return
        wrong = next((text for kind, text in pieces if kind == "wrong"), None)
        if wrong is not None:
            raise InputError(f"line {number}: {wrong!r} is not expected here; the line is {line.strip()!r:.80}.")
        if pieces[0][0] == "bar" and self.left is not None:
            pieces = pieces[1:]
        elif len(pieces) >= 2 and (pieces[0][0], pieces[1][0]) == ("symbol", "arrow"):
            self.left, pieces = pieces[0][1], pieces[2:]
        else:
            raise InputError(f"line {number} must begin with a symbol and '->': {line.strip()!r:.80}.")
        right: list[tuple[str | None, str]] = []
        for piece in [*pieces, ("bar", "|")]:
            if piece[0] == "bar":
                self._add(number, right)
                right = []
            else:
                right.append(piece)

    def _add(self, number: int, pieces: list[tuple[str | None, str]]) -> None:
        assert self.left is not None
        probability = None
        if pieces and pieces[-1][0] == "number":
            probability = _probability(number, pieces.pop()[1])
        if not pieces:
            raise InputError(
                f"line {number}: a rule of {self.left} derives nothing; rules without a right-hand side are not "
                "possible, every rule needs at least one symbol or token."
            )
        rule = Rule(self.left, tuple(_item(number, *piece) for piece in pieces), probability)
        if probability == 0.0:
            raise InputError(f"line {number}: the rule {rule} has no probability; leave it out.")
        self.rules.append(rule)


def _probability(number: int, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0.0 <= found <= 1.0:
        raise InputError(f"line {number}: [{text}] is no probability between 0 and 1.")
    return found


def _item(number: int, kind: str | None, text: str) -> Item:
    if kind == "symbol":
        return text
    if kind in ("single", "double"):
        if not text:
            raise InputError(f"line {number}: a token in quotes is empty.")
        return Token(_ESCAPED.sub(r"\1", text))
    if kind == "pattern":
        try:
            re.compile(text)
        except re.error as error:
            raise InputError(f"line {number}: /{text}/ is no regular expression ({error}).") from None
        return Pattern(text)
    if kind == "substring":
        return Substring()
    raise InputError(f"line {number}: {text!r} is not expected on a right-hand side.")


def parse_rules(text: str) -> list[Rule]:
    """Return the rules of a text; errors name the line."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        reader.read(number, line)
    if not reader.rules:
        raise InputError("the grammar has no rules; write at least one, such as \"S -> 'a' S [0.4] | 'a' [0.6]\".")
    return reader.rules


def is_text(source: str) -> bool:
    """Return whether a string is a grammar, and not the name of a file."""
    return "->" in source or "→" in source


def as_rules(source: str | PathLike[str] | Iterable[Rule]) -> list[Rule]:
    """Return rules, those of a text, or those of a file of such a text; raise an `InputError` if they cannot be used.

    Probabilities that were left out share what those of the same left-hand side leave.
    """
    if isinstance(source, PathLike) or (isinstance(source, str) and not is_text(source)):
        path = Path(source)
        if not path.is_file():
            raise InputError(f"{str(source)!r} is neither a grammar, which has rules such as 'S -> NP VP', nor a file.")
        try:
            rules = parse_rules(path.read_text(encoding="utf8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is no text in UTF-8: {error}.") from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
    else:
        rules = parse_rules(source) if isinstance(source, str) else list(source)
    check_symbols(rules)
    return with_probabilities(rules)


def with_probabilities(rules: list[Rule]) -> list[Rule]:
    """Return the rules with probabilities that sum to one for each left-hand side."""
    found: list[Rule] = []
    given: dict[str, list[Rule]] = {}
    for rule in rules:
        given.setdefault(rule.left, []).append(rule)
    for left, own in given.items():
        known = sum(rule.probability for rule in own if rule.probability is not None)
        open_ = sum(rule.probability is None for rule in own)
        if known > 1.0 + TOLERANCE or (not open_ and known < 1.0 - TOLERANCE):
            raise InputError(f"the probabilities of the rules of {left} sum to {known:g}, not to 1.")
        if open_ and known > 1.0 - 1e-9:
            rule = next(rule for rule in own if rule.probability is None)
            raise InputError(
                f"nothing is left for the rule {rule}: the given probabilities of {left} sum to {known:g} already."
            )
        rest, scale = (1.0 - known) / max(open_, 1), 1.0 if open_ else 1.0 / known
        found += [
            dataclasses.replace(rule, probability=rest if rule.probability is None else rule.probability * scale)
            for rule in own
        ]
    return found


def check_symbols(rules: list[Rule]) -> None:
    """Raise an `InputError` for a symbol without rules, one that derives no tokens, or one that nothing leads to."""
    left = {rule.left for rule in rules}
    for rule in rules:
        missing = next((item for item in rule.right if isinstance(item, str) and item not in left), None)
        if missing is not None:
            raise InputError(f"{missing} in the rule {rule} has no rules of its own; if it is a token, quote it.")
        if any(isinstance(item, (Pattern, Substring)) for item in rule.right) and len(rule.right) > 1:
            raise InputError(f"the rule {rule} mixes an open class of tokens with others; give it a symbol of its own.")
    productive: set[str] = set()
    grew = True
    while grew:
        new = {
            rule.left for rule in rules if all(not isinstance(item, str) or item in productive for item in rule.right)
        }
        grew, productive = not new <= productive, productive | new
    barren = next((rule.left for rule in rules if rule.left not in productive), None)
    if barren is not None:
        raise InputError(f"{barren} derives no tokens, only ever more symbols; give it a rule that ends, or remove it.")
    reached, waiting = {rules[0].left}, [rules[0].left]
    of: dict[str, list[Rule]] = {}
    for rule in rules:
        of.setdefault(rule.left, []).append(rule)
    while waiting:
        symbols = {item for rule in of[waiting.pop()] for item in rule.right if isinstance(item, str)} - reached
        reached |= symbols
        waiting += sorted(symbols)
    lost = next((rule.left for rule in rules if rule.left not in reached), None)
    if lost is not None:
        raise InputError(f"{lost} cannot be reached from the start, which is {rules[0].left}; remove its rules.")
