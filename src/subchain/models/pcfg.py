"""The estimator `PCFG`, a probabilistic context-free grammar: rules of any length, written or learned.

Rules are written as text, counted in a treebank, or all of those in Chomsky's normal form over some number of symbols.
They are learned from sentences by any of the algorithms of `subchain.inference` (Wang 2016, chapter 4).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subchain.data.context_free import Rule, as_rules
from subchain.data.sentences import UNITS, as_sentences, check_brackets
from subchain.data.tree import Tree
from subchain.engines.threads import n_threads
from subchain.errors import InputError, NotFittedError, unknown_name
from subchain.inference import Algorithm
from subchain.inference.run.trace import Trace
from subchain.models.grammar_fit import check_hard, grammar_algorithm
from subchain.models.grammar_model import GrammarModel
from subchain.models.pcfg_files import load_grammar, save_grammar
from subchain.models.pcfg_fit import PCFGFit
from subchain.models.pcfg_use import PCFGUse
from subchain.models.underivable import sentences_named
from subchain.propagation.phrases.passes import SCORE
from subchain.structures.phrases.model import PhrasePoint, PhrasePosterior
from subchain.structures.phrases.rules import RuleSet, Tokens, expanded, fully_connected, is_open
from subchain.structures.phrases.starts import STARTS
from subchain.structures.phrases.structure import PhraseTrees
from subchain.tables import GroupedWeights
from subchain.tasks.treebank_rules import treebank_rules

Array = NDArray[np.float64]


class PCFG(PCFGUse, GrammarModel):
    """A probabilistic context-free grammar: trees of phrases of sentences.

    Give the rules, or the number of symbols of a grammar that is to be found.

    Parameters
    ----------
    rules : str or path, optional
        Rules such as ``"S -> NP VP [0.9] | VP [0.1]"``, one left-hand side a line, or a file of them. Tokens stand in
        quotes; ``/[0-9]+/`` is every token of the sentences that the expression matches, ``<substring>`` every run of
        tokens that occurs in them. Rules may have any length; those of one symbol over one symbol may form cycles.
    inference : str or Algorithm
        "em", "vi", "cvi", "svi", "scvi", "gibbs", "hastings", or an object with settings.
    n_nonterminals : int, optional
        Learn a fully connected grammar in Chomsky's normal form instead: a start over so many symbols, each of them
        over all pairs of symbols.
    n_preterminals : int, optional
        Symbols over tokens in a fully connected grammar; without it the same symbols are over pairs and tokens.
    init : "given", "random", "flat", "uniform" or PCFG, optional
        Where to begin. "given", with the given probabilities, is the default for given rules; "random" probabilities
        for `n_nonterminals`. "flat": all trees of a sentence are equally likely, but for random factors of the rules
        between 0.5 and 1.5. "uniform": all rules of a symbol have the same probability. Or a fitted grammar
        with the same rules.
    n_init : int
        Number of starts, of which the best run is kept; for "random" and "flat".
    hard : bool
        Whether EM counts the best tree of every sentence instead of expectations (Viterbi EM).
    concentration : float or dict
        Concentration of the Dirichlet prior of the rules of a symbol; or by symbol, "" for all others. EM has a flat
        prior.
    allowed : callable, optional
        Which rules of a fully connected grammar are possible: called with the left-hand side and a tuple of the
        right-hand side, tokens in quotes. Symbols are X0, X1, …, those over tokens alone T0, T1, …, the start is S.
        A grammar of a file knows which of its rules were not.
    unit : "word" or "character"
        What the tokens of text are.
    tokens : list of sentences, optional
        Further text whose tokens, or runs of tokens, open classes and fully connected grammars are to know.
    iterations : int, optional
        Iterations, passes over the data, or draws after as many of burn-in. By default 40, for samplers 200; an
        algorithm that is given as an object keeps its own number, and in any case its other settings.
    random_state : int, numpy Generator or None
        Seed.
    n_jobs : int, optional
        Number of threads, all cores by default, as -1. Results do not depend on it.
    progress : bool or "auto"
        Whether to show progress; "auto" shows it on a terminal only.

    Attributes
    ----------
    posterior_ : PhrasePosterior
        Distribution over the rules given the sentences.
    trace_, status_ : history of the best run, and why it ended
    runs_ : summaries of all runs

    Examples
    --------
    >>> from subchain.grammar import PCFG
    >>> grammar = PCFG("S -> 'a' S 'b' [0.4] | 'a' 'b' [0.6]", progress=False)
    >>> print(grammar.parse(["a a b b"])[0])
    (S a (S a b) b)
    >>> fitted = grammar.fit(["a b", "a a b b", "a a a b b b"])
    >>> print(fitted.rules_["probability"].round(2))
    [0.5 0.5]
    """

    def __init__(
        self,
        rules: str | os.PathLike[str] | None = None,
        inference: str | Algorithm = "em",
        n_nonterminals: int | None = None,
        n_preterminals: int | None = None,
        init: Any = None,
        n_init: int = 1,
        hard: bool = False,
        concentration: float | Mapping[str, float] = 0.1,
        allowed: Callable[[str, tuple[str, ...]], bool] | None = None,
        unit: str = "word",
        tokens: Any = None,
        iterations: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
    ) -> None:
        self.rules = rules
        self.inference = inference
        self.n_nonterminals = n_nonterminals
        self.n_preterminals = n_preterminals
        self.init = init
        self.n_init = n_init
        self.hard = hard
        self.concentration = concentration
        self.allowed = allowed
        self.unit = unit
        self.tokens = tokens
        self.iterations = iterations
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    posterior_: PhrasePosterior
    _rules: RuleSet

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], smoothing: float = 0.0, **settings: Any) -> Self:
        """Return the grammar of a treebank: rules with their relative frequencies in the trees.

        Parameters
        ----------
        trees : the treebank; trees with different labels at the top get a start "ROOT" above them
        smoothing : added to the count of every rule that occurs
        settings : of the grammar, as for its constructor; `fit` goes on from these rules
        """
        grammar = cls(**settings)
        if not smoothing >= 0.0:
            raise InputError(f"smoothing must be a number of at least 0, not {smoothing!r}.")
        rules, counts = treebank_rules(list(trees), UNITS[grammar._unit()])
        grammar._take(rules, PhrasePosterior.of(rules, 1.0 + smoothing + counts), "mode", smoothing)
        return grammar

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        sentences: Any,
        *,
        brackets: Sequence[Sequence[tuple[int, int]]] | None = None,
        column: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool | None = None,
    ) -> Self:
        """Learn the probabilities of the rules from sentences.

        A sentence that the rules cannot derive at all, or not within its brackets, is left out, and a warning names it.

        Parameters
        ----------
        sentences : list of sentences (lists of tokens, text, or trees, whose leaves are taken), `Dependencies` (their
            tags), `Sequences` with a vocabulary, or a file: CoNLL-U (.conllu), lines of word, tag and
            head, or text with one sentence a line
        brackets : for each sentence a list of spans, first token and the one after the last, that no phrase may cross
        column : "upos" or "xpos", the tags of a CoNLL-U file; "upos" by default
        checkpoint, resume : as in `HMM.fit`
        """
        algorithm = self._algorithm()
        given = as_sentences(sentences, self._unit(), column)
        if not sum(map(len, given)):
            raise InputError("there is no sentence with tokens to learn from.")
        spans = None if brackets is None else check_brackets(brackets, given)
        rules, probabilities = self._rules_for(given)
        concentration = self._concentrations(rules)
        structure = PhraseTrees(given, rules, spans, n_threads(self.n_jobs), is_hard=bool(self.hard))
        structure = self._derivable(structure, concentration > 0.0)
        fit = PCFGFit(
            structure, algorithm, int(self.n_init), *self._seeds(checkpoint, resume), concentration, probabilities,
            self._start(rules),
        )  # fmt: skip
        posterior, journey = fit.run(checkpoint, resume, self.progress)
        self._take(rules, posterior, "mode" if algorithm.flat else "mean")
        self._take_run(journey, algorithm)
        return self

    def _derivable(self, structure: PhraseTrees, allowed: NDArray[np.bool_]) -> PhraseTrees:
        """Return the structure without sentences that have no tree of the allowed rules within their brackets."""
        even = PhrasePosterior.of(structure.rules, allowed.astype(np.float64)).rules.mean()
        scores = structure.run(SCORE, even.weights, np.arange(structure.n_clusters)).logs
        kept = np.flatnonzero(~np.isneginf(scores))
        lost = np.flatnonzero(np.isneginf(scores))
        if not len(lost):
            return structure
        free = structure.without_brackets(lost)
        is_derivable = ~np.isneginf(free.run(SCORE, even.weights, np.arange(len(lost))).logs)
        reasons = {
            "the rules cannot derive": lost[~is_derivable],
            "the given brackets exclude all trees of": lost[is_derivable],
        }
        what = "; ".join(
            f"{reason} {sentences_named(some.tolist(), structure.rules.joint.join(structure.sentences[some[0]]))}"
            for reason, some in reasons.items()
            if len(some)
        )
        if not (structure.lengths[kept] > 0).any():
            raise InputError(f"{what}; nothing is left to learn from.")
        warnings.warn(f"{what}; left out of the fit.", stacklevel=3)
        return structure.part(kept)

    def _take(self, rules: RuleSet, posterior: PhrasePosterior, kind: str, smoothing: float = 0.0) -> None:
        """Become the grammar of these rules."""
        self._rules, self.posterior_, self.kind_, self._smoothing = rules, posterior, kind, smoothing
        self.trace_, self.status_ = Trace(), "completed"

    def _unit(self) -> str:
        if self.unit not in UNITS:
            raise unknown_name("unit", self.unit, UNITS)
        return self.unit

    def _algorithm(self) -> Algorithm:
        """Return the algorithm; raise an `InputError` if a setting is out of range."""
        self._check_concentration()
        self._check_counts("n_nonterminals", "n_preterminals")
        kind = self._kind_of_start()
        if isinstance(kind, str) and kind not in STARTS:
            raise unknown_name("start", kind, STARTS)
        if self.n_init > 1 and kind not in ("random", "flat"):
            raise InputError(f"n_init={self.n_init} starts are all alike for init={kind!r}; use init='random'.")
        found = grammar_algorithm(self.inference, self.iterations, "PCFG")
        if self.hard:
            check_hard(found, "PCFG")
        return found

    def _check_concentration(self) -> None:
        given = self.concentration
        values = given.values() if isinstance(given, Mapping) else [given]
        for value in values:
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value < np.inf:
                raise InputError(
                    f"PCFG: concentration must be a positive number, or one for each symbol, not {value!r}."
                )

    def _kind_of_start(self) -> Any:
        if self.init is None:
            return "random" if self.n_nonterminals is not None else "given"
        if not isinstance(self.init, (str, PCFG)):
            raise InputError(f"init must be one of {', '.join(STARTS)} or a fitted PCFG, not {self.init!r}.")
        return self.init

    def _written(self) -> list[Rule] | None:
        """Return the rules that were given as text; None if the grammar is fully connected."""
        if self.n_nonterminals is not None:
            if self.rules is not None:
                raise InputError("give rules or n_nonterminals, not both.")
            return None
        if self.n_preterminals is not None or self.allowed is not None:
            raise InputError("n_preterminals and allowed are for fully connected grammars: set n_nonterminals.")
        if self.rules is None:
            raise InputError("a PCFG needs rules, such as PCFG(\"S -> 'a' S | 'a'\"), or n_nonterminals.")
        return as_rules(self.rules)

    def _rules_for(self, sentences: list[Tokens]) -> tuple[RuleSet, Array]:
        """Return the rules for sentences, and their given probabilities."""
        known = [] if self.tokens is None else as_sentences(self.tokens, self._unit())
        text, joint = [*sentences, *known], UNITS[self._unit()]
        if self.rules is None and self.n_nonterminals is None and hasattr(self, "_rules"):
            return self._rules, self._point().rules.weights  # those of a treebank, or of a file
        written = self._written()
        if written is not None:
            return expanded(written, text, joint)
        assert self.n_nonterminals is not None
        tokens = list(dict.fromkeys(token for sentence in text for token in sentence))
        rules = fully_connected(self.n_nonterminals, self.n_preterminals, tokens, joint)
        return rules, np.ones(len(rules))

    def _concentrations(self, rules: RuleSet) -> Array:
        """Return the concentration of the prior for every rule, zero for those that are not allowed."""
        given = self.concentration
        if isinstance(given, Mapping):
            unknown = set(given) - {"", *rules.symbols}
            if unknown:
                raise unknown_name("symbol of concentration=", sorted(unknown)[0], rules.symbols)
            by_symbol = [given.get(symbol, given.get("", 0.1)) for symbol in rules.symbols]
        else:
            by_symbol = [given] * len(rules.symbols)
        found = np.array(by_symbol, dtype=np.float64)[rules.left]
        if self.allowed is not None:
            names = rules.symbols
            allowed = [self.allowed(names[left], tuple(rules.names(r))) for r, left in enumerate(rules.left.tolist())]
            found = np.where(allowed, found, 0.0)
        return found

    def _start(self, rules: RuleSet) -> str | PhrasePoint:
        kind = self._kind_of_start()
        if isinstance(kind, str):
            return kind
        own = kind._fitted_rules()
        if own.symbols != rules.symbols or own.terminals != rules.terminals or own.right != rules.right:
            raise InputError("init is a grammar with other rules; it must have the same symbols, tokens and rules.")
        found: PhrasePoint = kind._point()
        return found

    # ---- what is known -----------------------------------------------------------------------------------------------

    def _fitted_rules(self) -> RuleSet:
        """Return the rules that the grammar is used with; those that were written, before it is fitted."""
        if not hasattr(self, "_rules"):
            written = self._written()
            if written is None or is_open(written):
                raise NotFittedError("this PCFG is not fitted; call fit first, or load a file.")
            return expanded(written, [], UNITS[self._unit()])[0]
        return self._rules

    def _point(self) -> PhrasePoint:
        """Return the weights that the grammar is used with: the mode of `EM`, else the posterior mean."""
        if not hasattr(self, "_rules"):
            self._fitted_rules()
            written = self._written()
            assert written is not None
            return PhrasePoint(GroupedWeights(expanded(written, [], UNITS[self._unit()])[1]))
        found = self._weights()
        assert isinstance(found, PhrasePoint)
        return found

    def _counts(self) -> Array:
        """Return the expected uses of the rules in the training sentences; nan without these, or if not allowed."""
        if not hasattr(self, "_rules"):
            return np.full(len(self._fitted_rules()), np.nan)
        found = self.posterior_.rules.concentration
        prior = 1.0 + self._smoothing if self.kind_ == "mode" else self._concentrations(self._rules)
        return np.where(found > 0.0, np.maximum(found - prior, 0.0), np.nan)

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grammar to a file, exactly and atomically, without the sentences; `load` reads it."""
        if not hasattr(self, "_rules"):
            raise NotFittedError("this PCFG is not fitted; its rules are the text that it was given.")
        save_grammar(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the grammar of a file."""
        return load_grammar(cls, path)
