"""Files of context-free grammars: what they hold is checked before kernels see it."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from subchain.core.files import reading
from subchain.data.context_free import is_text
from subchain.data.sentences import UNITS
from subchain.errors import FileFormatError
from subchain.inference.run.trace import Trace, status_of
from subchain.models.posterior_files import load_posterior, save_posterior, texts_of
from subchain.structures.phrases.model import PhrasePosterior
from subchain.structures.phrases.rules import RuleSet, fully_connected

if TYPE_CHECKING:
    from subchain.models.pcfg import PCFG

Index = NDArray[np.int64]
Model = TypeVar("Model", bound="PCFG")
KIND, VERSION = "context-free grammar", 1
#: Symbols and tokens that a file may name, so that a forged one cannot ask for all memory.
MOST_SYMBOLS = 10_000


@dataclasses.dataclass(frozen=True)
class _Allowed:
    """The setting `allowed` of a grammar of a file: all rules but some; `PCFG` describes the arguments.

    Rules over tokens that the file does not have are allowed.
    """

    forbidden: frozenset[tuple[str, tuple[str, ...]]]

    @classmethod
    def but(cls, rules: RuleSet, numbers: Index) -> _Allowed:
        """Return what allows all rules but those with these numbers."""
        names = rules.symbols
        return cls(frozenset((names[rules.left[r]], tuple(rules.names(r))) for r in numbers.tolist()))

    def __call__(self, left: str, right: tuple[str, ...]) -> bool:
        return (left, right) not in self.forbidden


def save_grammar(grammar: PCFG, path: str | os.PathLike[str]) -> None:
    """Write a fitted grammar."""
    rules, size = grammar._rules, grammar._rules.connected
    facts = {
        "symbols": rules.symbols,
        "start": rules.start,
        "terminals": [list(tokens) for tokens in rules.terminals],
        "connected": None if size is None else [size.n_rows, size.n_all, size.first_single],
        "right": None if size else [list(right) for right in rules.right],
        "joint": rules.joint,
        "weights": grammar.kind_,
        "smoothing": grammar._smoothing,
        "concentrations": dict(grammar.concentration) if isinstance(grammar.concentration, dict) else None,
        "status": grammar.status_,
        "trace": grammar.trace_.to_json(),
    }
    kept = grammar.get_params(deep=False) | {"allowed": None, "tokens": None}
    kept["init"] = grammar.init if isinstance(grammar.init, str) else None
    kept["concentration"] = 0.1 if facts["concentrations"] else grammar.concentration
    kept["rules"] = grammar.rules if isinstance(grammar.rules, str) and is_text(grammar.rules) else None
    save_posterior(type(grammar)(**kept), grammar.posterior_, path, KIND, VERSION, facts)


def load_grammar(kind: type[Model], path: str | os.PathLike[str]) -> Model:
    """Return the grammar of a file."""
    found, posterior, header = load_posterior(kind, path, KIND, VERSION, PhrasePosterior)
    with reading(path):
        rules = _rules_of(header, posterior)
        if header["weights"] not in ("mode", "mean"):
            raise FileFormatError(f"the weights of the file are {header['weights']!r:.60}, not 'mode' or 'mean'")
        smoothing = header["smoothing"]
        if not isinstance(smoothing, (int, float)) or not 0.0 <= smoothing < np.inf:
            raise FileFormatError("the smoothing of the file is no number of at least 0")
        if header["concentrations"] is not None:
            found.concentration = {str(key): float(value) for key, value in header["concentrations"].items()}
        found._algorithm()
        found._unit()
        found._take(rules, posterior, header["weights"], float(smoothing))
        is_forbidden = posterior.rules.concentration == 0.0
        if rules.connected is not None and is_forbidden.any():
            found.allowed = _Allowed.but(rules, np.flatnonzero(is_forbidden))
        found.status_, found.trace_ = status_of(header["status"]), Trace.from_json(header["trace"])
    return found


def _rules_of(header: dict[str, Any], posterior: PhrasePosterior) -> RuleSet:
    """Return the rules of a file; raise a `FileFormatError` unless they fit each other and the posterior."""
    symbols = texts_of(header["symbols"], "symbols")
    terminals = [tuple(texts_of(tokens, "tokens of a terminal")) for tokens in header["terminals"]]
    if header["joint"] not in UNITS.values() or not all(terminals) or len(set(terminals)) < len(terminals):
        raise FileFormatError("the terminals of the file are not different sequences of tokens")
    if len(set(symbols)) < len(symbols) or not symbols:
        raise FileFormatError("the file has a symbol twice, or none")
    left, concentration = posterior.rules.groups, posterior.rules.concentration
    if header["connected"] is not None:
        return _connected_rules(header, symbols, terminals, left)
    right = [tuple(_whole(side, None, -len(terminals), len(symbols) - 1)) for side in header["right"]]
    (start,) = _whole([header["start"]], 1, 0, len(symbols) - 1)
    is_lexical = [len(side) == 1 and side[0] < 0 for side in right]
    n_structural = len(right) - sum(is_lexical)
    if len(right) != len(left) or not all(right) or left.max(initial=0) >= len(symbols):
        raise FileFormatError("the rules of the file do not fit its symbols")
    if any(is_lexical[:n_structural]) or len(set(zip(left.tolist(), right, strict=True))) < len(right):
        raise FileFormatError("the rules of the file are out of order, or there twice")
    without = ({start} | {code for side in right for code in side if code >= 0}) - set(left.tolist())
    if without:
        raise FileFormatError(f"the symbol {symbols[min(without)]!r} of the file has no rule")
    if not (concentration >= 0.0).all():
        raise FileFormatError("a rule of the file has a negative concentration")
    return RuleSet(symbols, start, terminals, left, right, n_structural, header["joint"])


def _connected_rules(
    header: dict[str, Any], symbols: list[str], terminals: list[tuple[str, ...]], left: NDArray[np.int64]
) -> RuleSet:
    """Return the rules of a fully connected grammar."""
    n_rows, n_all, first_single = _whole(header["connected"], 3, 0, MOST_SYMBOLS)
    if first_single not in (0, n_rows) or not 0 < n_rows <= n_all == len(symbols) - 1:
        raise FileFormatError("the fully connected grammar of the file has another number of symbols")
    expected = n_all + n_rows * n_all**2 + (n_all - first_single) * len(terminals)
    if len(left) != expected:
        raise FileFormatError(f"the file has {len(left)} rules, not the {expected} of its symbols and tokens")
    n_preterminals = None if first_single == 0 else n_all - n_rows
    rules = fully_connected(n_rows, n_preterminals, [tokens[0] for tokens in terminals], header["joint"])
    if rules.symbols != symbols or not np.array_equal(rules.left, left):
        raise FileFormatError("the rules of the file are not those of a fully connected grammar")
    return rules


def _whole(plain: Any, n: int | None, least: int, most: int) -> list[int]:
    """Return a list of whole numbers of a file within bounds."""
    if not isinstance(plain, list) or (n is not None and len(plain) != n):
        raise FileFormatError(f"{plain!r:.60} is no list of whole numbers")
    if any(type(item) is not int or not least <= item <= most for item in plain):
        raise FileFormatError(f"{plain!r:.60} holds something that is no whole number from {least} to {most}")
    return plain
