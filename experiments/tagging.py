"""Sentences tagged by hidden states, run and scored in one way: corpora, algorithms with their priors, tables.

The Penn Treebank sample (45 tags) and UD English (17 tags) are cut into blocks of sentences. A block is coded with the
words that it has itself, because the weight of the prior grows with the size of the vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from experiments.corpora import data_file
from experiments.experiment import Claim, Row, as_published, mean_of
from subchain import EM, HMM, VI, Categorical, Dirichlet
from subchain.data import Ambiguity, Sequences, TagDictionary, TaggedText, Vocabulary, read_conllu, read_tagged
from subchain.errors import ConvergenceWarning
from subchain.inference import CVI, Algorithm, Gibbs
from subchain.metrics import TaggingReport, tagging_report

#: Temperatures of the sampler, from hot to cold (Goldwater & Griffiths 2007).
ANNEALING = (2.0, 0.08)
NAMES = ("EM", "VI", "CVI 1", "CVI 2", "Gibbs")


class Priors(NamedTuple):
    """Concentrations of the transitions and first states, and of the words."""

    transitions: float
    words: float


class Task(NamedTuple):
    """Sentences, their gold tags, and the tags that their words may have, if that is known."""

    words: Sequences
    tags: Sequences
    dictionary: TagDictionary | None = None

    @property
    def n_tags(self) -> int:
        return len(self.tags.vocabulary or ())

    @property
    def n_words(self) -> int:
        return len(self.words.vocabulary or ())

    def ambiguity(self) -> Ambiguity:
        """How much is left open about the tags."""
        dictionary = self.dictionary or TagDictionary({}, self.tags.vocabulary)
        return dictionary.ambiguity(self.words, self.tags)


class Tagging(NamedTuple):
    """How good a tagging is, and how long its iterations took."""

    report: TaggingReport
    seconds: float


# ---- corpora ---------------------------------------------------------------------------------------------------------


def penn_sample() -> TaggedText:
    """The tagged sentences of the Penn Treebank that are freely given out."""
    return read_tagged(data_file("treebank", "wsj-sample.tagged.tsv.gz"))


def ud_english() -> TaggedText:
    """The training part of UD English (EWT), with universal tags."""
    return read_conllu(data_file("ud-ewt", "en_ewt-ud-train.conllu.gz"))


def block(text: TaggedText, first: int, last: int | None) -> Task:
    """Sentences `first` to `last`, counted from 1, both included; all from there on if `last` is None."""
    assert text.tags is not None
    words, tags = text.words[first - 1 : last], text.tags[first - 1 : last]
    assert words.vocabulary is not None
    symbols = words.vocabulary.symbols
    own = Vocabulary([symbols[code] for code in np.unique(words.values)])
    return Task(words.recode(own), tags)


def with_dictionary(task: Task, text: TaggedText, min_count: int) -> Task:
    """The task with the tags that the whole text has for each word that the task has so many times."""
    return task._replace(
        dictionary=TagDictionary.build(text.words, text.tags, min_count=min_count, counts_from=task.words)
    )


# ---- runs ------------------------------------------------------------------------------------------------------------


def algorithms(iterations: int, sweeps: int) -> dict[str, Algorithm]:
    """The five algorithms that are compared, by their names."""
    return {
        "EM": EM(max_iter=iterations, tolerance=0.0),
        "VI": VI(max_iter=iterations, tolerance=0.0),
        "CVI 1": CVI(cluster="state", max_iter=iterations, tolerance=0.0),
        "CVI 2": CVI(cluster="sequence", max_iter=iterations, tolerance=0.0),
        "Gibbs": annealed(sweeps),
    }


def annealed(sweeps: int) -> Gibbs:
    """A sampler that is cooled down; the draw at its end is the answer."""
    return Gibbs(burn_in=sweeps - 1, annealing=ANNEALING, n_samples=1, n_chains=1)


def tag(task: Task, inference: Algorithm, priors: Priors | None, init: Any, seed: int) -> Tagging:
    """Learn from the sentences, tag them by their most probable states, and score that; no priors for EM."""
    emission, transition = Categorical(n_categories=task.n_words), None
    if priors is not None:
        emission = Categorical(priors.words, n_categories=task.n_words)
        transition = Dirichlet(priors.transitions, initial_concentration=priors.transitions)
    model = HMM(
        task.n_tags,
        emission,
        transition,
        as_published(inference),
        init=init,
        random_state=seed,
        n_jobs=1,
        progress=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of iterations is part of the experiment
        model.fit(task.words, allowed=task.dictionary)
    predicted = np.concatenate([np.atleast_1d(x) for x in model.predict(task.words, allowed=task.dictionary)])
    return Tagging(
        tagging_report(task.tags, Sequences(predicted, task.words.offsets), task.words), model.trace_.seconds[-1]
    )


def random_parameters(task: Task, seed: int) -> HMM:
    """A model with parameters drawn at random, uniform numbers that are made to sum to one."""
    rng = np.random.default_rng([seed, 7])
    n_states = task.n_tags
    initial, transition, emission = (
        table / table.sum(axis=-1, keepdims=True)
        for table in (rng.random(n_states), rng.random((n_states, n_states)), rng.random((n_states, task.n_words)))
    )
    model = HMM.from_parameters(initial, transition, Categorical.from_parameters(emission))
    model.vocabularies_ = task.words.vocabularies
    return model


# ---- tables ----------------------------------------------------------------------------------------------------------


def deviation_of(rows: Iterable[Row], value: str, **where: Any) -> float:
    """Standard deviation of a column over the rows that agree with `where`; nan if there are fewer than two."""
    chosen = [row[value] for row in rows if all(row.get(key) == wanted for key, wanted in where.items())]
    return float(np.std(chosen, ddof=1)) if len(chosen) > 1 else float("nan")


def cell(rows: list[Row], value: str, digits: int = 1, **where: Any) -> str:
    """Mean and deviation of a column as they stand in a table; a dash where nothing was run."""
    mean, deviation = mean_of(rows, value, **where), deviation_of(rows, value, **where)
    if np.isnan(mean):
        return "–"
    return f"{mean:.{digits}f}" + ("" if np.isnan(deviation) else f" ± {deviation:.{digits}f}")


def table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    """A table in Markdown."""
    written = [" | ".join(line) for line in (heads, *lines)]
    return [f"| {written[0]} |", "|" + "---|" * (written[0].count(" | ") + 1), *(f"| {line} |" for line in written[1:])]


def ahead(
    title: str, scores: dict[str, float], first: str, second: str, doubted: bool, thesis: dict[str, float]
) -> Claim:
    """The claim that one algorithm scores higher than another, with the thesis's scores where it has them."""
    text, evidence = f"{title}: {first} is ahead of {second}", f"{scores[first]:.2f}, {scores[second]:.2f}"
    published = f"{thesis[first]}, {thesis[second]}" if thesis else ""
    return Claim(text, scores[first] > scores[second], evidence, doubted, published)
