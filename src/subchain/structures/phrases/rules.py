"""The rules of a grammar over codes of symbols and terminals, for people; `binary.py` makes of them what kernels read.

Structural rules come first, then the lexical ones, a symbol over one terminal. A terminal is one or several tokens.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from subchain.data.context_free import Pattern, Rule, Substring, Token
from subchain.errors import InputError

Tokens = tuple[str, ...]
#: Rules over pairs of a fully connected grammar: every sentence of `CVI` keeps a number for each.
MOST_RULES = 4_000_000
Index = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Connected:
    """The size of a fully connected grammar: a start over `n_rows` symbols, each over every pair of `n_all` symbols.

    Symbols from `first_single` on emit tokens: all of them, or those that do nothing else.
    """

    n_rows: int
    n_all: int
    first_single: int


@dataclasses.dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules over symbols and terminals.

    Attributes
    ----------
    symbols : names; the order of codes
    start : code of the start
    terminals : the tokens of each
    left : (R,) symbol of each rule
    right : codes of symbols; −1 − t for terminal t
    n_structural : number of rules that are not lexical
    joint : what stands between the tokens of a terminal
    connected : the size, for a fully connected grammar
    """

    symbols: list[str]
    start: int
    terminals: list[Tokens]
    left: Index
    right: list[tuple[int, ...]]
    n_structural: int
    joint: str
    connected: Connected | None = None

    def __len__(self) -> int:
        return len(self.right)

    @cached_property
    def codes(self) -> dict[Tokens, int]:
        """Codes of terminals by their tokens."""
        return {tokens: code for code, tokens in enumerate(self.terminals)}

    def written(self, terminal: int) -> str:
        """Return a terminal as text."""
        return self.joint.join(self.terminals[terminal])

    def names(self, rule: int) -> list[str]:
        """Return the right-hand side of a rule; terminals stand in quotes."""
        return [self.symbols[code] if code >= 0 else repr(self.written(-1 - code)) for code in self.right[rule]]


def expanded(rules: Sequence[Rule], sentences: Iterable[Tokens], joint: str) -> tuple[RuleSet, NDArray[np.float64]]:
    """Return rules with open classes of tokens replaced by what occurs in sentences, and their probabilities."""
    symbols = list(dict.fromkeys(rule.left for rule in rules))
    codes = {symbol: code for code, symbol in enumerate(symbols)}
    terminals: dict[Tokens, int] = {}
    classes = _Classes(sentences)
    found: dict[tuple[int, tuple[int, ...]], float] = {}
    for rule in rules:
        probability = 1.0 if rule.probability is None else rule.probability
        if isinstance(rule.right[0], (Pattern, Substring)):
            members = classes.members(rule.right[0])
            sides = [(-1 - terminals.setdefault(tokens, len(terminals)),) for tokens in members]
        else:
            sides = [tuple(_code(item, codes, terminals) for item in rule.right)]  # type: ignore[arg-type, list-item]
        for side in sides:
            key = codes[rule.left], side
            found[key] = found.get(key, 0.0) + probability / len(sides)
    order = sorted(found, key=lambda key: len(key[1]) == 1 and key[1][0] < 0)  # structural rules first
    n_structural = sum(len(right) > 1 or right[0] >= 0 for _, right in order)
    left = np.array([key[0] for key in order], dtype=np.int64)
    made = RuleSet(symbols, 0, list(terminals), left, [key[1] for key in order], n_structural, joint)
    return made, np.array([found[key] for key in order])


def _code(item: str | Token, symbols: dict[str, int], terminals: dict[Tokens, int]) -> int:
    if isinstance(item, Token):
        return -1 - terminals.setdefault((item.text,), len(terminals))
    return symbols[item]


class _Classes:
    """Tokens and runs of tokens of sentences, listed once."""

    def __init__(self, sentences: Iterable[Tokens]) -> None:
        self.sentences = list(sentences)

    @cached_property
    def types(self) -> list[str]:
        return list(dict.fromkeys(itertools.chain.from_iterable(self.sentences)))

    @cached_property
    def runs(self) -> list[Tokens]:
        found: dict[Tokens, None] = {}
        for sentence in self.sentences:
            for first in range(len(sentence)):
                for last in range(first + 1, len(sentence) + 1):
                    found[sentence[first:last]] = None
        return list(found)

    def members(self, item: Pattern | Substring) -> list[Tokens]:
        if isinstance(item, Substring):
            found = self.runs
        else:
            pattern = re.compile(item.expression)
            found = [(token,) for token in self.types if pattern.fullmatch(token)]
        if not found:
            raise InputError(f"{item} matches no token of the sentences; a symbol would derive nothing.")
        return found


def is_open(rules: Iterable[Rule]) -> bool:
    """Return whether rules have classes of tokens that depend on sentences."""
    return any(isinstance(item, (Pattern, Substring)) for rule in rules for item in rule.right)


def fully_connected(n_nonterminals: int, n_preterminals: int | None, tokens: Sequence[str], joint: str) -> RuleSet:
    """Return all rules in Chomsky's normal form: a start over symbols, these over pairs of symbols, and over tokens.

    With `n_preterminals` the symbols over tokens are others than those over pairs.
    """
    names = [f"X{number}" for number in range(n_nonterminals)]
    first_single = 0
    if n_preterminals is not None:
        first_single = n_nonterminals
        names += [f"T{number}" for number in range(n_preterminals)]
    n_rows, n_all, n_tokens = n_nonterminals, len(names), len(tokens)
    if n_rows * n_all**2 > MOST_RULES:
        raise InputError(
            f"a fully connected grammar of {n_all:,} symbols has {n_rows * n_all**2:,} rules over pairs; at most "
            f"{MOST_RULES:,} are possible: take fewer symbols."
        )
    singles = np.arange(first_single, n_all)
    # a sentence of one token needs a symbol that emits it, so the start leads to all that do
    right: list[tuple[int, ...]] = [(a,) for a in range(n_all)]
    left = [np.full(n_all, n_all)]
    right += itertools.islice(itertools.cycle(itertools.product(range(n_all), repeat=2)), n_rows * n_all**2)
    left.append(np.repeat(np.arange(n_rows), n_all**2))
    n_structural = len(right)
    right += [(-1 - t,) for _ in singles for t in range(n_tokens)]
    left.append(np.repeat(singles, n_tokens))
    connected = Connected(n_rows, n_all, first_single)
    return RuleSet(
        [*names, "S"], n_all, [(token,) for token in tokens], np.concatenate(left).astype(np.int64), right,
        n_structural, joint, connected,
    )  # fmt: skip
