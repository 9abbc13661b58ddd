"""The estimator `DMV`, the dependency model with valence (Klein & Manning 2004): trees of sentences without a treebank.

Each head generates its dependents outwards on either side; before each it stops or goes on, depending on its tag, the
side and whether it has a dependent there. All rules are learned from sentences of tags, by any of the algorithms of
`subchain.inference` (Wang 2016, section 4.5.2).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.checks import positive_number
from subchain.core.files import reading
from subchain.data.dependencies import Dependencies, as_dependencies
from subchain.data.vocabulary import SymbolTable
from subchain.engines.threads import n_threads
from subchain.errors import FileFormatError, InputError, unknown_name
from subchain.inference import Algorithm
from subchain.inference.run.trace import Trace, status_of
from subchain.models.dmv_fit import DMVFit
from subchain.models.grammar_fit import check_hard, grammar_algorithm
from subchain.models.grammar_model import GrammarModel
from subchain.models.posterior_files import load_posterior, save_posterior, texts_of
from subchain.models.underivable import warn_underivable
from subchain.numerics.seeds import seed_sequence
from subchain.propagation.trees.passes import EXPECT, SCORE, Tags
from subchain.structures.trees.model import TreePoint, TreePosterior
from subchain.structures.trees.starts import STARTS
from subchain.structures.trees.structure import DependencyTrees
from subchain.tasks.parsing import METHODS, MOST_PROBABLE, trees_of
from subchain.tasks.tree_rules import rule_table
from subchain.tasks.tree_sampling import sample_sentences

KIND, VERSION = "dependency grammar", 1
PARTS = ("root", "stop", "attach")


class DMV(GrammarModel):
    """Learn dependency trees from sentences of tags: the dependency model with valence.

    Parameters
    ----------
    inference : str or Algorithm
        "em", "vi", "cvi", "svi", "scvi", "gibbs", "hastings", or an object with settings.
    init : "harmonic", "random", "uniform" or DMV
        Where to begin. "harmonic": every word picks a head at distance d with weight 1 / d. "random": the same, with
        random preferences between tags. "uniform": all heads alike. Or a fitted grammar with the same tags, from the
        rules that it parses with.
    n_init : int
        Number of starts, of which the best run is kept; for "random".
    hard : bool
        Whether EM counts the best tree of every sentence instead of expectations (Viterbi EM).
    concentration : float
        Concentration of the Dirichlet priors of all rules; EM has a flat prior.
    root_concentration, stop_concentration : float, optional
        Concentrations for the choice of the root, and for stopping, if they differ.
    iterations : int, optional
        Iterations, passes over the data, or draws after as many of burn-in. By default 40, for samplers 200; an
        algorithm that is given as an object keeps its own number, and in any case its other settings.
    tags : list of str, optional
        All tags, if sentences to be parsed may have tags that the training sentences have not.
    random_state : int, numpy Generator or None
        Seed.
    n_jobs : int, optional
        Number of threads, all cores by default, as -1. Results do not depend on it.
    progress : bool or "auto"
        Whether to show progress; "auto" shows it on a terminal only.

    Attributes
    ----------
    posterior_ : TreePosterior
        Distribution over the rules given the sentences.
    tags_ : list of str
        The tags in the order of their codes.
    trace_, status_ : history of the best run, and why it ended
    runs_ : summaries of all runs

    Examples
    --------
    >>> from subchain.grammar import DMV
    >>> sentences = ["DT NN VB", "NN VB", "DT NN VB DT NN", "NN VB NN", "DT JJ NN VB"] * 4
    >>> grammar = DMV(progress=False).fit(sentences)
    >>> grammar.parse(["DT NN VB"])[0].tolist()
    [1, 2, -1]
    """

    def __init__(
        self,
        inference: str | Algorithm = "em",
        init: Any = "harmonic",
        n_init: int = 1,
        hard: bool = False,
        concentration: float = 0.1,
        root_concentration: float | None = None,
        stop_concentration: float | None = None,
        iterations: int | None = None,
        tags: Sequence[str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
    ) -> None:
        self.inference = inference
        self.init = init
        self.n_init = n_init
        self.hard = hard
        self.concentration = concentration
        self.root_concentration = root_concentration
        self.stop_concentration = stop_concentration
        self.iterations = iterations
        self.tags = tags
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    posterior_: TreePosterior
    tags_: list[str]

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        sentences: Any,
        *,
        column: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool | None = None,
    ) -> Self:
        """Learn the rules from sentences of tags; heads, if there are any, are not looked at.

        Parameters
        ----------
        sentences : list of sentences (lists of tags, or strings with white space between them), `Dependencies`,
            `Sequences` with a vocabulary, or a file: CoNLL-U (.conllu), lines of word, tag and head, or text with one
            sentence of tags a line
        column : "upos" or "xpos", the tags of a CoNLL-U file; "upos" by default
        checkpoint, resume : as in `HMM.fit`
        """
        algorithm = self._algorithm()
        given = as_dependencies(sentences, column).tags
        table = SymbolTable(self._known_tags())
        for sentence in given:
            for tag in sentence:
                table[tag]
        if not sum(map(len, given)):
            raise InputError("there is no sentence with words to learn from.")
        if self.tags is None and isinstance(self.init, DMV):
            self.init._fitted()
            table = SymbolTable(self.init.tags_)
        structure = self._structure(given, table.symbols, is_hard=bool(self.hard))
        fit = DMVFit(
            structure, algorithm, int(self.n_init), *self._seeds(checkpoint, resume), self._concentrations(),
            self._start(table.symbols),
        )  # fmt: skip
        self.posterior_, journey = fit.run(checkpoint, resume, self.progress)
        self.tags_ = table.symbols
        self._take_run(journey, algorithm)
        return self

    def _algorithm(self) -> Algorithm:
        """Return the algorithm; raise an `InputError` if a setting is out of range."""
        for name in ("concentration", "root_concentration", "stop_concentration"):
            if name == "concentration" or getattr(self, name) is not None:
                positive_number(self, name)
        self._check_counts()
        if isinstance(self.init, str) and self.init not in STARTS:
            raise unknown_name("start", self.init, STARTS)
        if not isinstance(self.init, (str, DMV)):
            raise InputError(f"init must be one of {', '.join(STARTS)} or a fitted DMV, not {self.init!r}.")
        if self.n_init > 1 and self.init != "random":
            raise InputError(f"n_init={self.n_init} starts are all alike for init={self.init!r}; use init='random'.")
        found = grammar_algorithm(self.inference, self.iterations)
        if self.hard:
            check_hard(found)
        return found

    def _known_tags(self) -> list[str]:
        """Return the tags that were given."""
        if self.tags is None:
            return []
        if isinstance(self.tags, str) or not isinstance(self.tags, Iterable):
            raise InputError(f"tags must be a list of tags, not {self.tags!r}.")
        found = list(self.tags)
        wrong = next((tag for tag in found if not isinstance(tag, str)), None)
        if wrong is not None:
            raise InputError(f"tags holds {wrong!r} of type {type(wrong).__name__}; tags are strings.")
        return found

    def _start(self, tags: list[str]) -> str | TreePoint:
        if isinstance(self.init, str):
            return self.init
        known = self.init._point()
        if self.init.tags_ != tags:
            raise InputError(f"init is a grammar over the tags {self.init.tags_}, not over {tags}.")
        return known

    def _concentrations(self) -> dict[str, float]:
        given = self.root_concentration, self.stop_concentration, None
        chosen = [self.concentration if value is None else value for value in given]
        return {name: float(value) for name, value in zip(PARTS, chosen, strict=True)}

    def _structure(self, sentences: list[list[str]], tags: list[str], *, is_hard: bool = False) -> DependencyTrees:
        """Return sentences as a structure; raise an `InputError` that names a tag which is not known."""
        codes = {tag: code for code, tag in enumerate(tags)}
        for number, sentence in enumerate(sentences):
            unknown = next((tag for tag in sentence if tag not in codes), None)
            if unknown is not None:
                raise InputError(
                    f"sentence {number} has the tag {unknown!r}, which the grammar does not know; say all tags with "
                    "DMV(tags=...) when it is fitted."
                )
        flat = np.array([codes[tag] for sentence in sentences for tag in sentence], dtype=np.int32)
        starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
        return DependencyTrees(Tags(flat, starts), len(tags), n_threads(self.n_jobs), is_hard=is_hard)

    def _point(self) -> TreePoint:
        """Return the rules that the grammar is used with: the mode of `EM`, else the posterior mean."""
        found = self._weights()
        assert isinstance(found, TreePoint)
        return found

    # ---- use ---------------------------------------------------------------------------------------------------------

    def parse(self, sentences: Any, method: str = MOST_PROBABLE, column: str | None = None) -> list[NDArray[np.int64]]:
        """Return the heads of every sentence: positions from 0, -1 for the root.

        A sentence that the grammar cannot derive is parsed with as few rules without probability as possible, and a
        warning names it.

        Parameters
        ----------
        sentences, column : as in `fit`
        method : "viterbi", the most probable tree, or "mbr", minimum Bayes risk: the tree with the largest expected
            number of right heads
        """
        if method not in METHODS:
            raise unknown_name("method of parsing", method, METHODS)
        point = self._point()
        structure = self._structure(as_dependencies(sentences, column).tags, self.tags_)
        heads, impossible = trees_of(structure, point, method)
        self._warn(structure, impossible, self.tags_, "their trees use as few of the missing rules as possible")
        return np.split(heads, structure.tags.starts[1:-1]) if structure.n_clusters else []

    def posterior(self, sentences: Any, column: str | None = None) -> list[NDArray[np.float64]]:
        """Return the posterior probability of every arc, an array (n, n) for each sentence of n words.

        Entry [h, d] is the probability that word h is the head of word d; [r, r] that word r is the root. For a
        sentence that the grammar cannot derive all are zero, and a warning names it.
        """
        point = self._point()
        structure = self._structure(as_dependencies(sentences, column).tags, self.tags_)
        found: list[NDArray[np.float64]] = []
        impossible: list[int] = []
        for some in structure.blocks(np.arange(structure.n_clusters)):
            pass_ = structure.run(EXPECT, point.rules(), some)
            impossible += some[np.isneginf(pass_.logs)].tolist()
            tables = np.split(pass_.shares.arcs, pass_.places[1:])
            lengths = structure.lengths[some].tolist()
            found += [table.reshape(n, n) for table, n in zip(tables, lengths, strict=True)]
        self._warn(structure, impossible, self.tags_, "their posteriors are zero")
        return found

    def score_samples(self, sentences: Any, column: str | None = None) -> NDArray[np.float64]:
        """Return the log probability of every sentence; -inf, with a warning, where the grammar cannot derive it."""
        point = self._point()
        structure = self._structure(as_dependencies(sentences, column).tags, self.tags_)
        logs = structure.run(SCORE, point.rules(), np.arange(structure.n_clusters)).logs
        self._warn(structure, np.flatnonzero(np.isneginf(logs)).tolist(), self.tags_, "their log probability is -inf")
        return logs

    def score(self, sentences: Any, column: str | None = None) -> float:
        """Return the log probability of all sentences."""
        return float(self.score_samples(sentences, column).sum())

    def sample(self, n_sentences: int = 1, max_length: int = 40, random_state: Any = None) -> Dependencies:
        """Return sentences with their trees that the grammar generates, those of at most `max_length` words.

        The tags are the words, too. Longer sentences are drawn again, so lengths follow the grammar's distribution
        given that they are at most this.
        """
        rng = np.random.default_rng(seed_sequence(random_state))
        codes, heads = sample_sentences(self._point(), n_sentences, max_length, rng)
        tags = [[self.tags_[code] for code in sentence] for sentence in codes]
        return Dependencies(tags, [list(sentence) for sentence in tags], heads)

    def sample_trees(
        self, sentences: Any, random_state: Any = None, column: str | None = None
    ) -> list[NDArray[np.int64]]:
        """Return a tree of every sentence drawn from its posterior, as `parse` does; heads of -2 if it has none."""
        point = self._point()
        structure = self._structure(as_dependencies(sentences, column).tags, self.tags_)
        rng = np.random.default_rng(seed_sequence(random_state))
        heads: list[NDArray[np.int64]] = []
        impossible: list[int] = []
        for some, found in structure.drawn(point.rules(), np.arange(structure.n_clusters), rng):
            impossible += some[np.isneginf(found.logs)].tolist()
            heads += np.split(found.heads, found.rows[1:])
        self._warn(structure, impossible, self.tags_, "they have no tree")
        return heads

    @staticmethod
    def _warn(structure: DependencyTrees, impossible: list[int], tags: list[str], what: str) -> None:
        if impossible:
            first, last = structure.tags.starts[impossible[0] : impossible[0] + 2]
            text = " ".join(tags[code] for code in structure.tags.codes[first:last].tolist())
            warn_underivable(impossible, text, what)

    @property
    def rules_(self) -> NDArray[Any]:
        """The rules, as a structured array: those of the root, of stopping, and of attachment.

        Fields are `rule` ("root", "stop" or "attach"), `head`, `side` ("left" or "right"), `has_dependent` (whether the
        head has one on this side; for "stop"), `dependent`, `probability`, and `count`, the expected uses in the
        training sentences. Rows are sorted by rule, then by head, then by decreasing probability.
        """
        return rule_table(self._point(), self.posterior_, self.tags_, self._prior_concentrations())

    def _prior_concentrations(self) -> dict[str, float]:
        return dict.fromkeys(PARTS, 1.0) if self.kind_ == "mode" else self._concentrations()

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grammar to a file, exactly and atomically, without the sentences; `load` reads it."""
        posterior = self._fitted()
        facts = {
            "tags": list(self.tags_),
            "weights": self.kind_,
            "status": self.status_,
            "trace": self.trace_.to_json(),
        }
        kept = (
            self if isinstance(self.init, str) else type(self)(**(self.get_params(deep=False) | {"init": "harmonic"}))
        )
        save_posterior(kept, posterior, path, KIND, VERSION, facts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the grammar of a file."""
        found, posterior, header = load_posterior(cls, path, KIND, VERSION, TreePosterior)
        with reading(path):
            tags, kind = texts_of(header["tags"], "tags"), header["weights"]
            n, tables = len(tags), posterior.rules()
            if [table.shape for table in tables] != [(1, n), (4 * n, 2), (2 * n, n)] or kind not in ("mode", "mean"):
                raise FileFormatError(f"the rules of the file are not those of {n} tags")
            if len(set(tags)) < n:
                raise FileFormatError("the file has a tag twice")
            for name, table in tables._asdict().items():
                if not (table > 0.0).all():
                    raise FileFormatError(f"rules of {name} have the concentration zero, which no fit gives")
            found._algorithm()
            found.posterior_, found.tags_, found.kind_ = posterior, tags, kind
            found.status_, found.trace_ = status_of(header["status"]), Trace.from_json(header["trace"])
        return found
