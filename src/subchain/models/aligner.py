"""The estimator `WordAligner`: which words of two sentences translate each other.

IBM model 1 and the hidden Markov aligner in both directions, by any of the algorithms of `subchain.inference`. In
agreement training (Liang, Taskar & Klein 2006) both directions of a sentence pair are updated together, and a link
counts as the product of its two posteriors. Collapsed variational inference updates sentence pairs under the counts of
all others (Wang 2016, section 3.8.3): one after the other, or in rounds, within which the counts stay as they are.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import Component
from subchain.data.links import Links
from subchain.data.parallel_reading import as_parallel_text
from subchain.data.parallel_text import ParallelText
from subchain.engines.threads import n_cores
from subchain.errors import InputError, NotFittedError, unknown_name
from subchain.inference import SCVI, Algorithm
from subchain.models.alignment_blocks import TextPosteriors
from subchain.models.alignment_files import load_aligner, save_aligner
from subchain.models.alignment_settings import READ_WITH, check_same, check_settings
from subchain.models.alignment_stages import StageFit, null_probability_of, stage_algorithm, stage_model
from subchain.numerics.seeds import seed_sequence
from subchain.structures.alignment.model import AlignmentPosterior
from subchain.structures.alignment.structure import Alignments
from subchain.structures.alignment.text import MOST_WORDS, AlignedText
from subchain.tasks.linking import GROWN_PRODUCT

DIRECTIONS = {"forward": 0, "backward": 1}
#: Expected links from which on a word pair is in the lexicon.
LEAST_LINKS = 0.5


class WordAligner(Component):
    """Align the words of sentence pairs that translate each other.

    Pairs with a sentence of more than 1,000 words have no links, with a warning.

    Parameters
    ----------
    stages : sequence of "ibm1", "diagonal" and "hmm"
        Models that are fitted one after the other; links are those of the last. "diagonal" is IBM model 2 with
        positions that depend on their distance from the diagonal, as in fast_align.
    inference : str or Algorithm
        "cvi", "em", "vi", "scvi", "gibbs", or an object with settings. Its `max_iter`, if it is not the default of its
        class, is the number of iterations of every stage; `iterations` takes its place.
    agreement : bool
        Whether "em", "cvi" and "scvi" train both directions to agree. "vi" and "gibbs" train each by itself: the
        geometric means of "vi" give words to NULL on which the directions disagree.
    symmetrize : str
        How links of both directions are combined: "product" keeps those whose posteriors have a geometric mean above
        `threshold`; "grow-product" adds, for a word that has no link then, the most probable one over half the
        threshold among the words that its neighbours are linked to, if there is one; or "grow-diag-final-and",
        "grow-diag-final", "grow-diag", "intersection", "union".
    threshold : float
        For the products; a higher one gives fewer and safer links.
    concentration : float
        Concentration β of the prior over the translations of a word; `EM` has a flat prior.
    null_probability : float, optional
        Probability that a word has no counterpart, in the hidden Markov and in the diagonal model; by default 0.2, or
        0.4 with `agreement=False` if links are not combined by a product; "vi" has 0.2 in either case.
    max_jump : int
        Width of jumps from which on they share one weight; the longer a jump, the smaller its share.
    end_jumps : bool
        Whether the jump to the first linked word has widths of its own, and a sentence ends by a jump behind its last
        position, which has widths of its own, too; `score` then includes that sentences end where they do.
    prefix : int, optional
        Number of letters that words are cut to, so that forms of a word that begin alike become one: 4 to 6 where a
        word has many forms that differ in their endings, and the text is small. Words of the results are cut, too.
    rare : int, optional
        Cut only words that occur at most so often in the text, so that frequent words that begin alike stay apart; of
        new text, words that were not seen in training.
    iterations : int or sequence of int, optional
        Iterations of each stage; by default 2 of model 1 and 3 of the hidden Markov model for "cvi", 5 of each for "em"
        and "vi", 1 pass of each for "scvi", and 20 sweeps of burn-in and 20 draws for "gibbs".
    random_state : int, numpy Generator or None
        Seed.
    n_jobs : int, optional
        Number of threads, all cores by default. Results do not depend on it.
    progress : bool or "auto"
        Whether to show progress; "auto" shows it on a terminal only.

    Attributes
    ----------
    posterior_ : AlignmentPosterior
        Distribution over translation tables and jump widths given the text.
    source_words_, target_words_ : list of str
        The words in the order of their codes.
    trace_, status_ : history of the last stage, and why it ended
    traces_ : history of every stage

    Examples
    --------
    >>> from subchain.alignment import WordAligner
    >>> source = ["the house", "the book", "a book", "a house"] * 5
    >>> target = ["das Haus", "das Buch", "ein Buch", "ein Haus"] * 5
    >>> aligner = WordAligner(progress=False).fit(source, target)
    >>> aligner.align(["the book"], ["das Buch"])[0].tolist()
    [[0, 0], [1, 1]]
    """

    def __init__(
        self,
        stages: Sequence[str] = ("ibm1", "hmm"),
        inference: str | Algorithm = "cvi",
        agreement: bool = True,
        symmetrize: str = GROWN_PRODUCT,
        threshold: float = 0.4,
        concentration: float = 1e-3,
        null_probability: float | None = None,
        max_jump: int = 10,
        end_jumps: bool = True,
        prefix: int | None = None,
        rare: int | None = None,
        iterations: int | Sequence[int] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | str = "auto",
    ) -> None:
        self.stages = stages
        self.inference = inference
        self.agreement = agreement
        self.symmetrize = symmetrize
        self.threshold = threshold
        self.concentration = concentration
        self.null_probability = null_probability
        self.max_jump = max_jump
        self.end_jumps = end_jumps
        self.prefix = prefix
        self.rare = rare
        self.iterations = iterations
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        source: Any,
        target: Any = None,
        *,
        prior: WordAligner | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool | None = None,
    ) -> Self:
        """Learn from sentence pairs.

        Parameters
        ----------
        source, target : lists of sentences (lists of tokens, or strings), or two text files; both sides may be in one
            `ParallelText`, file of `source ||| target` lines, or Parquet file with two columns, given as `source`
        prior : a fitted aligner whose counts of links and jumps are added to the prior
        checkpoint, resume : as in `HMM.fit`; every stage has a file of its own, `checkpoint` with its number behind
        """
        self._check()
        if prior is not None and not isinstance(prior, WordAligner):
            raise InputError(
                f"prior must be a fitted WordAligner, not {prior!r:.60}; load a file with WordAligner.load."
            )
        known = None if prior is None else prior._fitted()
        if prior is not None:
            check_same(prior._read_with, self.get_params(deep=False))
        algorithms = [self._algorithm(number) for number in range(len(self.stages))]
        keeps = not isinstance(algorithms[0], SCVI)  # for texts of any size: it keeps nothing of sentence pairs
        data = AlignedText.of(self._text(source, target, prior), keeps_entries=keeps, n_jobs=self._jobs())
        if not data.n_cells:
            raise InputError("there is no sentence pair with words on both sides to learn from.")
        _warn_of_left_out(data)
        null_probability = null_probability_of(self.get_params(deep=False), algorithms[-1])
        names = ("concentration", "max_jump", "end_jumps", "agreement", "prefix", "rare")
        settings = {name: getattr(self, name) for name in names}
        settings |= {"null_probability": null_probability, "n_jobs": self._jobs()}
        known_stage = None if prior is None else prior.stage_
        fit = StageFit(data, known, known_stage, settings, seed_sequence(self.random_state), self.progress)
        files = fit.files(self.stages, algorithms, checkpoint, resume)
        self.traces_ = []
        for stage, algorithm, file in zip(self.stages, algorithms, files, strict=True):
            found = fit.run(stage, algorithm, file)
            self.traces_.append(found.trace)
            if found.status == "interrupted":
                break
        self.posterior_, self.kind_, self.trace_, self.status_ = fit.posterior(), found.kind, found.trace, found.status
        self.source_words_, self.target_words_ = data.text.source_words, data.text.target_words
        self.stage_: str = stage
        self._data, self._shares = data, fit.shares
        self._read_with: dict[str, Any] = {name: settings[name] for name in READ_WITH}
        return self

    def _check(self) -> None:
        """Raise an `InputError` if a setting has a wrong type or is out of range."""
        check_settings(self.get_params(deep=False))

    def _algorithm(self, number: int) -> Algorithm:
        given = self.iterations
        n = given if given is None or isinstance(given, (int, np.integer)) else given[number]
        return stage_algorithm(self.inference, self.stages[number], None if n is None else int(n))

    def _jobs(self) -> int:
        return n_cores() if self.n_jobs is None else max(int(self.n_jobs), 1)

    def _text(self, source: Any, target: Any, known: WordAligner | None = None) -> ParallelText:
        """Return sentences of any kind as text, with words cut to a prefix, with the codes of a fitted aligner."""
        text, settings = as_parallel_text(source, target), self.get_params(deep=False)
        like = None
        if known is not None:
            known._fitted()
            nothing = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
            like = ParallelText(*nothing, *nothing, known.source_words_, known.target_words_)
            settings = known._read_with
        if settings["prefix"] is not None:
            is_new = known is self
            text = text.shortened(int(settings["prefix"]), None if is_new else settings["rare"], like)
        return text if like is None else text.recoded(like)

    def _fitted(self) -> AlignmentPosterior:
        found: AlignmentPosterior | None = getattr(self, "posterior_", None)
        if found is None:
            raise NotFittedError("this WordAligner is not fitted; call fit first, or load a file.")
        return found

    # ---- alignments --------------------------------------------------------------------------------------------------

    def _posteriors(self, source: Any, target: Any, is_computed: bool = False) -> TextPosteriors:
        """Return the posteriors of sentence pairs, or of the training text.

        Collapsed inference has kept the posteriors of the training text, each under the counts of all other pairs;
        these are given unless `is_computed`.
        """
        if source is None and target is not None:
            raise InputError("there is a target, but no source; give both, or neither for the training text.")
        known = self._fitted()
        data: AlignedText | None = getattr(self, "_data", None)
        if source is not None:
            data = AlignedText.of(self._text(source, target, self), keeps_entries=False)
            _warn_of_left_out(data)
        elif data is None:
            raise InputError("a model file has no training text; give source and target.")
        elif self._shares is not None and not is_computed:
            return TextPosteriors(data, self._jobs(), self._shares.links)
        table = known.translation
        if table.targets is not data.targets:  # another text, or word pairs of a prior beside those of the text
            table = data.prior(table.concentration, table)
        model = stage_model(self.stage_, self._read_with, bool(self._read_with["agreement"]))
        weights = AlignmentPosterior(table, known.jumps).weights(self.kind_)
        data = dataclasses.replace(data, n_jobs=1)  # threads take blocks
        return TextPosteriors(data, self._jobs(), structure=Alignments(data, model), weights=weights)  # type: ignore[arg-type]

    def posterior(
        self, source: Any = None, target: Any = None, direction: str | None = None
    ) -> list[NDArray[np.float32]]:
        """Return the posterior probability of every link, an array (I, J) for each sentence pair.

        Parameters
        ----------
        source, target : sentence pairs as in `fit`; the training text without them
        direction : "forward", p(target | source), "backward", or None for the geometric mean of both
        """
        if direction is not None and direction not in DIRECTIONS:
            raise unknown_name("direction", direction, DIRECTIONS)
        return list(self._posteriors(source, target).tables(None if direction is None else DIRECTIONS[direction]))

    def links(self, source: Any = None, target: Any = None) -> Links:
        """Return the links of sentence pairs, or of the training text, as flat arrays."""
        return Links.joined(self.link_blocks(source, target))

    def link_blocks(self, source: Any = None, target: Any = None) -> Iterator[Links]:
        """Yield the links of some sentence pairs after the other, for texts whose links do not fit into memory."""
        self._check()
        return self._posteriors(source, target).links(self.symmetrize, self.threshold)

    def align(self, source: Any = None, target: Any = None) -> list[NDArray[np.int32]]:
        """Return the links of each sentence pair, or of the training text: (n, 2) source and target positions."""
        return list(self.links(source, target))

    def score(self, source: Any = None, target: Any = None) -> float:
        """Return the log probability of each side given the other, added up over both directions and all pairs.

        Without sentence pairs, that of the training text given all counts, its own among them.
        """
        return self._posteriors(source, target, is_computed=True).log_likelihood()

    @property
    def lexicon_(self) -> NDArray[Any]:
        """Word pairs with at least half an expected link, those with most links first.

        A structured array with fields `source`, `target`, `links` (their expected number), `forward`, the probability
        of the target word given the source word, and `backward`, the reverse.
        """
        table = self._fitted().translation
        links = table.pairs.mean(axis=1)
        kept = np.flatnonzero(links >= LEAST_LINKS)
        kept = kept[np.argsort(-links[kept], kind="stable")]
        means = table.mean().pairs[kept]
        kinds = [("source", object), ("target", object), ("links", float), ("forward", float), ("backward", float)]
        found = np.empty(len(kept), dtype=kinds)
        found["source"] = [self.source_words_[word] for word in table.sources()[kept].tolist()]
        found["target"] = [self.target_words_[word] for word in table.targets[kept].tolist()]
        found["links"], found["forward"], found["backward"] = links[kept], means[:, 0], means[:, 1]
        return found

    # ---- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the aligner to a file, exactly and atomically, without the training text; `load` reads it."""
        self._fitted()
        save_aligner(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the aligner of a file."""
        return load_aligner(cls, path)


def _warn_of_left_out(data: AlignedText) -> None:
    """Warn of sentence pairs that are too long to be aligned."""
    left_out = data.left_out()
    if len(left_out):
        long = f"a sentence of more than {MOST_WORDS:,} words and no links"
        several = f"{len(left_out):,} sentence pairs have {long}, the first of them pair {left_out[0]}; split them."
        warnings.warn(
            f"sentence pair {left_out[0]} has {long}; split it." if len(left_out) == 1 else several,
            stacklevel=3,
        )
