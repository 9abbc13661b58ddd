"""Chiu & Rush (2020): perplexity of HMMs with very many states as language models, beside an n-gram and an LSTM.

Words are divided into classes by the exchange algorithm, states among the classes, and distributions are functions of
embeddings. Rows vary the number of states, leave out state dropout, and replace the softmax over states by positive
features (Chiu, Deng & Rush 2021). The baselines are a Kneser-Ney 5-gram and an LSTM with as many parameters as the
largest HMM. The whole experiment needs a GPU.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.kneser_ney import KneserNey
from experiments.tagging import cell, table
from experiments.text import lines
from subchain.data import as_sequences, as_sequences_like, word_classes

SOFTMAX, NO_DROPOUT, LOW_RANK = "softmax", "softmax, no state dropout", "low rank"
NGRAM, LSTM = "Kneser-Ney 5-gram", "LSTM"
PARTS = ("train", "valid", "test")


@dataclasses.dataclass(frozen=True)
class Size:
    """How large an experiment is.

    Attributes
    ----------
    states : numbers of states of the softmax
    features : number of features for each number of states of the low-rank models, without groups
    n_groups, embedding, epochs : settings of all models
    lstm_epochs : passes of the LSTM
    streams : stretches of 32 words in an update
    n_words : words of the training text in whole sentences, about, and of the others a third as many; None for all
    """

    states: tuple[int, ...]
    features: dict[int, int]
    n_groups: int
    embedding: int
    epochs: int
    lstm_epochs: int
    streams: int
    n_words: int | None


WHOLE = Size((1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 15), {1024: 256, 4096: 1024}, 128, 256, 16, 40, 32, None)
QUICK = Size((32, 128), {128: 32}, 32, 16, 6, 6, 6, 8000)
#: Words of a stretch of an update.
LENGTH = 32


class Parts:
    """Training, validation and test text of a corpus, coded by the words of the training text."""

    def __init__(self, corpus: str, n_words: int | None) -> None:
        self.train = as_sequences(_first(lines(corpus, "train"), n_words))
        assert self.train.vocabulary is not None
        self.n_words = len(self.train.vocabulary)
        known = set(self.train.vocabulary.symbols)
        few = None if n_words is None else n_words // 3
        self.valid, self.test = (
            as_sequences_like(
                [_among(line, known) for line in _first(lines(corpus, part), few)], [self.train.vocabulary]
            )
            for part in PARTS[1:]
        )

    def classes(self, n_classes: int) -> NDArray[np.int64]:
        """Return classes of the words by their neighbours, numbered without gaps."""
        return np.unique(word_classes(self.train, n_classes), return_inverse=True)[1].astype(np.int64)


class VeryLarge(Experiment):
    """Models × seeds."""

    name = "very_large"
    title = "Very large HMMs as language models (Chiu & Rush 2020, table 1 and figures 4 and 5)"
    needs = ("ptb",)
    #: What the paper has for its largest model, the 5-gram and the LSTM on validation text.
    published: ClassVar[str] = "125.0 at 32,768 states, LSTM 93.6"

    @property
    def size(self) -> Size:
        return QUICK if self.quick else WHOLE

    def rows(self) -> Iterable[Row]:
        with _threads(1 if self.quick else None):  # they cost more than they bring to small networks
            yield from self._rows()

    def _rows(self) -> Iterator[Row]:
        size, parts = self.size, Parts(self.needs[0], self.size.n_words)
        groups = parts.classes(size.n_groups)
        yield _ngram(parts)
        models = [(SOFTMAX, n, 0.5, 0) for n in size.states]
        models += [(NO_DROPOUT, size.states[-1], 0.0, 0)]
        models += [(LOW_RANK, n, 0.0, features) for n, features in size.features.items()]
        budget = 0
        for name, n_states, dropout, features in models:
            for row in self._trained(parts, None if features else groups, name, n_states, dropout, features):
                budget = max(budget, int(row["parameters"]))
                yield row
        yield from self._lstms(parts, budget)

    def _trained(
        self, parts: Parts, groups: NDArray[np.int64] | None, name: str, n_states: int, dropout: float, features: int
    ) -> Iterator[Row]:
        """Yield a row for each seed of one kind of HMM."""
        from subchain.neural import LowRank, NeuralHMM, Training

        size = self.size
        training = Training(
            size.epochs, "sentences" if features else "pieces", size.streams, LENGTH, state_dropout=dropout
        )
        n_states -= n_states % (1 if groups is None else int(groups.max()) + 1)
        for seed in range(self.seeds):
            model = NeuralHMM(
                n_states, groups, LowRank(features) if features else None, size.embedding, training, random_state=seed
            ).fit(parts.train, validation=parts.valid)
            yield {
                "model": name, "states": n_states, "features": features, "seed": seed,
                "parameters": model.n_parameters_, "train": model.trace_.train[-1],
                "valid": model.perplexity(parts.valid), "test": model.perplexity(parts.test),
                "seconds": model.trace_.seconds[-1],
            }  # fmt: skip

    def _lstms(self, parts: Parts, budget: int) -> Iterator[Row]:
        from experiments.lstm import trained

        for seed in range(self.seeds):
            found = trained(
                parts.train, parts.valid, parts.test, parts.n_words, budget, self.size.lstm_epochs, seed,
                self.size.streams * LENGTH,
            )  # fmt: skip
            row = dataclasses.asdict(found)
            yield {"model": LSTM, "states": 0, "features": 0, "seed": seed, "parameters": row.pop("n_parameters")} | row

    def summary(self, rows: list[Row]) -> list[str]:
        kinds = dict.fromkeys((row["model"], row["states"], row["features"]) for row in rows)
        shown = []
        for model, states, features in kinds:
            where = {"model": model, "states": states, "features": features}
            cells = [cell(rows, part, 1, **where) for part in PARTS] + [cell(rows, "seconds", 0, **where)]
            size = f"{mean_of(rows, 'parameters', **where):,.0f}"
            shown.append([model, str(states or "–"), str(features or "–"), size, *cells])
        return table(("model", "states", "features", "parameters", *PARTS, "seconds"), shown)

    def claims(self, rows: list[Row]) -> list[Claim]:
        def valid(model: str, states: int) -> float:
            return mean_of(rows, "valid", model=model, states=states)

        sizes = sorted({row["states"] for row in rows if row["model"] == SOFTMAX})
        few, many = sizes[0], sizes[-1]
        low = max(row["states"] for row in rows if row["model"] == LOW_RANK)
        near = min(sizes, key=lambda size: abs(size - low))
        return [
            Claim(
                f"{many} states have a lower validation perplexity than {few}",
                valid(SOFTMAX, many) < valid(SOFTMAX, few),
                f"{valid(SOFTMAX, many):.1f}, {valid(SOFTMAX, few):.1f}",
                doubted=self.quick,  # of a few hundred sentences
                published=self.published,
            ),
            Claim(
                "state dropout lowers the validation perplexity",
                valid(SOFTMAX, many) < valid(NO_DROPOUT, many),
                f"{valid(SOFTMAX, many):.1f} with, {valid(NO_DROPOUT, many):.1f} without",
                doubted=self.quick,  # a small model that is trained for a short time does not overfit
                published="134 with, 157 without, at 16,384 states of Penn Treebank",
            ),
            Claim(
                f"low-rank transitions of {low} states reach the softmax of as many within a tenth",
                valid(LOW_RANK, low) <= 1.1 * valid(SOFTMAX, near),
                f"{valid(LOW_RANK, low):.1f}, {valid(SOFTMAX, near):.1f}",
                doubted=True,  # the published models have no groups of words on either side
                published="156 with features 4 : 1, softmax 155, at 4,096 states of Penn Treebank",
            ),
            Claim(
                f"{many} states have a lower validation perplexity than a 5-gram",
                valid(SOFTMAX, many) < valid(NGRAM, 0),
                f"{valid(SOFTMAX, many):.1f}, {valid(NGRAM, 0):.1f}",
                doubted=self.quick,
                published="test 116.0 and 141.2 on Penn Treebank",
            ),
            Claim(
                "an LSTM of the same number of parameters has a lower validation perplexity than all HMMs",
                valid(LSTM, 0) < min(row["valid"] for row in rows if row["states"]),
                f"{valid(LSTM, 0):.1f}, {min(row['valid'] for row in rows if row['states']):.1f}",
                doubted=self.quick,  # a few updates do not train it
                published="93.6 with 3.6 million parameters and 125.0 on Penn Treebank",
            ),
        ]

    def draw(self, rows: list[Row], axes: Any) -> None:
        for model in (SOFTMAX, NO_DROPOUT, LOW_RANK):
            states = sorted({row["states"] for row in rows if row["model"] == model})
            axes.plot(states, [mean_of(rows, "valid", model=model, states=n) for n in states], "o-", label=model)
        for model, style in ((NGRAM, ":"), (LSTM, "--")):
            axes.axhline(mean_of(rows, "valid", model=model), linestyle=style, color="grey", label=model)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("states")
        axes.set_ylabel("validation perplexity")
        axes.legend(fontsize=8)


class VeryLargeWikiText(VeryLarge):
    """The same on WikiText-2."""

    name = "very_large_wikitext"
    title = "Very large HMMs on WikiText-2 (Chiu & Rush 2020, table 1)"
    needs = ("wikitext2",)
    published = "169.0 at 32,768 states"


def _ngram(parts: Parts) -> Row:
    """Return the row of the 5-gram."""
    begin = time.perf_counter()
    model = KneserNey(parts.train, parts.n_words)
    return {
        "model": NGRAM, "states": 0, "features": 0, "seed": 0, "parameters": model.n_parameters,
        "train": model.perplexity(parts.train), "valid": model.perplexity(parts.valid),
        "test": model.perplexity(parts.test), "seconds": time.perf_counter() - begin,
    }  # fmt: skip


@contextmanager
def _threads(n: int | None) -> Iterator[None]:
    """Have PyTorch use so many threads of the processor; None for as many as it does."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if n is None else n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _first(sentences: list[list[str]], n_words: int | None) -> list[list[str]]:
    """Return the first sentences, with at least so many words in all."""
    if n_words is None:
        return sentences
    return sentences[: int(np.searchsorted(np.cumsum([len(line) for line in sentences]), n_words)) + 1]


def _among(line: list[str], known: set[str]) -> list[str]:
    """Return a sentence with the corpus's own word for unknown words in the place of those that training lacks."""
    return [word if word in known else "<unk>" for word in line]
