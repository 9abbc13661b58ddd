"""Sentences parsed from coarse to fine, on threads that claim them."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from subchain.numerics.claiming import claim
from subchain.propagation.compiled import kernel
from subchain.propagation.latent.choosing import best_annotated_tree, max_rule_tree
from subchain.propagation.latent.coarse import (
    BARE,
    CLOSED,
    coarse_outside,
    coarse_tables,
    fill_coarse,
    make_coarse_room,
)
from subchain.propagation.latent.fine import fine_inside, fine_outside, list_items

#: What is wanted of a sentence: its log probability; the max-rule-product tree; the best annotated tree; spans.
SCORE, MAX_RULE, VITERBI, SPANS = 0, 1, 2, 3


@kernel
def span_posteriors(items, posteriors):
    """Write the posterior of each item, that a node has this symbol and this span: on top, or below a unary rule."""
    for item in range(items.symbols.shape[0]):
        has_bare, has_closed, total = items.flags[item] & BARE, items.flags[item] & CLOSED, 0.0
        for x in range(items.bare.shape[1]):
            if has_closed:
                total += items.closed[item, x] * items.d_closed[item, x]
            if has_bare:
                below = items.d_bare[item, x] - (items.d_closed[item, x] if has_closed else 0.0)
                total += items.bare[item, x] * below
        posteriors[item] = total


@kernel
def parse_sentence(task, grammar, coarse, rules, weights, words, factors, least, room, numbers, nodes):
    """Do one task for a sentence; return its log probability, the number of nodes of its tree, and its items."""
    n, n_symbols = words.shape[0], grammar.first_binary.shape[0]
    tables = coarse_tables(room, n_symbols, n)
    total = fill_coarse(grammar, coarse, words, factors, tables)
    if total > 0.0:
        coarse_outside(grammar, coarse, n, total, least, tables)
    else:
        tables.kept[:] = 0
    table = numbers[: n_symbols * (n + 1) * (n + 1)].reshape((n_symbols, n + 1, n + 1))
    items = list_items(tables, table, n, rules.sizes.max())
    found = fine_inside(grammar, rules, weights, words, factors, tables, items) if total > 0.0 else 0.0
    if not found > 0.0:
        return -np.inf, 0, items
    log_total, written = np.log(found), 0
    for i in range(n):
        log_total -= np.log(tables.factors[i])
    if task == VITERBI:
        written = best_annotated_tree(grammar, rules, weights, words, factors, tables, items, nodes)
    elif task != SCORE:
        uses = fine_outside(grammar, rules, weights, n, found, tables, items)
        if task == MAX_RULE:
            written = max_rule_tree(grammar, rules, weights, n, items, uses, nodes)
    return log_total, written, items


@kernel
def parse_sentences(task, grammar, coarse, rules, weights, sentences, least, longest, logs, counts, nodes, counter):
    """Do one task for sentences; several threads may run this at once.

    Parameters
    ----------
    coarse : (R,) weights of the rules without annotations
    rules, weights : of the rules with annotations
    least : posterior under the coarse rules from which on a symbol over a span is kept
    longest : words of the longest sentence
    logs, counts : (number of sentences,) log probabilities, and numbers of nodes of trees, 0 for no tree
    nodes : (4 N, 2) symbol and kind of each node from the top down; those of a sentence begin at 4 times its start
    counter : (1,) from which threads claim sentences
    """
    n_symbols = grammar.first_binary.shape[0]
    room, numbers = make_coarse_room(n_symbols, longest), np.empty(n_symbols * (longest + 1) ** 2, np.int32)
    while True:
        s = claim(counter)
        if s >= logs.shape[0]:
            return
        first, last = sentences.starts[s], sentences.starts[s + 1]
        if first == last:
            logs[s], counts[s] = 0.0, 0
            continue
        words, factors = sentences.words[first:last], sentences.factors[first:last]
        logs[s], counts[s], _ = parse_sentence(
            task, grammar, coarse, rules, weights, words, factors, least, room, numbers, nodes[4 * first : 4 * last]
        )  # fmt: skip


@kernel
def posteriors_of_spans(grammar, coarse, rules, weights, words, factors, least):
    """Return the log probability of one sentence, and symbol, first word, end and posterior of what may be over it."""
    n_symbols, n = grammar.first_binary.shape[0], words.shape[0]
    room, numbers = make_coarse_room(n_symbols, n), np.empty(n_symbols * (n + 1) ** 2, np.int32)
    nodes = np.empty((0, 2), np.int32)
    log_total, _, items = parse_sentence(
        SPANS, grammar, coarse, rules, weights, words, factors, least, room, numbers, nodes
    )  # fmt: skip
    n_items = items.symbols.shape[0] if log_total > -np.inf else 0
    spans, posteriors = np.empty((n_items, 3), np.int32), np.empty(n_items)
    if n_items:
        span_posteriors(items, posteriors)
        for s in range(items.spans.shape[0] - 1):
            for item in range(items.spans[s, 2], items.spans[s + 1, 2]):
                spans[item, 0] = items.symbols[item]
                spans[item, 1], spans[item, 2] = items.spans[s, 0], items.spans[s, 1]
    return log_total, spans, posteriors
