"""Methods of a fitted model that predict states and observations; the computations are in `subchain.tasks`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.lengths import with_lengths
from subchain.data.new_data import read_like
from subchain.models.fitted import Fitted
from subchain.tasks.blocks import smoothed_blocks
from subchain.tasks.decoding import decode_states
from subchain.tasks.forecast import forecast
from subchain.tasks.imputation import impute, in_words
from subchain.tasks.marginals import filtered, smoothed
from subchain.tasks.output import Out
from subchain.tasks.question import comes_in_list
from subchain.tasks.segments import Segments, find_segments
from subchain.tasks.stream import Stream

Array = NDArray[np.float64]


class PredictionMethods(Fitted):
    """Decoding, posterior marginals, filtering, forecasts and imputation."""

    def predict(
        self,
        x: Any,
        decoding: Any = "posterior",
        *,
        allowed: Any = None,
        states: Any = None,
        evidence: Any = None,
        out: Out = None,
    ) -> Any:
        """Return the hidden states given the whole sequence, past and future.

        For states given the past only, take the argmax of `filter`. For the training data of `CVI`, `Gibbs` and
        `VI(cluster="state")`, "posterior" decoding uses the marginals of the run itself (`training_marginals_`), if the
        same evidence about the states is given as in `fit`.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        decoding : "posterior" or "viterbi"
            The most probable state of each position, or the most probable path. The first maximises the expected number
            of correct positions; the second never contains an impossible transition. Lengths of sequences in its place
            are understood, `predict(X, lengths)` as `predict((X, lengths))`.
        allowed, states, evidence
            Evidence about the states, as in `fit`.
        out : array of integers (N,), or path of an .npy file, optional
            Array or file to write the states to.

        Returns
        -------
        array of int, shape (T,); a list of them for several sequences

            States of a sequence of probability zero are −1, with a warning that gives the position.

        Raises
        ------
        ImpossibleSequenceError
            If no sequence has a positive probability.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.predict([0, 0, 0, 1, 1, 1])
        array([0, 0, 0, 1, 1, 1], dtype=int32)
        """
        if not isinstance(decoding, str):
            x, decoding = with_lengths(x, decoding, "predict"), "posterior"
        question = self._ask(x, allowed, states, evidence)
        with question.intact():
            return question.answer(decode_states(question, decoding, out))

    def predict_proba(
        self, x: Any, y: Any = None, *, allowed: Any = None, states: Any = None, evidence: Any = None, out: Out = None
    ) -> Any:
        """Return the posterior marginals of the states given the whole sequence (smoothing).

        For the training data of `CVI`, `Gibbs` and `VI(cluster="state")`, these are the marginals of the run itself
        (`training_marginals_`), if the same evidence about the states is given as in `fit`.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        y : None, or lengths of sequences, as in `fit`
        allowed, states, evidence
            Evidence about the states, as in `fit`.
        out : array of floats (N, K), or path of an .npy file, optional
            Array or file to write the marginals to. A path is for results larger than memory: the returned array is
            memory-mapped.

        Returns
        -------
        array, shape (T, K); a list of them for several sequences

        See Also
        --------
        filter : marginals given the past only
        predict_proba_blocks : marginals block by block, for results that need not be stored

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
        question = self._ask(with_lengths(x, y, "predict_proba"), allowed, states, evidence)
        with question.intact():
            return question.answer(smoothed(question, out))

    def predict_proba_blocks(
        self, x: Any, block: int = 1 << 16, *, allowed: Any = None, states: Any = None, evidence: Any = None
    ) -> Iterator[tuple[int, Array]]:
        """Yield the posterior marginals block by block, for results too large for memory and disk.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        block : int
            Maximum number of positions per block; a block may hold several short sequences.
        allowed, states, evidence
            Evidence about the states, as in `fit`.

        Yields
        ------
        start : int
            Flat position of the block's first row.
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
        """Return the segments of equal states: start, end, state, and mean probability of the state.

        The states are those of `predict`. The marginals of all positions are never stored at once, so that sequences of
        many millions of positions are possible.

        Parameters
        ----------
        x, decoding, allowed, states, evidence
            As in `predict`.

        Returns
        -------
        Segments
            Arrays `sequence`, `start`, `stop` (exclusive), `state` and `probability` (the mean over the segment); can
            be iterated over, indexed, and exported by `to_bed` and `to_pandas`.

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
        with question.intact():
            return find_segments(question, decoding, self.state_names_, self.state_occupancy_)

    def filter(self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None, out: Out = None) -> Any:
        """Return the filtered marginals: probabilities of the states given the observations up to each position.

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
        question = self._ask_on(x, allowed, states, evidence)
        with question.intact():
            return question.answer(filtered(question, out))

    def stream(self, lag: int = 0, given: Any = None) -> Stream:
        """Return an online filter that takes one observation at a time.

        Parameters
        ----------
        lag : int
            Lag of the fixed-lag smoother, `smoothed`.
        given : sequence, optional
            The past that the stream continues. The stream is as if each of its observations had been given to
            `update`, but a long past is filtered as fast as `filter` does it.

        Returns
        -------
        Stream
            `update(x)` takes an observation and returns the filtered marginals; `probabilities`, `predicted`,
            `smoothed`, `log_likelihood` and `step_log_likelihood` are the current values; `forecast(steps)` is the
            predictive distribution of the next observations.

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
        point = self._point().unended()
        stream = Stream(point, self.family_, self.vocabularies_[0] if len(self.vocabularies_) == 1 else None, lag)
        if given is not None:
            question = self._ask_on(given)
            with question.intact():
                stream.continue_from(question)
        return stream

    def forecast(self, x: Any, steps: int) -> Any:
        """Return the predictive distribution of the next observations: at each step the exact mixture over the states.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
            The past.
        steps : int
            Number of steps ahead.

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
        question = self._ask_on(x)
        with question.intact():
            return question.answers(forecast(question, steps))

    def impute(self, x: Any) -> Any:
        """Return the data with missing entries imputed given all observations.

        Missing numbers become their posterior mean, missing symbols the most probable symbol. Observed entries are not
        changed.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table

        Returns
        -------
        array of the shape of x, or a list of them for several sequences; strings where x holds strings, codes where it
        holds codes, floats otherwise

        See Also
        --------
        sample_missing : several draws of the missing entries, for their uncertainty

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.impute([0, 0, -1, 0, 1, 1, -1])
        array([0, 0, 0, 0, 1, 1, 1])
        """
        self._point()
        given = read_like(x, self.columns_, self.grouped_by_)
        question = dataclasses.replace(self._ask(given), in_list=comes_in_list(x, given))
        with question.intact():
            return question.answer(in_words(impute(question), question.data.vocabularies, given.vocabularies))
