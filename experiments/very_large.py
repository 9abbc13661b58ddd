"""Chiu & Rush (2020): perplexity of HMMs with very many states on Penn Treebank text, and what each ingredient brings.

Words are divided into groups, states among the groups, and distributions are functions of embeddings. Rows vary the
number of states, leave out state dropout, and replace the softmax over states by positive features (Chiu, Deng & Rush
2021). Groups here are words of similar frequency, not the clusters of the paper, so that perplexities are higher than
published ones; the order of the models can be compared. The whole experiment needs a GPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import cell, table
from experiments.text import END, sentences
from subchain.data import Sequences, as_sequences, as_sequences_like

SOFTMAX, NO_DROPOUT, LOW_RANK = "softmax", "softmax, no state dropout", "low rank"


@dataclasses.dataclass(frozen=True)
class Size:
    """How large an experiment is.

    Attributes
    ----------
    states : numbers of states of the softmax
    features : number of features for each number of states of the low-rank models, without groups
    n_groups, embedding, epochs : settings of all models
    n_sentences : sentences of the training text, and of the others a third as many; None for all
    """

    states: tuple[int, ...]
    features: dict[int, int]
    n_groups: int
    embedding: int
    epochs: int
    n_sentences: int | None


WHOLE = Size((1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 15), {1024: 256, 4096: 1024}, 128, 256, 16, None)
QUICK = Size((32, 128), {128: 32}, 32, 16, 3, 600)


class VeryLarge(Experiment):
    """Models × seeds."""

    name = "very_large"
    title = "Very large HMMs as language models (Chiu & Rush 2020, table 1 and figures 4 and 5)"
    needs = ("ptb",)

    @property
    def size(self) -> Size:
        return QUICK if self.quick else WHOLE

    def rows(self) -> Iterable[Row]:
        size = self.size
        train = as_sequences([[*line, END] for line in sentences()[: size.n_sentences]])
        assert train.vocabulary is not None
        known = set(train.vocabulary.symbols)
        held_out = {
            part: as_sequences_like(
                [[*_among(line, known), END] for line in sentences(part)[: size.n_sentences and size.n_sentences // 3]],
                [train.vocabulary],
            )
            for part in ("valid", "test")
        }
        models = [(SOFTMAX, n, 0.5, 0) for n in size.states]
        models += [(NO_DROPOUT, size.states[-1], 0.0, 0)]
        models += [(LOW_RANK, n, 0.0, features) for n, features in size.features.items()]
        for model in models:
            for seed in range(self.seeds):
                yield self._trained(train, held_out, seed, *model)

    def _trained(
        self, train: Sequences, held_out: dict[str, Sequences], seed: int, name: str, n_states: int, dropout: float,
        features: int,
    ) -> Row:  # fmt: skip
        from subchain.neural import LowRank, NeuralHMM, Training

        size = self.size
        training = Training(epochs=size.epochs, state_dropout=dropout, batch="sentences" if features else "pieces")
        groups = None if features else frequency_groups(train, size.n_groups)
        model = NeuralHMM(
            n_states, groups, LowRank(features) if features else None, size.embedding, training, random_state=seed,
        ).fit(train, validation=held_out["valid"])  # fmt: skip
        return {
            "model": name, "states": n_states, "features": features, "seed": seed, "parameters": model.n_parameters_,
            "train": model.trace_.train[-1], "valid": model.perplexity(held_out["valid"]),
            "test": model.perplexity(held_out["test"]), "seconds": model.trace_.seconds[-1],
        }  # fmt: skip

    def summary(self, rows: list[Row]) -> list[str]:
        kinds = dict.fromkeys((row["model"], row["states"], row["features"]) for row in rows)
        lines = []
        for model, states, features in kinds:
            where = {"model": model, "states": states, "features": features}
            perplexities = [cell(rows, part, 1, **where) for part in ("train", "valid", "test")]
            lines.append([model, str(states), str(features or "–"), *perplexities, cell(rows, "seconds", 0, **where)])
        return table(("transitions", "states", "features", "train", "valid", "test", "seconds"), lines)

    def claims(self, rows: list[Row]) -> list[Claim]:
        def valid(model: str, states: int) -> float:
            return mean_of(rows, "valid", model=model, states=states)

        few, many = self.size.states[0], self.size.states[-1]
        low = max(self.size.features)
        return [
            Claim(
                f"{many} states have a lower validation perplexity than {few}",
                valid(SOFTMAX, many) < valid(SOFTMAX, few),
                f"{valid(SOFTMAX, many):.1f}, {valid(SOFTMAX, few):.1f}",
                doubted=self.quick,  # of a few hundred sentences
                published="125.0 at 32,768 states, falling with the number of states",
            ),
            Claim(
                "state dropout lowers the validation perplexity",
                valid(SOFTMAX, many) < valid(NO_DROPOUT, many),
                f"{valid(SOFTMAX, many):.1f} with, {valid(NO_DROPOUT, many):.1f} without",
                doubted=self.quick,  # a small model that is trained for a short time does not overfit
                published="134 with, 157 without, at 16,384 states",
            ),
            Claim(
                f"low-rank transitions of {low} states reach the softmax of as many within a tenth",
                valid(LOW_RANK, low) <= 1.1 * valid(SOFTMAX, low),
                f"{valid(LOW_RANK, low):.1f}, {valid(SOFTMAX, low):.1f}",
                doubted=True,  # the published models have no groups of words on either side
                published="156 with features 4 : 1, softmax 155, at 4,096 states",
            ),
        ]

    def draw(self, rows: list[Row], axes: Any) -> None:
        for model in dict.fromkeys(row["model"] for row in rows):
            states = sorted({row["states"] for row in rows if row["model"] == model})
            axes.plot(states, [mean_of(rows, "valid", model=model, states=n) for n in states], "o-", label=model)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("states")
        axes.set_ylabel("validation perplexity")
        axes.legend(fontsize=8)


def _among(line: list[str], known: set[str]) -> list[str]:
    """Return a sentence with the corpus's own word for unknown words in the place of those that training lacks."""
    return [word if word in known else "<unk>" for word in line]


def frequency_groups(text: Sequences, n_groups: int) -> NDArray[np.int64]:
    """Return groups of words of similar frequency, equally many in each."""
    assert text.vocabulary is not None
    n_words = len(text.vocabulary)
    order = np.argsort(-np.bincount(np.asarray(text.values).reshape(-1), minlength=n_words), kind="stable")
    groups = np.empty(n_words, dtype=np.int64)
    groups[order] = np.arange(n_words) * n_groups // n_words
    return groups
