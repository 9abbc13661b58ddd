"""The page on a grammar: trees of sentences with posterior probabilities, gold trees and scores, rules, the run."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.treebank_labels import ROOT, base_label
from subchain.data.tree import Tree
from subchain.errors import InputError
from subchain.inference.run.trace import Trace
from subchain.models.dmv import DMV
from subchain.models.latent_pcfg import LatentPCFG
from subchain.models.pcfg import PCFG
from subchain.numerics.perplexity import perplexity
from subchain.reports.formatting import number, several
from subchain.reports.grammar_text import GrammarText, read_text
from subchain.reports.rendering import render_page

#: Most sentences whose trees are on a page, and words of the longest of them, if there are shorter ones.
MOST_SENTENCES, MOST_WORDS = 200, 50
#: Most rules of the table, and points of the curve.
MOST_RULES, MOST_POINTS = 20_000, 2_000
SCRIPTS, STYLES = ("page/grammar.js",), ("page/page.css", "page/grammar.css")
#: Kinds of grammars, for the title.
TITLES = {DMV: "Dependency grammar", PCFG: "Context-free grammar", LatentPCFG: "Grammar with latent annotations"}

Grammar = DMV | PCFG | LatentPCFG


class Parsed(NamedTuple):
    """Trees of some sentences, as JSON values, and how all compare with gold trees."""

    trees: dict[int, dict[str, Any]]
    scores: Any


def grammar_page(grammar: Grammar, x: Any, title: str | None) -> str:
    """Return the page as HTML text; see `reports.report`."""
    text = read_text(grammar, x)
    if not any(text.words):
        raise InputError("there is no sentence with words to report on.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the grammar cannot derive")  # the page says which
        logs = grammar.score_samples(text.given)
        shown = _shown(text)
        parsed = (_dependencies if isinstance(grammar, DMV) else _phrases)(grammar, text, shown)
    rules, n_rules = rule_lines(grammar)
    contents = {
        "sentences": [
            {"number": n + 1, "words": list(text.words[n]), "log": _plain(logs[n])} | parsed.trees.get(n, {})
            for n in shown
        ],
        "rules": rules,
        "trace": _trace(grammar),
    }
    return render_page(
        "page/grammar.html", SCRIPTS, STYLES, contents,
        title=title or TITLES[type(grammar)],
        facts=_facts(grammar, text, logs, n_rules),
        scores=parsed.scores,
        n_gold=0 if text.gold is None else sum(tree is not None for tree in text.gold),
        shown=several(len(shown), "sentence"),
        rules_shown=len(rules), n_rules=n_rules,
        is_dependency=isinstance(grammar, DMV),
        has_trace=bool(contents["trace"]),
    )  # fmt: skip


def _shown(text: GrammarText) -> list[int]:
    """Return the sentences whose trees are shown: evenly from those of usual length, or else the shortest."""
    lengths = np.array([len(words) for words in text.words])
    usable = np.flatnonzero((lengths > 0) & (lengths <= max(MOST_WORDS, int(lengths[lengths > 0].min()))))
    places = np.unique(np.linspace(0, len(usable) - 1, min(MOST_SENTENCES, len(usable))).astype(np.int64))
    return [int(number) for number in usable[places]]


def _plain(value: float, digits: int = 6) -> float | None:
    """Return a number as JSON knows it: None where it is not finite."""
    return round(float(value), digits) if math.isfinite(value) else None


# ---- trees -----------------------------------------------------------------------------------------------------------


def _dependencies(grammar: Any, text: GrammarText, shown: list[int]) -> Parsed:
    wanted = shown if text.gold is None else list(range(len(text.words)))
    heads = dict(zip(wanted, grammar.parse([text.given[n] for n in wanted]), strict=True))
    posteriors = grammar.posterior([text.given[n] for n in shown])
    trees = {}
    for n, table in zip(shown, posteriors, strict=True):
        own = heads[n].tolist()
        chances = [float(table[d if h < 0 else h, d]) for d, h in enumerate(own)]
        trees[n] = {"tags": list(text.given[n]), "heads": own, "chances": [round(p, 3) for p in chances]}
        if text.gold is not None:
            trees[n]["gold"] = text.gold[n].tolist()
    if text.gold is None:
        return Parsed(trees, None)
    from subchain.metrics import dependency_scores

    found = dependency_scores([heads[n] for n in wanted], text.gold)
    names = {"directed": "directed accuracy", "undirected": "undirected accuracy", "exact": "trees without an error"}
    return Parsed(trees, [(shown_as, f"{100.0 * getattr(found, name):.2f}") for name, shown_as in names.items()])


def _phrases(grammar: Any, text: GrammarText, shown: list[int]) -> Parsed:
    with_gold = [n for n, tree in enumerate(text.gold or []) if tree is not None]
    wanted = sorted({*shown, *with_gold})
    found = dict(zip(wanted, grammar.parse([text.words[n] for n in wanted]), strict=True))
    trees = {}
    for n, chances in zip(shown, _chances(grammar, [text.words[n] for n in shown]), strict=True):
        gold = None if text.gold is None else text.gold[n]
        right = None if gold is None else {(base_label(label), *span) for label, *span in gold.spans()}
        tree = None if found[n] is None else tree_steps(found[n], chances, right)
        trees[n] = {"tree": tree, "gold": None if gold is None else tree_steps(gold, {}, None)}
    if not with_gold:
        return Parsed(trees, None)
    from subchain.metrics import bracket_scores

    scores = bracket_scores([found[n] for n in with_gold], [(text.gold or [])[n] for n in with_gold])
    names = {
        "precision": "labelled precision",
        "recall": "labelled recall",
        "f1": "labelled F1",
        "exact": "exact match",
    }
    return Parsed(trees, [(shown_as, f"{100.0 * getattr(scores, name):.2f}") for name, shown_as in names.items()])


#: Posterior probability of a label over tokens first … end − 1.
Chances = dict[tuple[str, int, int], float]


def _chances(grammar: PCFG | LatentPCFG, sentences: list[Any]) -> list[Chances]:
    """Return the posterior probabilities of the phrases of every sentence."""
    if isinstance(grammar, LatentPCFG):
        return [{(s.label, s.first, s.end): s.probability for s in spans} for spans in grammar.posterior(sentences)]
    found = []
    for table in grammar.posterior(sentences):
        places = np.argwhere(table > 1e-4).tolist()
        found.append({(grammar.symbols_[a], i, j + 1): min(float(table[a, i, j]), 1.0) for a, i, j in places})
    return found


def tree_steps(tree: Tree, chances: Chances, right: set[Any] | None) -> list[Any]:
    """Return a tree as a list from the top down: tokens as text; nodes as label, children, probability, is right.

    Probability is −1 where it is not known; the last entry is None without a gold tree, and for the top.
    """
    spans, found = iter(tree.spans()), list[Any]()
    waiting: list[Tree | str] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            found.append(node)
            continue
        label, first, end = next(spans)
        is_right = None if right is None or label == ROOT else (base_label(label), first, end) in right
        found.append([label, len(node.children), round(chances.get((label, first, end), -1.0), 3), is_right])
        waiting += reversed(node.children)
    return found


# ---- numbers ---------------------------------------------------------------------------------------------------------


def rule_lines(grammar: Grammar) -> tuple[list[list[Any]], int]:
    """Return the rules that are used most as (text, probability, count), and how many there are."""
    rules: NDArray[Any] = grammar.rules_
    counts = np.nan_to_num(rules["count"], nan=0.0)
    order = np.lexsort((np.arange(len(rules)), -rules["probability"], -counts))[:MOST_RULES]
    writers = {DMV: _dependency_rule, PCFG: _rule, LatentPCFG: _annotated_rule}
    write = next(write for kind, write in writers.items() if isinstance(grammar, kind))
    return [[write(rule), _plain(rule["probability"]), _plain(rule["count"], 2)] for rule in rules[order]], len(rules)


def _rule(rule: Any) -> str:
    return f"{rule['left']} → {rule['right']}"


def _annotated_rule(rule: Any) -> str:
    def named(name: str) -> str:
        annotation = int(rule[f"{name}_annotation"])
        return str(rule[name]) if annotation < 0 else f"{rule[name]}-{annotation}"

    right = f" {named('right')}" if rule["right"] else ""
    return f"{rule['parent']}-{rule['annotation']} → {named('left')}{right}"


def _dependency_rule(rule: Any) -> str:
    if rule["rule"] == "root":
        return f"root: {rule['dependent']}"
    if rule["rule"] == "attach":
        arrow = "←" if rule["side"] == "left" else "→"
        pair = (rule["dependent"], rule["head"]) if rule["side"] == "left" else (rule["head"], rule["dependent"])
        return f"{pair[0]} {arrow} {pair[1]}"
    return (
        f"{rule['head']} stops on the {rule['side']}, {'after a' if rule['has_dependent'] else 'without a'} dependent"
    )


def _history(grammar: Grammar) -> Trace:
    """Return the history of the run; it is empty for a grammar that was written."""
    found: Trace = getattr(grammar, "trace_", Trace())
    return found


def _trace(grammar: Grammar) -> list[list[float]]:
    """Return iteration and objective of the run where they are known, thinned."""
    known = [(k + 1, value) for k, value in enumerate(_history(grammar).objective) if math.isfinite(value)]
    every = max(1, math.ceil(len(known) / MOST_POINTS))
    return [[k, round(float(value), 6)] for k, value in known[::every]] if len(known) > 1 else []


def _facts(grammar: Grammar, text: GrammarText, logs: NDArray[np.float64], n_rules: int) -> list[tuple[str, str, str]]:
    """Return label, value and explanation of the numbers at the top of the page."""
    lengths = np.array([len(words) for words in text.words])
    is_derived = ~np.isneginf(logs)
    n_words, n_lost = int(lengths[is_derived].sum()), int((~is_derived).sum())
    per_word = perplexity(float(logs[is_derived].sum()), n_words) if n_words else math.nan
    trace = _history(grammar)
    symbols = grammar.tags_ if isinstance(grammar, DMV) else grammar.symbols_
    more = f"{sum(grammar.annotations_.values()):,} with annotations" if isinstance(grammar, LatentPCFG) else ""
    first = text.words[int(np.flatnonzero(~is_derived)[0])] if n_lost else ()
    return [
        ("sentences", f"{len(text.words):,}", several(int(lengths.sum()), "word")),
        ("perplexity", number(per_word), "of a word" + (", where there is a tree" if n_lost else "")),
        ("without a tree", f"{n_lost:,}", f"the first: {' '.join(first)[:40]}" if n_lost else "sentences"),
        ("rules", f"{n_rules:,}", ""),
        ("tags" if isinstance(grammar, DMV) else "symbols", f"{len(symbols):,}", more),
        ("run", grammar.status_ if len(trace) else "not fitted", several(len(trace), "iteration")),
    ]
