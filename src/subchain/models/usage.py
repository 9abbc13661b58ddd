"""What a fitted model is used for. The methods only pass on to `subchain.tasks`, where each task is a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Evidence, Sequences
from subchain.data.digest import digest
from subchain.engines import resolve_engine
from subchain.engines.statistics import HMMStatistics
from subchain.inference.run.training import TrainingMarginals, contents_of, knowledge_of
from subchain.models.fitted import Fitted
from subchain.numerics.seeds import seed_sequence
from subchain.structures.chain.model import HMMPoint
from subchain.tasks.blocks import smoothed_blocks
from subchain.tasks.decoding import decode_states
from subchain.tasks.forecast import forecast
from subchain.tasks.imputation import impute
from subchain.tasks.marginals import filtered, smoothed
from subchain.tasks.output import Out
from subchain.tasks.question import Question, comes_in_list
from subchain.tasks.sampling import sample, sample_onward, sample_parameters, sample_paths
from subchain.tasks.scores import aic, bic, n_parameters, score_sequences
from subchain.tasks.segments import Segments, find_segments
from subchain.tasks.stream import Stream
from subchain.tasks.surprise import score_left_out, score_masked, score_steps

Array = NDArray[np.float64]


class Usable(Fitted):
    """The uses of an HMM."""

    def _ask(self, x: Any, allowed: Any = None, states: Any = None, evidence: Any = None) -> Question:
        """The data as a question to this model."""
        point, data = self._point(), self._read(x)
        n_symbols = getattr(point.emission, "n_categories", None)
        known = Evidence.build(data, self.n_states_, allowed, states, evidence, n_symbols)
        stored = self._stored(data, [allowed, states, evidence])
        return Question(point, resolve_engine(self.engine, self.n_jobs), data, known, comes_in_list(x, data), stored)

    def _stored(self, data: Sequences, knowledge: list[Any]) -> TrainingMarginals | None:
        """What the run that made this model believes of the data, if they are its training data."""
        kept = self.training_marginals_
        if kept is None or kept.n_positions != data.n_observations:
            return None
        if not np.array_equal(knowledge_of(digest(knowledge)), kept.knowledge):
            return None  # other knowledge, or less: what was told to the run must not come back as if it were found
        return kept if np.array_equal(contents_of(data), kept.contents) else None

    def predict(
        self,
        x: Any,
        decoding: str = "posterior",
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
        out: Out = None,
    ) -> Any:
        """Find the hidden states, using the whole of each sequence, the future included.

        For states that know the past alone take the largest of `filter`. The training data of `CVI`, `Gibbs` and
        `VI(cluster="state")` are answered for by what the run itself believes of them (`training_marginals_`), with
        "posterior" decoding, if they come with what was known of their states then.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        decoding : "posterior" or "viterbi"
            The most probable state of each position, or the states of the most probable path. The first is right at the
            most positions; the second never makes an impossible move.
        allowed, states, evidence
            What is known of the states, as in `fit`.
        out : array of integers (N,), or path of an .npy file, optional
            Where the states are written.

        Returns
        -------
        array of int, shape (T,); a list of them for several sequences

        Raises
        ------
        ImpossibleSequenceError
            If no path of states explains a sequence; the message says where.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.predict([0, 0, 0, 1, 1, 1])
        array([0, 0, 0, 1, 1, 1], dtype=int32)
        """
        question = self._ask(x, allowed, states, evidence)
        return question.answer(decode_states(question, decoding, out))

    def predict_proba(
        self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None, out: Out = None
    ) -> Any:
        """Probability of each state at each position, given the whole sequence, the future included.

        The training data of `CVI`, `Gibbs` and `VI(cluster="state")` are answered for by what the run itself believes
        of them (`training_marginals_`), if they come with what was known of their states then.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        allowed, states, evidence
            What is known of the states, as in `fit`.
        out : array of floating numbers (N, K), or path of an .npy file, optional
            Where the probabilities are written. A path is for answers larger than memory: what comes back is
            memory-mapped.

        Returns
        -------
        array, shape (T, K); a list of them for several sequences

        See Also
        --------
        filter : given the past alone
        predict_proba_blocks : block by block, for answers that are never kept

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.predict_proba([0, 0, 1]).round(3)
        array([[0.824, 0.176],
               [0.763, 0.237],
               [0.407, 0.593]])
        """
        question = self._ask(x, allowed, states, evidence)
        return question.answer(smoothed(question, out))

    def predict_proba_blocks(
        self, x: Any, block: int = 1 << 16, *, allowed: Any = None, states: Any = None, evidence: Any = None
    ) -> Iterator[tuple[int, Array]]:
        """Probabilities of the states, block by block, for data whose answer fits neither into memory nor on the disk.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        block : int
            Largest number of positions in a block; a block may hold several short sequences.
        allowed, states, evidence
            What is known of the states, as in `fit`.

        Yields
        ------
        start : int
            Number of the block's first position, counted over all sequences.
        probabilities : array, shape (n, K)

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> for start, probabilities in model.predict_proba_blocks([0, 0, 1], block=2):
        ...     print(start, probabilities.round(3).tolist())
        0 [[0.824, 0.176], [0.763, 0.237]]
        2 [[0.407, 0.593]]
        """
        return smoothed_blocks(self._ask(x, allowed, states, evidence), block)

    def segments(
        self, x: Any, decoding: str = "posterior", *, allowed: Any = None, states: Any = None, evidence: Any = None
    ) -> Segments:
        """Find the stretches of equal states: where each begins and ends, its state, and how probable that is there.

        The states are those of `predict`. No table of all probabilities is made, so that chains of many millions of
        positions will do.

        Parameters
        ----------
        x, decoding, allowed, states, evidence
            As in `predict`.

        Returns
        -------
        Segments
            Arrays `sequence`, `start`, `stop` (exclusive), `state` and `probability` (the mean over the stretch); can
            be iterated over and chosen from, and written by `to_bed` and `to_pandas`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> for segment in model.segments([0, 0, 0, 1, 1, 1]):
        ...     print(segment.start, segment.stop, segment.state_name, round(segment.probability, 2))
        0 3 0 0.86
        3 6 1 0.95
        """
        question = self._ask(x, allowed, states, evidence)
        return find_segments(question, decoding, self.state_names_, self.state_occupancy_)

    def filter(self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None, out: Out = None) -> Any:
        """Probability of each state at each position, given the observations up to there: no look into the future.

        Parameters
        ----------
        x, allowed, states, evidence, out
            As in `predict_proba`.

        Returns
        -------
        array, shape (T, K); a list of them for several sequences

        See Also
        --------
        stream : the same, one observation at a time

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.filter([0, 0, 1]).round(3)
        array([[0.818, 0.182],
               [0.933, 0.067],
               [0.407, 0.593]])
        """
        question = self._ask(x, allowed, states, evidence)
        return question.answer(filtered(question, out))

    def stream(self, lag: int = 0) -> Stream:
        """A filter to be told one observation at a time.

        Parameters
        ----------
        lag : int
            How many positions back `smoothed` looks, given everything since.

        Returns
        -------
        Stream
            `update(x)` takes an observation and returns the probabilities of the states now; `probabilities`,
            `predicted`, `smoothed`, `log_likelihood` and `step_log_likelihood` say how things stand.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> stream = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission).stream()
        >>> stream.update(0).round(3)
        array([0.818, 0.182])
        >>> stream.update(None).round(3)
        array([0.755, 0.245])
        """
        point = self._point()
        return Stream(point, self.family_, self.vocabularies_[0] if len(self.vocabularies_) == 1 else None, lag)

    def score(self, x: Any, y: None = None, *, allowed: Any = None, states: Any = None, evidence: Any = None) -> float:
        """Log likelihood of all sequences together, under the posterior mean of the parameters.

        An impossible sequence makes it −inf, with a warning that says which and where.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        allowed, states, evidence
            What is known of the states, as in `fit`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> round(HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission).score([0, 0, 1]), 4)
        -2.4864
        """
        return float(score_sequences(self._ask(x, allowed, states, evidence)).sum())

    def score_sequences(self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None) -> Array:
        """Log likelihood of each sequence, shape (n_sequences,); −inf for impossible ones, with one warning.

        Divide by the lengths to compare sequences of unequal length.

        Parameters
        ----------
        x, allowed, states, evidence
            As in `score`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.score_sequences([[0, 0, 1], [1]]).round(4)
        array([-2.4864, -0.7985])
        """
        return score_sequences(self._ask(x, allowed, states, evidence))

    def score_samples(self, x: Any, mask: Any = None) -> Any:
        """Log probability of each observation given all others of its sequence, before it and after it.

        Low values are observations that do not fit where they stand. Missing observations have 0.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        mask : booleans (N,), or a list with an array for each sequence, optional
            Positions to hold out: all of them are taken as missing at once, and each is scored given what is left.
            Positions that are not masked have 0.

        Returns
        -------
        array, shape (T,); a list of them for several sequences

        See Also
        --------
        score_steps : given the past alone

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.score_samples([0, 0, 1, 0, 0]).round(2)
        array([-0.36, -0.38, -2.1 , -0.38, -0.36])
        """
        question = self._ask(x)
        scores = score_left_out(question) if mask is None else score_masked(question, mask)
        return question.answer(scores)

    def score_steps(self, x: Any) -> Any:
        """Log probability of each observation given those before it; a sequence's sum is its log likelihood.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table

        Returns
        -------
        array, shape (T,); a list of them for several sequences

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.score_steps([0, 0, 1]).round(4)
        array([-0.5978, -0.3172, -1.5714])
        """
        question = self._ask(x)
        return question.answer(score_steps(question))

    def sample(self, n: int, given: Any = None, random_state: Any = None) -> Any:
        """Draw a sequence from the model, or the continuation of a sequence.

        Parameters
        ----------
        n : int
            Number of observations.
        given : sequence or sequences, optional
            The past; what is drawn follows it.
        random_state : int, numpy Generator or None
            Seed; None draws anew every time.

        Returns
        -------
        Sample
            `observations` (n,) or (n, D) and `states` (n,); a list of them if several sequences are given.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[1.0, 0.0], [0.0, 1.0]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], emission)
        >>> model.sample(5, given=[0, 1, 0], random_state=0).observations
        array([1, 0, 1, 0, 1])
        """
        rng = np.random.default_rng(seed_sequence(random_state))
        if given is None:
            return sample(self._point(), n, rng)
        question = self._ask(given)
        return question.answers(sample_onward(question, n, rng))

    def sample_paths(
        self,
        x: Any,
        n: int,
        random_state: Any = None,
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
    ) -> Any:
        """Draw hidden paths from their distribution given the whole sequence.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        n : int
            Number of paths.
        random_state : int, numpy Generator or None
            Seed; None draws anew every time.
        allowed, states, evidence
            What is known of the states, as in `fit`.

        Returns
        -------
        array of int, shape (n, T); a list of them for several sequences

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.sample_paths([0, 0, 1], n=1000, random_state=0).shape
        (1000, 3)
        """
        question = self._ask(x, allowed, states, evidence)
        paths = sample_paths(question, n, seed_sequence(random_state))
        return [part.T for part in question.data.split(paths.T)] if question.in_list else paths

    def sample_parameters(self, n: int, random_state: Any = None) -> list[HMMPoint]:
        """Draw models from the posterior, for intervals of anything that is computed from parameters.

        Components that are frozen or were given stay as they are.

        Parameters
        ----------
        n : int
            Number of draws.
        random_state : int, numpy Generator or None
            Seed; None draws anew every time.

        Returns
        -------
        list of HMMPoint
            Each with `chain.initial`, `chain.transition` and `emission`, as `HMM.from_parameters` takes them.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> model = HMM(2, "categorical", random_state=0).fit(np.array([0, 0, 0, 1, 1, 1] * 50))
        >>> draws = model.sample_parameters(200, random_state=0)
        >>> np.array([point.chain.transition[0, 0] for point in draws]).std() < 0.1
        np.True_
        """
        return sample_parameters(self.posterior_, n, np.random.default_rng(seed_sequence(random_state)))

    def forecast(self, x: Any, steps: int) -> Any:
        """The distribution of the observations that follow: at each step the exact mixture over the states.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
            The past.
        steps : int
            How far to look ahead.

        Returns
        -------
        Forecast
            `states` (steps, K), `mean`, `variance`, `quantiles(q)`, `cdf`, and, for symbols and counts, `probabilities`
            and `pmf`; a list of them for several sequences.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.forecast([0, 0, 1], steps=2).states.round(3)
        array([[0.426, 0.574],
               [0.441, 0.559]])
        """
        question = self._ask(x)
        return question.answers(forecast(question, steps))

    def impute(self, x: Any) -> Any:
        """The data with missing entries replaced by what the model expects there, given everything observed.

        Numbers are replaced by their expectation, symbols by the most probable one. Observed entries stay as they are.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table

        Returns
        -------
        array of the shape of x, or a list of them for several sequences; codes for symbols, floating numbers otherwise

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.impute([0, 0, -1, 0, 1, 1, -1])
        array([0, 0, 0, 0, 1, 1, 1])
        """
        question = self._ask(x)
        return question.answer(impute(question))

    def expected_statistics(
        self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None
    ) -> HMMStatistics:
        """Expected counts of states, moves and emissions, given the data; those of parts of the data add up.

        Parameters
        ----------
        x, allowed, states, evidence
            As in `score`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.expected_statistics([0, 0, 1]).pairs.round(3)
        array([[1.149, 0.438],
               [0.022, 0.392]])
        """
        question = self._ask(x, allowed, states, evidence)
        return question.engine.statistics(question.surrogate, question.part)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters that were learned: not those given or frozen, nor those of states of an infinite
        model that are not used."""
        return n_parameters(self._point(), self.prior_, self.statistics_)

    def aic(self, x: Any) -> float:
        """Akaike's information criterion of the data, −2 log L + 2 p; smaller is better.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
        >>> one, two = (HMM(k, "categorical", random_state=0).fit(x) for k in (1, 2))
        >>> two.aic(x) < one.aic(x)
        True
        """
        return aic(self._ask(x), self.n_parameters_)

    def bic(self, x: Any) -> float:
        """Schwarz's Bayesian information criterion of the data, −2 log L + p log n; smaller is better.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
        >>> one, two = (HMM(k, "categorical", random_state=0).fit(x) for k in (1, 2))
        >>> two.bic(x) < one.bic(x)
        True
        """
        return bic(self._ask(x), self.n_parameters_)
