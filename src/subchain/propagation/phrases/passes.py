"""Passes over many sentences, on threads that claim them, and collapsed visits of one after the other.

The share of a sentence in the counts is what is expected of its tree: G numbers of structural rules, then one number
for every entry.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from subchain.numerics.claiming import claim
from subchain.numerics.random import stream
from subchain.propagation.compiled import kernel
from subchain.propagation.phrases.charts import Array, Index, Short, close_cycles, make_room, mark_legal, weigh_entries
from subchain.propagation.phrases.expanding import expand_best, expand_drawn
from subchain.propagation.phrases.inside_outside import entropy_of, expect_phrases, fill_charts
from subchain.propagation.phrases.log_space import (
    fill_logs,
    fill_scored,
    score_rules,
    score_spans,
    take_logs,
)

#: Sentences that a thread claims at a time.
CLAIMED = 4
#: What a pass does: expectations; the best tree of each sentence; the tree with the largest product of posteriors of
#: its rules; that with the largest expected number of right phrases; a draw; the log likelihood; what is expected of
#: symbols at spans.
EXPECT, BEST, RULES, SPANS, DRAW, SCORE, POSTERIOR = range(7)


class Found(NamedTuple):
    """Where a pass writes, see `run_phrases`.

    Attributes
    ----------
    places, shares : (n + 1,) where each sentence's share begins, and all of them; for `POSTERIOR` the numbers expected
        of the user's symbols at spans, (tokens, tokens + 1, symbols)
    rooms, rules : (n + 1,) where the rules of each tree have room, and all of them; a number of rules comes first
    logs : (n,) log likelihoods, or log weights of the best trees
    """

    places: Index
    shares: Array
    rooms: Index
    rules: Short
    logs: Array


class Counts(NamedTuple):
    """Counts of rules, and of left-hand sides, with those of the prior.

    Attributes
    ----------
    rules, totals : (R,), (rows,)
    rows : (R,) left-hand side of each rule
    prior, prior_totals : concentrations; taking shares out of counts must leave that much
    """

    rules: Array
    totals: Array
    rows: Index
    prior: Array
    prior_totals: Array


@kernel
def prepare(grammar, text, sentence, weights, room):
    """Put the weights of one sentence into the room; return its numbers of tokens and of entries."""
    n = text.tokens[sentence + 1] - text.tokens[sentence]
    mark_legal(text, sentence, room, n)
    room.structural[: grammar.n_structural] = weights[: grammar.n_structural]
    room.structural[grammar.n_structural] = 1.0
    return n, weigh_entries(grammar, text, sentence, weights, room)


@kernel
def find_tree(task, grammar, text, sentence, room, n, n_entries, numbers, rules):
    """Write the rules of one tree; return its log weight, or the log likelihood for a draw, and how many there are."""
    if task == DRAW:
        found, _, is_log = fill_charts(grammar, text, sentence, room, n)
        if found == -np.inf:
            return found, np.int64(0)
        return found, expand_drawn(grammar, text, sentence, room, n, is_log, numbers, rules)
    if task == BEST:
        close_cycles(grammar, room)
        take_logs(room, n_entries)
        found = fill_logs(grammar, text, sentence, room, n, True)
        return found, expand_best(grammar, text, sentence, room, n, rules) if found > -np.inf else np.int64(0)
    found, is_log = expect_phrases(grammar, text, sentence, room, n)
    if found == -np.inf:
        return found, np.int64(0)
    if not is_log:
        take_logs(room, n_entries)
    if task == RULES:
        score_rules(grammar, room, n)
    else:
        score_spans(grammar, room, n, n_entries)
    fill_scored(grammar, text, sentence, room, n)
    return found, expand_best(grammar, text, sentence, room, n, rules)


@kernel
def run_phrases(task, grammar, text, sentences, weights, found, key, longest, most, counter):
    """Do one task for sentences; several threads may run this at once.

    Parameters
    ----------
    sentences : (n,) their numbers
    weights : (R,) of all rules
    found : where the results go
    key : (2,) of random numbers; every sentence has a stream of its own
    longest, most : tokens and entries of the largest sentences
    counter : (1,) from which threads claim sentences
    """
    room = make_room(grammar, longest, most)
    n_claims = (sentences.shape[0] + CLAIMED - 1) // CLAIMED
    while True:
        block = claim(counter)
        if block >= n_claims:
            return
        for at in range(block * CLAIMED, min((block + 1) * CLAIMED, sentences.shape[0])):
            sentence = sentences[at]
            found.logs[at] = 0.0
            n, n_entries = prepare(grammar, text, sentence, weights, room)
            share = found.shares[found.places[at] : found.places[at + 1]]
            if n == 0:
                share[:] = 0.0
                continue
            if task == SCORE:
                found.logs[at] = fill_charts(grammar, text, sentence, room, n)[0]
            elif task in (EXPECT, POSTERIOR):
                found.logs[at] = expect_phrases(grammar, text, sentence, room, n)[0]
                if task == EXPECT:
                    write_share(grammar, room, share)
                else:
                    write_symbols(grammar, room, n, share)
            else:
                own = found.rules[found.rooms[at] : found.rooms[at + 1]]
                found.logs[at], own[0] = find_tree(
                    task, grammar, text, sentence, room, n, n_entries, stream(key, sentence), own[1:]
                )


@kernel
def write_share(grammar, room, share):
    """Copy expected numbers of structural rules and of entries."""
    g = grammar.n_structural
    share[:g] = room.found[:g]
    share[g:] = room.found[g + 1 : share.shape[0] + 1]


@kernel
def write_symbols(grammar, room, n, share):
    """Copy what is expected of the user's symbols at spans."""
    for cell in range(n * (n + 1)):
        for a in range(grammar.n_own):
            share[cell * grammar.n_own + a] = room.outside[cell * grammar.n_symbols + a]


@kernel
def add_share(grammar, text, sentence, share, sign, counts, rows, totals):
    """Add `sign` times the share of one sentence to the counts of rules, and to totals by left-hand side."""
    g = grammar.n_structural
    for at in range(g):
        value = sign * share[at]
        counts[at] += value
        totals[rows[at]] += value
    place = g
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        terminal = text.edge[edge, 2]
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            weight = grammar.lexical_weight[at]
            if weight >= 0:
                counts[weight] += sign * share[place]
                totals[rows[weight]] += sign * share[place]
            place += 1


@kernel
def add_shares(grammar, text, sentences, places, shares, counts, rows, totals):
    """Add the shares of sentences to counts, one after the other."""
    for at in range(sentences.shape[0]):
        share = shares[places[at] : places[at + 1]]
        add_share(grammar, text, sentences[at], share, 1.0, counts, rows, totals)


@kernel
def predict(grammar, text, sentence, counts, inverse, room):
    """Put the posterior predictive weights of the rules of one sentence into the room; return n and its entries.

    `inverse` (rows,) is room.
    """
    n = text.tokens[sentence + 1] - text.tokens[sentence]
    mark_legal(text, sentence, room, n)
    for row in range(counts.totals.shape[0]):
        total = max(counts.totals[row], counts.prior_totals[row])
        inverse[row] = 1.0 / total if total > 0.0 else 0.0
    for at in range(grammar.n_structural):
        room.structural[at] = max(counts.rules[at], counts.prior[at]) * inverse[counts.rows[at]]
    room.structural[grammar.n_structural] = 1.0
    place = 0
    for edge in range(text.edges[sentence], text.edges[sentence + 1]):
        terminal = text.edge[edge, 2]
        for at in range(grammar.lexical_first[terminal], grammar.lexical_first[terminal + 1]):
            weight = grammar.lexical_weight[at]
            room.lexical[place] = 1.0
            if weight >= 0:
                likely = max(counts.rules[weight], counts.prior[weight])
                room.lexical[place] = likely * inverse[counts.rows[weight]]
            place += 1
    return n, place


@kernel
def visit_phrases(grammar, text, sentences, places, counts, shares, excludes, puts_back, measures, longest, most):
    """Update sentences one after the other under the counts, without their own shares if `excludes`.

    New shares take the place of the old ones in the counts if `puts_back`; they are added as they are stored, rounded.
    `places` are those of all sentences. Return the sums of log normalisers and, if it `measures`, of the entropies of
    trees.
    """
    room, inverse = make_room(grammar, longest, most), np.empty(counts.totals.shape[0])
    found, entropy = 0.0, 0.0
    for sentence in sentences:
        share = shares[places[sentence] : places[sentence + 1]]
        if text.tokens[sentence + 1] == text.tokens[sentence]:
            continue
        if excludes:
            add_share(grammar, text, sentence, share, -1.0, counts.rules, counts.rows, counts.totals)
        n, n_entries = predict(grammar, text, sentence, counts, inverse, room)
        if excludes != puts_back:
            sign = 1.0 if excludes else -1.0
            add_share(grammar, text, sentence, share, sign, counts.rules, counts.rows, counts.totals)
        log_normalizer, is_log = expect_phrases(grammar, text, sentence, room, n)
        found += log_normalizer
        if measures:
            entropy += entropy_of(grammar, room, n_entries, log_normalizer, is_log)
        write_share(grammar, room, share)
        if puts_back:
            add_share(grammar, text, sentence, share, 1.0, counts.rules, counts.rows, counts.totals)
    return found, entropy
