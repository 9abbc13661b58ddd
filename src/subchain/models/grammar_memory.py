"""Estimates of the memory that fits of grammars need: tables of rules, charts and blocks, and what a run keeps.

Bytes that no array tells (trees as Python objects, tables that an iteration holds at once) were measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.data.dependencies import as_dependencies
from subchain.data.sentences import as_sentences
from subchain.data.treebank import prepare_trees
from subchain.engines.threads import n_threads
from subchain.inference import Algorithm
from subchain.inference.sampling.sampler import Sampler
from subchain.models.dmv import DMV
from subchain.models.latent_fit import SPLIT_MERGE, group_size, share_bytes
from subchain.models.latent_pcfg import LatentPCFG, as_trees
from subchain.models.memory_parts import MemoryEstimate
from subchain.models.pcfg import PCFG
from subchain.propagation.trees.charts import N_TABLES
from subchain.structures.latent.grammar import treebank_grammar
from subchain.structures.latent.layout import layout_of
from subchain.structures.latent.structure import BLOCK_ENTRIES
from subchain.structures.phrases.structure import BLOCK_NUMBERS, PhraseTrees
from subchain.structures.trees.structure import BLOCK_CELLS

#: Tables of the rules that an iteration holds at once: statistics, prior, posterior, weights, and steps between these.
#: Rules in groups have a few more, among them that of their groups.
RULE_TABLES = {
    "em": 7.0, "vi": 15.0, "cvi": 5.0, "svi": 10.0, "scvi": 7.0, "online_em": 7.0, "gibbs": 8.0, "hastings": 6.0
}  # fmt: skip
GROUPED_TABLES = {"em": 2.5, "online_em": 2.5}
#: Tables that a split or a merge adds.
SPLIT_TABLES = 2.0
#: Bytes of a node of a treebank while trees are made ready, and from then on.
NODE_START, NODE_KEPT = 295, 140
#: Bytes of a node while the rules that occur in each tree are looked up.
NODE_GROUPED = 48


def grammar_memory(grammar: DMV | PCFG | LatentPCFG, x: Any) -> MemoryEstimate:
    """Return the bytes that `grammar.fit(x)` needs besides the sentences or trees."""
    if isinstance(grammar, LatentPCFG):
        return _latent(grammar, x)
    if isinstance(grammar, DMV):
        return _dependencies(grammar, x)
    return _phrases(grammar, x)


def _dependencies(grammar: DMV, x: Any) -> MemoryEstimate:
    algorithm, given = grammar._algorithm(), as_dependencies(x).tags
    lengths = np.array([len(sentence) for sentence in given], dtype=np.int64)
    tags = {tag for sentence in given for tag in sentence} | set(grammar._known_tags())
    n_words, n_cells, longest = int(lengths.sum()), int((lengths**2).sum()), int(lengths.max(initial=0))
    charts = 8 * (N_TABLES + 1) * longest**2 * n_threads(grammar.n_jobs)
    shares = 8 * n_cells + 16 * n_words
    is_collapsed = algorithm.name == "cvi"
    block = 8 * min(BLOCK_CELLS, n_cells) + 16 * min(n_words, BLOCK_CELLS // max(longest, 1))
    blocks = 0 if is_collapsed else block * (2 if n_cells > BLOCK_CELLS else 1)
    return MemoryEstimate(
        tables=charts + blocks, sums=0, borders=4 * n_words,
        model=int(RULE_TABLES[algorithm.name] * 8 * (2 * len(tags) ** 2 + 9 * len(tags))), start=0,
        kept=_kept(algorithm, shares, n_words),
    )  # fmt: skip


def _kept(algorithm: Algorithm, shares: int, n_hidden: int) -> int:
    """Return the bytes of what a run keeps of the sentences: shares, or so many hidden numbers of each chain."""
    if algorithm.name == "cvi":
        return shares * (2 if getattr(algorithm, "order", "") == "batch" else 1)
    if isinstance(algorithm, Sampler):
        kept = 1 + (algorithm.n_samples if algorithm.keep_states else 0)
        return 8 * n_hidden * (2 + kept * algorithm.n_chains)
    return 0


def _phrases(grammar: PCFG, x: Any) -> MemoryEstimate:
    algorithm, given = grammar._algorithm(), as_sentences(x, grammar._unit())
    rules, _ = grammar._rules_for(given)
    structure = PhraseTrees(given, rules, None, n_threads(grammar.n_jobs))
    numbers = int(structure.share_sizes.sum())
    charts = structure.chart_bytes(int(structure.lengths.max(initial=0))) * structure.n_jobs
    blocks = 0 if algorithm.name == "cvi" else 8 * min(numbers, BLOCK_NUMBERS) * (2 if numbers > BLOCK_NUMBERS else 1)
    text = sum(array.nbytes for array in structure.text)
    return MemoryEstimate(
        tables=charts + blocks, sums=0, borders=text,
        model=int(_grouped_tables(algorithm) * 8 * len(rules)), start=0,
        kept=_kept(algorithm, 4 * numbers, int(structure.rooms[-1])),
    )  # fmt: skip


def _grouped_tables(algorithm: Algorithm) -> float:
    """Return the number of tables of rules in groups."""
    return RULE_TABLES[algorithm.name] + GROUPED_TABLES.get(algorithm.name, 1.0)


def _latent(grammar: LatentPCFG, x: Any) -> MemoryEstimate:
    algorithm, prepared = grammar._algorithm(), prepare_trees(as_trees(x))
    rules, forest = treebank_grammar(prepared.trees)
    sizes = np.full(rules.n_symbols, grammar.n_annotations, dtype=np.int64)
    sizes[0] = 1
    layout, n_nodes = layout_of(rules, sizes), len(forest.rules)
    width = int(layout.sizes.max()) + 1
    n_at_once = min(n_nodes, BLOCK_ENTRIES // width)
    vectors = 16 * width * n_at_once * (2 if n_nodes > n_at_once else 1) + 8 * n_nodes
    table = 8 * layout.n_entries
    is_collapsed, shares = algorithm.name == "cvi", 0
    if is_collapsed:
        is_chosen = isinstance(grammar.inference, str)
        size = group_size(forest, layout) if is_chosen else int(getattr(algorithm, "cluster_size", 1))
        shares = share_bytes(forest, layout, size) + NODE_GROUPED * n_nodes
    n_tables = _grouped_tables(algorithm) + (SPLIT_TABLES if grammar.training == SPLIT_MERGE else 0.0)
    kept = NODE_KEPT * n_nodes + _kept(algorithm, shares, n_nodes)
    model = int(n_tables * table)
    return MemoryEstimate(
        tables=0 if is_collapsed else vectors, sums=0, borders=0, model=model,
        start=max(NODE_START * n_nodes - model, 0), kept=kept,
    )  # fmt: skip
