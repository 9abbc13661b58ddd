"""Online filter: takes one observation at a time and returns the filtered marginals of the states.

Marginals are kept in log space. A step is one matrix product of scaled probabilities; states whose probability would
underflow are computed in log space, so that a stream of any length agrees with the filter over whole sequences.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences, Vocabulary
from subchain.emissions import Emission
from subchain.engines import Part
from subchain.errors import ImpossibleSequenceError, InputError
from subchain.structures.chain.model import HMMPoint
from subchain.tasks.forecast import Forecast, filtered_ends, states_ahead
from subchain.tasks.question import Question

Array = NDArray[np.float64]

#: Scaled probabilities below this are recomputed in log space.
SMALLEST = 1e-280


class Stream:
    """Online filter and fixed-lag smoother; `HMM.stream` creates it.

    Parameters
    ----------
    point : the model
    family : specification that checks the observations
    vocabulary : vocabulary that encodes symbols given as strings, or None
    lag : number of positions between the last observation and the position of `smoothed`

    Examples
    --------
    >>> from subchain import HMM, Categorical
    >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
    >>> stream = model.stream(lag=1)
    >>> for symbol in [0, 0, 1]:
    ...     probabilities = stream.update(symbol)
    >>> probabilities.round(3)
    array([0.407, 0.593])
    >>> stream.smoothed.round(3)
    array([0.763, 0.237])
    """

    def __init__(self, point: HMMPoint, family: Emission, vocabulary: Vocabulary | None, lag: int = 0) -> None:
        if not isinstance(lag, (int, np.integer)) or lag < 0:
            raise InputError(f"lag must be a whole number, not negative; got {lag!r}.")
        self._family = family
        self._vocabulary = vocabulary
        self._emission = point.emission
        self._transition = point.chain.operator
        with np.errstate(divide="ignore"):
            self._predicted = np.log(point.chain.initial)
        self._marginals = point.chain.initial
        self._recent: deque[tuple[Array, Array]] = deque(maxlen=int(lag) + 1)
        self.n_observations = 0
        self.log_likelihood = 0.0
        self.step_log_likelihood = 0.0

    def continue_from(self, question: Question) -> None:
        """Take a past sequence, as if each of its observations had been given to `update`."""
        data = question.data
        if data.n_sequences != 1:
            raise InputError(f"a stream continues one sequence, but {data.n_sequences} were given.")
        head = max(data.n_observations - (self._recent.maxlen or 0), 0)
        if head:
            part = Part(Sequences(data.values[:head]))
            marginals, totals = filtered_ends(question.engine, question.surrogate, part)
            if marginals[0].all():
                self._predicted = self._predict(np.log(marginals[0]))
                self.n_observations, self.log_likelihood = head, float(totals[0])
            else:  # a zero may stand for a probability below the smallest double; single steps are in log space
                head = 0
        for x in data.values[head:]:
            self.update(x)

    def forecast(self, steps: int) -> Forecast:
        """Return the predictive distribution of the next observations, as `HMM.forecast` does.

        Parameters
        ----------
        steps : int
            Number of steps ahead.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.stream(given=[0, 0, 1]).forecast(2).states.round(3)
        array([[0.426, 0.574],
               [0.441, 0.559]])
        """
        return Forecast(states_ahead(self.predicted[None], self._transition, steps)[0], self._emission)

    def update(self, x: Any) -> Array:
        """Take the next observation and return the filtered marginals of the states, (K,).

        Parameters
        ----------
        x : number, (D,) array, or symbol; None where nothing was observed (or nan, or −1 for symbols and counts)

        Raises
        ------
        ImpossibleSequenceError
            If the observation has probability zero given the earlier ones. The stream is unchanged then, so that the
            observation can be skipped with `update(None)`.
        """
        logs = np.zeros(len(self._predicted)) if x is None else self._log_likelihood(x)
        joint = self._predicted + logs
        step = float(np.logaddexp.reduce(joint))
        if step == -np.inf:
            raise ImpossibleSequenceError(
                f"observation {self.n_observations}, {x!r}, has probability zero given the earlier ones: no reachable "
                "state emits it. The stream is unchanged; skip the observation with update(None), or use a model with "
                "a prior, in which nothing is impossible."
            )
        marginal = joint - step
        self._recent.append((marginal, logs))
        self._predicted = self._predict(marginal)
        self._marginals = np.exp(marginal)
        self.n_observations += 1
        self.step_log_likelihood = step
        self.log_likelihood += step
        return self.probabilities

    @property
    def probabilities(self) -> Array:
        """Probability of each state at the last position, given all observations so far, (K,)."""
        return self._marginals.copy()

    @property
    def predicted(self) -> Array:
        """Probability of each state at the next position, (K,), if there is one."""
        return np.asarray(np.exp(self._predicted - np.logaddexp.reduce(self._predicted)))

    @property
    def smoothed(self) -> Array | None:
        """Probability of each state `lag` positions back, given all observations so far, (K,).

        None while there are too few observations.
        """
        if len(self._recent) < (self._recent.maxlen or 0):
            return None
        future = np.zeros(len(self._predicted))
        for _, logs in list(self._recent)[:0:-1]:
            future = self._transition.log_apply_transposed(logs + future)
        joint = self._recent[0][0] + future
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint)))

    def _predict(self, marginal: Array) -> Array:
        """Return the log state probabilities one step after log marginals (K,)."""
        scaled = self._transition.apply(np.exp(marginal)[:, None])[:, 0]
        with np.errstate(divide="ignore"):
            logs = np.log(scaled)
        small = np.flatnonzero(scaled < SMALLEST)
        if len(small):
            logs[small] = self._transition.log_apply(marginal)[small]
        return np.asarray(logs)

    def _log_likelihood(self, x: Any) -> Array:
        if isinstance(x, str):
            if self._vocabulary is None:
                raise InputError(f"the model has no vocabulary and takes numbers; got the symbol {x!r}.")
            x = self._vocabulary.encode([x])[0]
        values = np.asarray(x)[None]
        if values.ndim > 2:
            raise InputError(f"an observation must be a number or a vector; got an array of shape {values.shape[1:]}.")
        self._family.check_against(Sequences(values), self._emission)
        return np.asarray(self._emission.log_likelihood(values)[:, 0])
