"""Words that pick their heads independently: what a grammar begins with."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from subchain.propagation.compiled import ordered_kernel
from subchain.propagation.trees.charts import LEFT, RIGHT
from subchain.propagation.trees.passes import share_of


@ordered_kernel
def weight_of(h, d, codes, by_distance, preferences):
    """Return the weight of word h as the head of word d."""
    weight = 1.0 / abs(h - d) if by_distance else 1.0
    if preferences.shape[1]:
        weight *= preferences[RIGHT if d > h else LEFT, codes[h], codes[d]]
    return weight


@ordered_kernel
def pick_heads(tags, sentences, places, rows, by_distance, preferences, shares):
    """Write the shares of sentences whose words pick heads in proportion to weights; see `passes.run_trees`.

    A word is the root with probability 1 / n, and a head has no dependent on a side with the product of the
    probabilities that none of the words there picks it.

    Parameters
    ----------
    by_distance : whether a head at distance d has the weight 1 / d instead of 1
    preferences : (2, T, T) further weights by side, tag of the head and of the word; (2, 0, 0) for none
    """
    for k in range(sentences.shape[0]):
        first, last = tags.starts[sentences[k]], tags.starts[sentences[k] + 1]
        n, codes = last - first, tags.codes[first:last]
        arcs, childless = share_of(shares, places[k], rows[k], n)
        for d in range(n):
            total = 0.0
            for h in range(n):
                arcs[h, d] = weight_of(h, d, codes, by_distance, preferences) if h != d else 0.0
                total += arcs[h, d]
            for h in range(n):
                if h != d:
                    arcs[h, d] = arcs[h, d] / total * (1.0 - 1.0 / n)
        for h in range(n):
            childless[h] = 1.0
            for d in range(n):
                if d != h:
                    childless[h, RIGHT if d > h else LEFT] *= 1.0 - arcs[h, d]
            arcs[h, h] = 1.0 / n
