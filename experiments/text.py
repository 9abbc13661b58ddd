"""Penn Treebank text as one long chain of words, or as sentences; sentences of WikiText-2."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.corpora import data_file
from experiments.experiment import as_published
from subchain import HMM, SCVI, SVI, Categorical, Dirichlet, HoldOut
from subchain.data import Sequences, Vocabulary

END = "</s>"
#: Fixed seeds: the order of the sentences, and the words that are held out.
ORDER, HELD_OUT = 20151, 777
SHARE = 0.05
#: Words of an update.
WORDS = 1000


class Text(NamedTuple):
    """One chain of words, an end symbol after each sentence, and which of them are held out."""

    words: Sequences
    held_out: NDArray[np.bool_]


def course(
    text: Text, kind: type[SVI | SCVI], n_states: int, length: int, boundary: Any, forgetting: float, updates: int,
    seed: int,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Learn from subchains of the text, a thousand words an update; held-out scores at ten points of the run."""
    inference = kind(
        length=length, batch=WORDS // length, boundary=boundary, forgetting=forgetting, max_updates=updates,
        report_every=updates // 10,
    )  # fmt: skip
    emission = Categorical(0.1, n_categories=len(text.words.vocabulary or ()))
    model = HMM(
        n_states,
        emission,
        Dirichlet(0.1),
        as_published(inference),
        init="exponential",
        random_state=seed,
        progress=False,
    )
    trace = model.fit(text.words, validation=HoldOut(text.held_out)).trace_
    for update, score in zip(trace.measures["updates"], trace.validation, strict=True):
        yield {"updates": int(update), "score": score, "last": update == updates}


def sentences(part: str = "train") -> list[list[str]]:
    """The sentences of one part of the corpus."""
    with gzip.open(data_file("ptb", f"ptb.{part}.txt.gz"), "rt", encoding="utf8") as file:
        return [line.split() for line in file if line.split()]


def lines(corpus: str, part: str) -> list[list[str]]:
    """The lines of a part ("train", "valid" or "test") of a corpus, each with the word that ends it.

    In "wikitext2" empty lines count, as in published perplexities.
    """
    if corpus == "ptb":
        return [[*words, END] for words in sentences(part)]
    with lzma.open(data_file(corpus, f"wiki.{part}.tokens.xz"), "rt", encoding="utf8") as file:
        return [[*line.split(), END] for line in file]


def one_chain() -> Text:
    """All training sentences in a fixed random order, five percent of the positions held out."""
    lines = sentences()
    order = np.random.default_rng(ORDER).permutation(len(lines))
    words = [word for line in order for word in (*lines[line], END)]
    codes: dict[str, int] = {}
    values = np.array([codes.setdefault(word, len(codes)) for word in words])
    held_out = np.zeros(len(values), dtype=np.bool_)
    held_out[np.random.default_rng(HELD_OUT).permutation(len(values))[: int(SHARE * len(values))]] = True
    return Text(Sequences(values, vocabulary=Vocabulary(list(codes))), held_out)
