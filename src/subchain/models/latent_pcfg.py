"""The estimator `LatentPCFG`: a treebank grammar whose symbols have latent annotations, learned from given trees.

Every symbol is split into annotated ones, which are hidden: NP becomes NP-0, NP-1, … (Matsuzaki et al. 2005), all at
once or by splitting, merging and smoothing in turn (Petrov et al. 2006), by any of the algorithms of
`subchain.inference` (Wang 2016, section 4.5.3). Sentences are parsed from coarse to fine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import positive_number, whole_number
from subchain.data.brackets import read_trees
from subchain.data.lines import existing_file
from subchain.data.sentences import Tokens
from subchain.data.tree import Tree
from subchain.data.treebank import Chains, prepare_trees
from subchain.data.treebank_sentences import as_treebank_sentences, words_of
from subchain.engines.threads import n_threads
from subchain.errors import InputError, unknown_name
from subchain.inference import Algorithm
from subchain.models.grammar_fit import grammar_algorithm
from subchain.models.grammar_model import GrammarModel
from subchain.models.latent_files import load_latent, save_latent
from subchain.models.latent_fit import SPLIT_MERGE, TRAININGS, LatentFit, Training, stage_paths
from subchain.models.underivable import warn_underivable
from subchain.numerics.perplexity import perplexity
from subchain.numerics.seeds import seed_sequence
from subchain.structures.latent.grammar import TreebankGrammar, treebank_grammar
from subchain.structures.latent.layout import Layout, layout_of
from subchain.structures.latent.model import AnnotatedPoint, AnnotatedPosterior
from subchain.tasks.latent_parsing import METHODS, Parser, Span
from subchain.tasks.latent_rules import latent_rule_table
from subchain.tasks.latent_sampling import sample_trees

#: Iterations of a run, if nothing was said.
ITERATIONS = 50
#: Most annotations of a symbol: tables of rules grow with the third power.
MOST_ANNOTATIONS = 64


class LatentPCFG(GrammarModel):
    """Learn a grammar with latent annotations from a treebank, and parse sentences with it.

    Parameters
    ----------
    n_annotations : int
        Annotated versions of each symbol; for "split_merge" a power of two, the most that a symbol may have.
    inference : str or Algorithm
        "em", "vi", "cvi", "svi", "scvi", "gibbs", "hastings", or an object with settings. Where what CVI keeps of
        single trees would take more than 256 MiB, "cvi" excludes several trees together, `CVI(cluster_size=...)`.
    training : "direct" or "split_merge"
        All annotations at once; or, in turn, split every annotation in two, merge those that gain least, and smooth.
    iterations : int, optional
        Iterations, or passes over the trees, of each run; 50 by default.
    n_init : int
        Number of starts, of which the best run is kept; for training="direct".
    concentration : float
        Concentration of the Dirichlet priors of all rules; EM has a flat prior.
    noise : float
        Where annotations begin: alike, times 1 + U(-noise, noise).
    merged : float
        Share of the pairs that are merged after each split.
    smoothing : float
        After each merge, how far rules are drawn towards the mean over a symbol's annotations; words ten times as far.
    pruning : float
        Posterior without annotations from which on the coarse pass keeps a symbol over a span; 0 keeps all.
    random_state : int, numpy Generator or None
        Seed.
    n_jobs : int, optional
        Number of threads, all cores by default, as -1. Results do not depend on it.
    progress : bool or "auto"
        Whether to show progress; "auto" shows it on a terminal only.

    Attributes
    ----------
    posterior_ : AnnotatedPosterior
        Distribution over the rules given the trees.
    symbols_ : list of str
        Symbols of the binarised grammar; the first is ROOT.
    annotations_ : dict
        Number of annotations of each symbol.
    trace_, status_ : history of the best run, and why it ended; of the last run for training="split_merge"
    stages_ : list of (str, Trace)
        All runs of the training, with what they began with: "annotated", "split" or "merged".
    runs_ : summaries of all runs of the last stage

    Examples
    --------
    >>> from subchain.grammar import LatentPCFG, parse_bracketed
    >>> trees = [
    ...     parse_bracketed("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"),
    ...     parse_bracketed("(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN dog))))"),
    ... ] * 5
    >>> grammar = LatentPCFG(2, "cvi", progress=False, random_state=0).fit(trees)
    >>> print(grammar.parse(["a dog sees the cat"])[0])
    (ROOT (S (NP (DT a) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat)))))
    """

    def __init__(
        self,
        n_annotations: int = 4,
        inference: str | Algorithm = "em",
        training: str = "direct",
        iterations: int | None = None,
        n_init: int = 1,
        concentration: float = 0.01,
        noise: float = 0.01,
        merged: float = 0.5,
        smoothing: float = 0.01,
        pruning: float = 1e-5,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
    ) -> None:
        self.n_annotations = n_annotations
        self.inference = inference
        self.training = training
        self.iterations = iterations
        self.n_init = n_init
        self.concentration = concentration
        self.noise = noise
        self.merged = merged
        self.smoothing = smoothing
        self.pruning = pruning
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    posterior_: AnnotatedPosterior
    grammar_: TreebankGrammar
    chains_: Chains
    sizes_: NDArray[np.int64]

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        trees: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool | None = None,
    ) -> Self:
        """Learn the annotations of given trees.

        Parameters
        ----------
        trees : list of Tree, or the path of a bracketed treebank
            Traces, empty nodes and function tags are taken away here.
        checkpoint, resume : as in `HMM.fit`
            For "split_merge" every stage has a file of its own: path.1, path.2, … (`stage_checkpoints`). After a
            stage that is resumed with a larger limit, those that follow begin again.
        """
        algorithm, training = self._algorithm(), self._training()
        paths = stage_paths(checkpoint, training)
        _check_apart(trees, paths)
        prepared = prepare_trees(as_trees(trees))
        if not prepared.trees:
            raise InputError("there is no tree with words to learn from.")
        grammar, forest = treebank_grammar(prepared.trees)
        fit = LatentFit(
            grammar, forest, algorithm, isinstance(self.inference, str), training, n_threads(self.n_jobs),
            *self._seeds(next(iter(paths), None), resume),
        )  # fmt: skip
        found = fit.run(checkpoint, resume, self.progress)
        self._adopt(found.posterior, grammar, prepared.chains, found.layout.sizes, "mode" if algorithm.flat else "mean")
        self._take_run(found.journey, algorithm)
        self.stages_ = found.stages
        return self

    def stage_checkpoints(self, checkpoint: str | os.PathLike[str]) -> list[Path]:
        """Return the files that `fit` writes checkpoints to, to see that they are not in the way of others.

        Examples
        --------
        >>> from subchain.grammar import LatentPCFG
        >>> [path.name for path in LatentPCFG(2, training="split_merge").stage_checkpoints("run")]
        ['run.1', 'run.2']
        """
        return stage_paths(checkpoint, self._training())

    def _adopt(
        self, posterior: AnnotatedPosterior, grammar: TreebankGrammar, chains: Chains, sizes: NDArray[np.int64],
        kind: str,
    ) -> None:  # fmt: skip
        """Take what was fitted, or read from a file."""
        self.posterior_, self.grammar_, self.chains_, self.sizes_, self.kind_ = posterior, grammar, chains, sizes, kind
        self.symbols_ = grammar.symbols
        self.annotations_ = dict(zip(grammar.symbols, sizes.tolist(), strict=True))
        self.__dict__.pop("_layout", None)

    def _algorithm(self) -> Algorithm:
        """Return the algorithm; raise an `InputError` if a setting is out of range."""
        positive_number(self, "concentration")
        whole_number(self, "n_annotations")
        self._check_counts()
        for name in ("noise", "merged", "smoothing", "pruning"):
            value = getattr(self, name)
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not is_number or not 0.0 <= value < 1.0:
                raise InputError(f"{name} must be a number from 0 to below 1, not {value!r}.")
        if self.n_annotations > MOST_ANNOTATIONS:
            raise InputError(
                f"n_annotations={self.n_annotations}: tables of rules grow with its third power; at most "
                f"{MOST_ANNOTATIONS} are possible."
            )
        if self.n_annotations > 1 and self.noise == 0.0:
            raise InputError("noise=0 leaves all annotations alike; give a small number, such as 0.01.")
        is_sampler = self.inference in ("gibbs", "hastings")
        n = (
            ITERATIONS
            if self.iterations is None and isinstance(self.inference, str) and not is_sampler
            else self.iterations
        )
        return grammar_algorithm(self.inference, n, "LatentPCFG")

    def _training(self) -> Training:
        if self.training not in TRAININGS:
            raise unknown_name("training", self.training, TRAININGS)
        if self.training == SPLIT_MERGE:
            if self.n_annotations & (self.n_annotations - 1):
                raise InputError(f"n_annotations={self.n_annotations}: training='split_merge' needs a power of two.")
            if self.n_init > 1:
                raise InputError(f"n_init={self.n_init} is for training='direct'; 'split_merge' has one start.")
        return Training(
            self.training, int(self.n_annotations), float(self.noise), float(self.merged), float(self.smoothing),
            float(self.concentration), int(self.n_init),
        )  # fmt: skip

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(self.grammar_, self.sizes_)

    def _point(self) -> AnnotatedPoint:
        """Return the rules that the grammar is used with: the mode of `EM`, else the posterior mean."""
        found = self._weights()
        assert isinstance(found, AnnotatedPoint)
        return found

    # ---- use ---------------------------------------------------------------------------------------------------------

    def parse(self, sentences: Any, method: str = "max-rule") -> list[Tree | None]:
        """Return a tree for every sentence, in the form of the treebank; None, with a warning, where there is none.

        Parameters
        ----------
        sentences : list of sentences (lists of words, strings with white space between words, or trees, whose words are
            taken), or the path of a file: a treebank in brackets, CoNLL-U, whose forms are taken, lines of word, tag
            and head, or text with a sentence a line
        method : "max-rule", the tree with the largest product of the posteriors of its rules, annotations summed out;
            or "viterbi", the tree below the most probable annotated tree
        """
        if method not in METHODS:
            raise unknown_name("method of parsing", method, METHODS)
        words = _words_of(sentences)
        found = self._parser().trees(words, method)
        self._warn(words, [number for number, tree in enumerate(found) if tree is None], "they have no tree")
        return found

    def posterior(self, sentences: Any) -> list[list[Span]]:
        """Return the labelled spans of every sentence with their posterior probabilities, the most probable first.

        Spans are (label, first word, word after the last, probability). Those that the coarse pass has left out are
        missing. A sentence that the grammar cannot derive has none, and a warning names it.
        """
        words = _words_of(sentences)
        logs, found = self._parser().spans(words)
        self._warn(words, np.flatnonzero(np.isneginf(logs)).tolist(), "they have no spans")
        return found

    def score_samples(self, sentences: Any) -> NDArray[np.float64]:
        """Return the log probability of every sentence; -inf, with a warning, where the grammar cannot derive it.

        That of an empty sentence is 0. A word that the treebank has not, or once, counts as its class, so the
        probability is that of any such word. Where no word of the treebank occurs once, an unknown one has 1 / (N + 1)
        below every tag, for N words of the treebank. Trees that the coarse pass leaves out are missing in the sum.
        """
        words = _words_of(sentences)
        logs = self._parser().logs(words)
        self._warn(words, np.flatnonzero(np.isneginf(logs)).tolist(), "their log probability is -inf")
        return logs

    def score(self, sentences: Any) -> float:
        """Return the log probability of all sentences."""
        return float(self.score_samples(sentences).sum())

    def perplexity(self, sentences: Any) -> float:
        """Return the perplexity of a word; see `score_samples` for what counts as one."""
        words = _words_of(sentences)
        n = sum(map(len, words))
        if not n:
            raise InputError("there are no words to score.")
        return perplexity(self.score(words), n)

    def sample(self, n_trees: int = 1, max_length: int = 40, random_state: Any = None) -> list[Tree]:
        """Return trees that the grammar generates, those of at most `max_length` words.

        Longer ones are drawn again. Words that occur once in the treebank come as their class, such as <digit>.
        """
        weights = self._point().rules.weights
        rng = np.random.default_rng(seed_sequence(random_state))
        return sample_trees(self.grammar_, self._layout, weights, self.chains_, n_trees, max_length, rng)

    def _parser(self) -> Parser:
        weights = self._point().rules.weights
        return Parser(
            self.grammar_, self._layout, weights, self.chains_, float(self.pruning), n_threads(self.n_jobs)
        )  # fmt: skip

    @staticmethod
    def _warn(sentences: list[Tokens], numbers: list[int], what: str) -> None:
        """Warn of sentences without a tree; empty ones have none, but are not meant."""
        impossible = [number for number in numbers if sentences[number]]
        if impossible:
            warn_underivable(impossible, " ".join(sentences[impossible[0]]), what)

    @property
    def rules_(self) -> NDArray[Any]:
        """The annotated rules with an expected count of at least 0.001, as a structured array.

        Fields are `parent`, `annotation`, `left`, `left_annotation`, `right`, `right_annotation`, `probability`, and
        `count`, the expected uses in the treebank. A rule with one child has no right one, ""; a word has the
        annotation -1. Rows are sorted by parent and annotation, then by decreasing probability.
        """
        weights, prior = self._point().rules.weights, 1.0 if self.kind_ == "mode" else float(self.concentration)
        counts = np.maximum(self.posterior_.rules.concentration - prior, 0.0)
        return latent_rule_table(self.grammar_, self._layout, weights, counts)

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grammar to a file, exactly and atomically, without the trees; `load` reads it."""
        self._fitted()
        save_latent(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the grammar of a file."""
        found: Self = load_latent(cls, path)
        return found


def as_trees(source: Any) -> list[Tree]:
    """Return trees from a list, or from a bracketed treebank."""
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        return read_trees(source)
    if isinstance(source, Tree) or not isinstance(source, Iterable):
        raise InputError(f"trees must be a list of Tree, or the path of a treebank, not a {type(source).__name__}.")
    found = list(source)
    wrong = next((number for number, tree in enumerate(found) if not isinstance(tree, Tree)), None)
    if wrong is not None:
        raise InputError(
            f"tree {wrong} is a {type(found[wrong]).__name__}, not a Tree; `parse_bracketed` makes one of text."
        )
    return found


def _check_apart(treebank: Any, checkpoints: list[Path]) -> None:
    """Raise an `InputError` if a checkpoint is the file of the treebank."""
    if not isinstance(treebank, (str, os.PathLike)):
        return
    given = existing_file(treebank)
    path = next((path for path in checkpoints if path.exists() and path.samefile(given)), None)
    if path is not None:
        raise InputError(f"the checkpoint {path} would overwrite the treebank; choose another name for it.")


def _words_of(sentences: Any) -> list[Tokens]:
    return words_of(as_treebank_sentences(sentences))
