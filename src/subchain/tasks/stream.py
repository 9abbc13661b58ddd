"""One observation at a time: the filter as an object that is told what comes and says what it believes.

Marginals are kept as logarithms. A step is one matrix product of scaled probabilities; the states for which that would
fall below the end of the doubles are done in log space, so that a stream of any length agrees with the filter.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data import Sequences, Vocabulary
from subchain.emissions import Emission
from subchain.errors import ImpossibleSequenceError, InputError
from subchain.structures.chain.model import HMMPoint

Array = NDArray[np.float64]

#: Scaled probabilities below this are found again in log space.
SMALLEST = 1e-280


class Stream:
    """A filter that runs along with the data; made by `HMM.stream`.

    Parameters
    ----------
    point : the model
    family : checks the observations
    vocabulary : codes symbols that come as strings, or None
    lag : how many positions back `smoothed` looks

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
            raise InputError(f"lag must be a whole number, not negative; given {lag!r}.")
        self._family = family
        self._vocabulary = vocabulary
        self._emission = point.emission
        self._transition = point.chain.transition
        with np.errstate(divide="ignore"):
            self._log_transition = np.log(point.chain.transition)
            self._predicted = np.log(point.chain.initial)
        self._marginals = point.chain.initial
        self._recent: deque[tuple[Array, Array]] = deque(maxlen=int(lag) + 1)
        self.n_observations = 0
        self.log_likelihood = 0.0
        self.step_log_likelihood = 0.0

    def update(self, x: Any) -> Array:
        """Take the next observation and return the probability of each state now, (K,).

        Parameters
        ----------
        x : number, (D,) array, or symbol; None where nothing was observed (or nan, or −1 for symbols and counts)

        Raises
        ------
        ImpossibleSequenceError
            If no state can have emitted this after what came before. The stream stays as it was, so the observation can
            be passed over with `update(None)`.
        """
        logs = np.zeros(len(self._predicted)) if x is None else self._log_likelihood(x)
        joint = self._predicted + logs
        step = float(np.logaddexp.reduce(joint))
        if step == -np.inf:
            raise ImpossibleSequenceError(
                f"observation {self.n_observations}, {x!r}, has probability zero after those before it: no state that "
                "can be reached emits it. The stream is unchanged; pass over the observation with update(None), or use "
                "a model with a prior, in which nothing is impossible."
            )
        marginal = joint - step
        self._recent.append((marginal, logs))
        self._predicted = self._move(marginal)
        self._marginals = np.exp(marginal)
        self.n_observations += 1
        self.step_log_likelihood = step
        self.log_likelihood += step
        return self.probabilities

    @property
    def probabilities(self) -> Array:
        """Probability of each state at the last position, given everything so far, (K,)."""
        return self._marginals.copy()

    @property
    def predicted(self) -> Array:
        """Probability of each state at the next position, (K,)."""
        return np.exp(self._predicted)

    @property
    def smoothed(self) -> Array | None:
        """Probability of each state `lag` positions back, given everything since, (K,); None while there is none."""
        if len(self._recent) < (self._recent.maxlen or 0):
            return None
        future = np.zeros(len(self._predicted))
        for _, logs in list(self._recent)[:0:-1]:
            future = np.logaddexp.reduce(self._log_transition + (logs + future), axis=1)
        joint = self._recent[0][0] + future
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint)))

    def _move(self, marginal: Array) -> Array:
        """Log probabilities one step later."""
        scaled = np.exp(marginal) @ self._transition
        with np.errstate(divide="ignore"):
            moved = np.log(scaled)
        small = np.flatnonzero(scaled < SMALLEST)
        if len(small):
            moved[small] = np.logaddexp.reduce(marginal[:, None] + self._log_transition[:, small], axis=0)
        return np.asarray(moved)

    def _log_likelihood(self, x: Any) -> Array:
        if isinstance(x, str):
            if self._vocabulary is None:
                raise InputError(f"the model has no vocabulary and takes numbers, not the symbol {x!r}.")
            x = self._vocabulary.encode([x])[0]
        values = np.asarray(x)[None]
        if values.ndim > 2:
            raise InputError(f"one observation is a number or a vector, not an array of shape {values.shape[1:]}.")
        self._family.check_against(Sequences(values), self._emission)
        return np.asarray(self._emission.log_likelihood(values)[:, 0])
