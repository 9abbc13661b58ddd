"""Files of grammars with latent annotations: the posterior, the rules of the treebank, and the words."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from subchain.core.files import reading
from subchain.data.treebank import Chains
from subchain.errors import FileFormatError
from subchain.inference.run.trace import Trace, status_of
from subchain.models.posterior_files import load_posterior, save_posterior, texts_of
from subchain.propagation.latent.trees import BINARY, UNARY
from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import layout_of
from subchain.structures.latent.model import AnnotatedPosterior

KIND, VERSION = "grammar with latent annotations", 1


def save_latent(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted `LatentPCFG`."""
    grammar: TreebankGrammar = model.grammar_
    facts = {
        "symbols": grammar.symbols,
        "words": grammar.words,
        "rules": grammar.rules.tolist(),
        "arity": grammar.arity.tolist(),
        "counts": grammar.counts.tolist(),
        "word_counts": grammar.word_counts.tolist(),
        "chains": [[top, bottom, list(between)] for (top, bottom), between in model.chains_.items()],
        "sizes": model.sizes_.tolist(),
        "weights": model.kind_,
        "status": model.status_,
        "trace": model.trace_.to_json(),
        "stages": [[name, trace.to_json()] for name, trace in model.stages_],
    }
    save_posterior(model, model.posterior_, path, KIND, VERSION, facts)


def load_latent(kind: type[Any], path: str | os.PathLike[str]) -> Any:
    """Return the `LatentPCFG` of a file."""
    found, posterior, header = load_posterior(kind, path, KIND, VERSION, AnnotatedPosterior)
    with reading(path):
        found._algorithm()
        found._training()
        grammar = _grammar(header)
        sizes = _numbers(header["sizes"], "sizes", 1, int(found.n_annotations))
        if len(sizes) != grammar.n_symbols or sizes[0] != 1:
            raise FileFormatError("the file has not one number of annotations for each symbol, and 1 for the root")
        if header["weights"] not in ("mode", "mean"):
            raise FileFormatError(f"the file asks for weights {header['weights']!r:.60}, not for mode or mean")
        layout, rules = layout_of(grammar, sizes), posterior.rules
        rows = np.repeat(np.arange(len(layout.widths)), layout.widths)
        if not np.array_equal(rules.groups, rows) or not (rules.concentration > 0.0).all():
            raise FileFormatError("the posterior of the file does not fit its rules and annotations")
        found._adopt(posterior, grammar, _chains(header["chains"]), sizes, header["weights"])
        found.status_, found.trace_ = status_of(header["status"]), Trace.from_json(header["trace"])
        found.stages_ = [(texts_of([name], "stages")[0], Trace.from_json(plain)) for name, plain in header["stages"]]
    return found


def _numbers(plain: Any, what: str, least: int, most: int) -> Any:
    """Return a list of whole numbers of a file as an array."""
    if not isinstance(plain, list) or not all(isinstance(x, int) and not isinstance(x, bool) for x in plain):
        raise FileFormatError(f"the {what} of the file are no list of whole numbers")
    if any(not least <= x <= most for x in plain):
        raise FileFormatError(f"the {what} of the file are not all from {least} to {most}")
    return np.array(plain, dtype=np.int64)


def _grammar(header: dict[str, Any]) -> TreebankGrammar:
    """Return the treebank grammar of a file, whose codes are all within range and whose order is that of layouts."""
    symbols, words = texts_of(header["symbols"], "symbols"), texts_of(header["words"], "words")
    arity = _numbers(header["arity"], "arities", 0, BINARY)
    if not isinstance(header["rules"], list) or any(not isinstance(r, list) or len(r) != 3 for r in header["rules"]):
        raise FileFormatError("the rules of the file are no lists of three")
    flat = [code for rule in header["rules"] for code in rule]
    rules = _numbers(flat, "rules", -1, max(len(symbols), len(words))).reshape(-1, 3)
    counts = _numbers(header["counts"], "counts", 1, 1 << 62)
    word_counts = _numbers(header["word_counts"], "counts of words", 1, 1 << 62)
    if not len(rules) or len(arity) != len(rules) or len(counts) != len(rules) or len(word_counts) != len(words):
        raise FileFormatError("the rules of the file have not all a number of children and a count")
    if len(set(symbols)) < len(symbols) or len(set(words)) < len(words):
        raise FileFormatError("the file has a symbol or a word twice")
    parents, lefts, rights = rules.T
    limits = np.where(arity >= UNARY, len(symbols), len(words))
    are_right = (lefts >= 0) & (lefts < limits) & np.where(arity == BINARY, rights >= 0, rights == -1)
    if not are_right.all() or rights.max() >= len(symbols) or parents.min() < 0:
        raise FileFormatError("the file has a rule with a symbol or a word that does not exist")
    if not np.array_equal(np.unique(parents), np.arange(len(symbols))):
        raise FileFormatError("the file has a symbol without rules")
    table = np.column_stack([parents, BINARY - arity, lefts, rights])
    if not np.array_equal(np.unique(table, axis=0), table):
        raise FileFormatError("the rules of the file are not sorted, or there is one twice")
    return TreebankGrammar(symbols, words, rules.astype(np.int32), arity.astype(np.int8), counts, word_counts)


def _chains(plain: Any) -> Chains:
    """Return unary chains of a file."""
    if not isinstance(plain, list) or any(not isinstance(chain, list) or len(chain) != 3 for chain in plain):
        raise FileFormatError("the chains of the file are no lists of three")
    return {tuple(texts_of(chain[:2], "chains")): tuple(texts_of(chain[2], "chains")) for chain in plain}  # type: ignore[misc]
