"""What collapsed inference loses if clusters are visited in shards, side by side, instead of one after the other.

Both orders run for the same number of passes from the same starts. Letters and Penn Treebank text are scored on
held-out sequences, tagged corpora by the V-measure of the states that were found. How many shards and rounds there are
follows from the size of the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from experiments.alice_chunks import letters, whole_book
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import Priors, block, cell, deviation_of, penn_sample, table, tag, ud_english
from experiments.text import sentences
from subchain import CVI, HMM, Categorical, Dirichlet
from subchain.data import Sequences, as_sequences
from subchain.errors import ConvergenceWarning

ORDERS = ("incremental", "shards")


class Corpus(NamedTuple):
    """A corpus with what is scored, the number of states and of passes, and how a run is scored given order and seed.

    `tolerated` is the loss that is allowed: much less than what seeds differ by.
    """

    name: str
    measure: str
    n_states: int
    passes: int
    tolerated: float
    score: Callable[[CVI, int], float]


def letters_of_alice() -> Corpus:
    """All chapters in chunks of 200 letters, 126 of 663 held out."""
    chunks = whole_book()
    return Corpus("Alice, letters", "nats a letter", 20, 60, 0.005, _held_out(chunks.train, chunks.test, 20, letters()))


def words_of_newspapers(n_sentences: int | None) -> Corpus:
    """Penn Treebank text by sentence; its validation part is held out."""
    train = as_sequences(sentences()[:n_sentences])
    assert train.vocabulary is not None
    known = set(train.vocabulary.symbols)
    test = as_sequences([line for line in sentences("valid") if known.issuperset(line)]).recode(train.vocabulary)
    emission = Categorical(0.01, n_categories=len(known))
    return Corpus("Penn Treebank text", "nats a word", 45, 30, 0.02, _held_out(train, test, 45, emission))


def tagged(name: str, text: Any, priors: Priors, n_sentences: int | None) -> Corpus:
    """A tagged corpus, of which only the words are shown."""
    task = block(text, 1, n_sentences)

    def score(inference: CVI, seed: int) -> float:
        return 100.0 * tag(task, inference, priors, "states", seed).report.v_measure

    return Corpus(name, "V-measure", task.n_tags, 60, 2.0, score)


def _held_out(train: Sequences, test: Sequences, n_states: int, emission: Categorical) -> Callable[[CVI, int], float]:
    def score(inference: CVI, seed: int) -> float:
        model = HMM(
            n_states, emission, Dirichlet(5.0 / n_states), inference, init="exponential", random_state=seed,
            progress=False,
        )  # fmt: skip
        return float(model.fit(train).score(test)) / test.n_observations

    return score


class Shards(Experiment):
    """Corpora × orders × seeds."""

    name = "shards"
    title = "Collapsed inference in shards of clusters"
    needs = ("ptb", "treebank", "ud-ewt")

    def corpora(self) -> Iterable[Corpus]:
        """The corpora, made one after the other."""
        yield letters_of_alice()
        yield tagged("Penn sample, tags", penn_sample(), Priors(0.1, 0.01), None)
        yield tagged("UD English, tags", ud_english(), Priors(1.0, 0.03), 2000 if self.quick else None)
        yield words_of_newspapers(5000 if self.quick else None)

    def rows(self) -> Iterable[Row]:
        for corpus in self.corpora():
            passes = corpus.passes // 6 if self.quick else corpus.passes
            for seed in range(self.seeds):
                for order in ORDERS:
                    inference = CVI("sequence", order=order, max_iter=passes, tolerance=0.0, search=False)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ConvergenceWarning)
                        score = corpus.score(inference, seed)
                    yield {
                        "corpus": corpus.name, "measure": corpus.measure, "passes": passes, "order": order,
                        "seed": seed, "score": score, "tolerated": corpus.tolerated,
                    }  # fmt: skip

    def summary(self, rows: list[Row]) -> list[str]:
        heads = ("corpus", "score", "passes", *ORDERS, "loss, mean ± standard error")
        return table(heads, (self._line(rows, corpus) for corpus in _corpora(rows)))

    def _line(self, rows: list[Row], corpus: str) -> list[str]:
        first = next(row for row in rows if row["corpus"] == corpus)
        digits = 1 if first["measure"] == "V-measure" else 4
        scores = [cell(rows, "score", digits, corpus=corpus, order=order) for order in ORDERS]
        losses = _losses(rows, corpus)
        error = deviation_of([{"loss": loss} for loss in losses], "loss") / np.sqrt(len(losses))
        loss = f"{np.mean(losses):.{digits}f} ± {error:.{digits}f}"
        return [corpus, first["measure"], str(first["passes"]), *scores, loss]

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for corpus in _corpora(rows):
            loss, allowed = float(np.mean(_losses(rows, corpus))), mean_of(rows, "tolerated", corpus=corpus)
            text = f"{corpus}: shards lose at most {allowed:g}"
            claims.append(Claim(text, loss <= allowed, f"{loss:.4f}", doubted=self.quick))  # so few passes are no end
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        corpora = _corpora(rows)
        for place, corpus in enumerate(corpora):
            allowed, losses = mean_of(rows, "tolerated", corpus=corpus), _losses(rows, corpus)
            axes.scatter([place] * len(losses), [loss / allowed for loss in losses], s=14, color="C0")
        axes.axhline(0.0, color="0.7", lw=1)
        axes.set_xticks(range(len(corpora)), corpora, fontsize=7)
        axes.set_ylabel("loss of a run, divided by what is tolerated")


def _corpora(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["corpus"] for row in rows))


def _losses(rows: list[Row], corpus: str) -> list[float]:
    """How much lower shards score, seed by seed."""
    first, second = (
        {row["seed"]: row["score"] for row in rows if (row["corpus"], row["order"]) == (corpus, order)}
        for order in ORDERS
    )
    return [first[seed] - second[seed] for seed in sorted(first)]
