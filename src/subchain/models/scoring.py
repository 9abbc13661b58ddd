"""Methods of a fitted model that score data; the computations are in `subchain.tasks`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.lengths import with_lengths
from subchain.engines.statistics import HMMStatistics
from subchain.models.fitted import Fitted
from subchain.tasks.residuals import pseudo_residuals
from subchain.tasks.scores import aic, bic, n_parameters, score_sequences
from subchain.tasks.surprise import score_left_out, score_masked, score_steps

Array = NDArray[np.float64]


class ScoringMethods(Fitted):
    """Log likelihoods, information criteria and expected statistics."""

    def score(self, x: Any, y: Any = None, *, allowed: Any = None, states: Any = None, evidence: Any = None) -> float:
        """Return the log likelihood of all sequences under the posterior mean of the parameters.

        A sequence of probability zero makes it −inf, with a warning that names the sequence and the position.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        y : None, or lengths of sequences, as in `fit`
        allowed, states, evidence
            Evidence about the states, as in `fit`.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> round(HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission).score([0, 0, 1]), 4)
        -2.4864
        """
        question = self._ask(with_lengths(x, y, "score"), allowed, states, evidence)
        with question.intact():
            return float(score_sequences(question).sum())

    def score_sequences(self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None) -> Array:
        """Return the log likelihood of each sequence, shape (n_sequences,); −inf, with a warning, for impossible ones.

        Divide by the lengths to compare sequences of different lengths.

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
        question = self._ask(x, allowed, states, evidence)
        with question.intact():
            return score_sequences(question)

    def score_samples(self, x: Any, mask: Any = None) -> Any:
        """Return the log probability of each observation given all others of its sequence (leave-one-out).

        Low values indicate outliers. Missing observations have 0.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        mask : booleans (N,), or a list with an array for each sequence, optional
            Positions to hold out together: each is scored given the observations that are not masked. Positions that
            are not masked have 0.

        Returns
        -------
        array, shape (T,); a list of them for several sequences

        See Also
        --------
        score_steps : given the past only

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.score_samples([0, 0, 1, 0, 0]).round(2)
        array([-0.36, -0.38, -2.1 , -0.38, -0.36])
        """
        question = self._ask(x)
        with question.intact():
            return question.answer(score_left_out(question) if mask is None else score_masked(question, mask))

    def score_steps(self, x: Any) -> Any:
        """Return the log probability of each observation given the previous ones; the sum is the log likelihood.

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
        with question.intact():
            return question.answer(score_steps(question))

    def pseudo_residuals(self, x: Any, kind: str = "ordinary") -> Any:
        """Return normal pseudo-residuals: standard normal if the model is right, large for outliers.

        The residual of an observation is the normal quantile of its distribution function given the other observations.
        Use them for Q-Q plots and to find outliers; forecast residuals of a good model are also independent.

        Parameters
        ----------
        x : array, list of arrays, (X, lengths), Sequences, path, or table
        kind : "ordinary" or "forecast"
            Given all other observations of the sequence, or given the earlier ones.

        Returns
        -------
        PseudoResiduals
            `lower`, `mid` and `upper`, each of the shape of x; a list of them for several sequences. They are equal for
            real numbers. For counts and symbols, the residual is the segment from `lower` to `upper`. Columns are
            judged one by one, given other positions only. Symbols are ordered by their codes. Missing entries are nan.

        See Also
        --------
        score_samples, score_steps : log probabilities given the same observations

        Examples
        --------
        >>> from subchain import HMM, Poisson
        >>> emission = Poisson.from_parameters([[2.0], [10.0]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.pseudo_residuals([3, 1, 30, 1, 2, 3]).mid.round(1)
        array([ 0.5, -1.2,  5.9, -1.1,  0.1,  0.5])
        """
        question = self._ask(x)
        with question.intact():
            return question.answers(pseudo_residuals(question, kind))

    def expected_statistics(
        self, x: Any, *, allowed: Any = None, states: Any = None, evidence: Any = None
    ) -> HMMStatistics:
        """Return the expected sufficient statistics of the data; statistics of different data can be added.

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
        with question.intact():
            return question.engine.statistics(question.surrogate, question.part)

    @property
    def n_parameters_(self) -> int:
        """Number of learned free parameters, without given or frozen ones and unused states of an infinite model."""
        return n_parameters(self._point(), self.prior_, self.statistics_)

    def aic(self, x: Any) -> float:
        """Return Akaike's information criterion of the data, −2 log L + 2 p; smaller is better.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
        >>> one, two = (HMM(k, "categorical", random_state=0).fit(x) for k in (1, 2))
        >>> two.aic(x) < one.aic(x)
        True
        """
        question = self._ask(x)
        with question.intact():
            return aic(question, self.n_parameters_)

    def bic(self, x: Any) -> float:
        """Return Schwarz's Bayesian information criterion of the data, −2 log L + p log n; smaller is better.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain import HMM
        >>> x = np.array([0, 0, 0, 1, 1, 1] * 50)
        >>> one, two = (HMM(k, "categorical", random_state=0).fit(x) for k in (1, 2))
        >>> two.bic(x) < one.bic(x)
        True
        """
        question = self._ask(x)
        with question.intact():
            return bic(question, self.n_parameters_)
