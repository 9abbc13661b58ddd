"""Forecasts: state probabilities after the end of a sequence, and the exact mixture distribution of observations."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from subchain.emissions import Parameters
from subchain.emissions.product import ProductParameters
from subchain.engines import Engine, Part, Surrogate
from subchain.engines.results import FilteredBlock
from subchain.errors import InputError
from subchain.numerics import simplex
from subchain.tasks.question import Question
from subchain.transitions.operators import TransitionOperator

Array = NDArray[np.float64]

#: Bisection steps for a quantile: more than a double has binary digits.
HALVINGS = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Forecast:
    """Distribution of the observations that follow a sequence: at each step a mixture over the states.

    Attributes
    ----------
    states : array, shape (steps, K)
        Probability of each state at each step ahead.
    emission : Parameters
        Emission parameters of the states.

    Examples
    --------
    >>> from subchain import HMM, Categorical
    >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
    >>> model.forecast([0, 0, 1], steps=2).probabilities.round(3)
    array([[0.498, 0.502],
           [0.508, 0.492]])
    """

    states: Array
    emission: Parameters

    def __getitem__(self, part: str) -> Forecast:
        """Return the forecast of one part of a `Product`."""
        if not isinstance(self.emission, ProductParameters):
            raise InputError(
                f"part {part!r} was requested, but only forecasts of a Product have parts; this one is of "
                f"{type(self.emission).__name__}."
            )
        return Forecast(self.states, self.emission[part])

    @property
    def mean(self) -> Array:
        """Expected observation at each step, (steps, D); for symbols their probabilities, (steps, W)."""
        return np.asarray(self.states @ self.emission.expectation())

    @property
    def probabilities(self) -> Array:
        """Probability of each symbol, (steps, W), or of a one in each column, (steps, D)."""
        if not hasattr(self.emission, "probabilities"):
            raise InputError(
                f"{type(self.emission).__name__} describe numbers, which have no table of probabilities; use mean, "
                "variance or quantiles."
            )
        return np.asarray(self.states @ self.emission.probabilities)

    @property
    def variance(self) -> Array:
        """Variance of each column at each step, (steps, D)."""
        states, laws = self.states, self._laws
        square = laws.var() + laws.mean() ** 2
        return np.asarray(np.maximum(states @ square - (states @ laws.mean()) ** 2, 0.0))

    def cdf(self, values: ArrayLike) -> Array:
        """Return the probability that each column is at most `values`, which broadcast against (steps, D)."""
        return self._mixed(self._laws.cdf, values)

    def pmf(self, values: ArrayLike) -> Array:
        """Return the probability of counts `values`, which broadcast against (steps, D)."""
        if not hasattr(self._laws, "pmf"):
            raise InputError("pmf is for counts; single real numbers have probability zero. Use cdf or quantiles.")
        return self._mixed(self._laws.pmf, values)

    def quantiles(self, q: ArrayLike) -> Array:
        """Return the quantiles of each column at each step.

        Parameters
        ----------
        q : numbers between 0 and 1, any shape

        Returns
        -------
        array, shape (*q.shape, steps, D)
        """
        levels = np.asarray(q, dtype=np.float64)
        if not ((levels > 0.0) & (levels < 1.0)).all():
            raise InputError(f"q must lie between 0 and 1; got {q!r}.")
        return np.array([self._quantile(level) for level in levels.ravel()]).reshape(*levels.shape, *self.mean.shape)

    @cached_property
    def _laws(self) -> Any:
        """Distribution of each column in each state, as a frozen scipy.stats distribution, (K, D)."""
        laws = self.emission.marginals()
        if laws is None:
            raise InputError(
                f"{type(self.emission).__name__} have no distribution of numbers; use probabilities (for symbols), or "
                'one part of a Product, forecast["part"].'
            )
        return laws

    def _mixed(self, law: Any, values: ArrayLike) -> Array:
        """Average a function of the states' distributions over the states; values broadcast to (steps, D)."""
        table = np.broadcast_to(np.asarray(values, dtype=np.float64), self.mean.shape)
        return np.asarray(np.einsum("sk,skd->sd", self.states, law(table[:, None, :])))

    def _quantile(self, level: float) -> Array:
        """Return a quantile, (steps, D), by bisection between the smallest and largest quantile of the states.

        For counts it is the smallest whole number whose cumulative probability reaches the level.
        """
        own = np.broadcast_to(self._laws.ppf(level), self.emission.expectation().shape)
        reached = (self.states > 0.0)[:, :, None]
        low = np.where(reached, own, np.inf).min(axis=1)
        high = np.where(reached, own, -np.inf).max(axis=1)
        is_whole = hasattr(self._laws, "pmf")
        low = low - is_whole
        for _ in range(HALVINGS):
            middle = np.floor((low + high) / 2) if is_whole else (low + high) / 2
            enough = self.cdf(middle) >= level
            high, low = np.where(enough, middle, high), np.where(enough, low, middle)
        return np.asarray(high)


def forecast(question: Question, steps: int) -> list[Forecast]:
    """Return the forecast of each sequence, `steps` positions ahead; at each step given that it goes on until then."""
    ahead = states_ahead(next_states(question), question.point.chain.operator, steps)
    return [Forecast(states, question.point.emission) for states in ahead]


def states_ahead(first: Array, transition: TransitionOperator, steps: int) -> Array:
    """Return the state probabilities of the next steps, (n, steps, K), given those of the first one, (n, K)."""
    if not isinstance(steps, (int, np.integer)) or steps < 1:
        raise InputError(f"steps must be a whole number of at least 1, not {steps!r}.")
    ahead = [first]
    for _ in range(int(steps) - 1):
        ahead.append(_onward(transition, ahead[-1]))
    return np.stack(ahead, axis=1)


def next_states(question: Question) -> Array:
    """Return the state probabilities one step after each sequence, (n_sequences, K); `initial` after an empty one."""
    last = last_marginals(question.engine, question.surrogate, question.part)
    coming = _onward(question.point.chain.operator, last)
    coming[question.data.lengths == 0] = question.point.chain.initial
    return coming


def _onward(transition: TransitionOperator, states: Array) -> Array:
    """Return state probabilities (n, K) one step later, given that the sequences go on so long."""
    return simplex.normalized(transition.apply(states.T).T, 1)


def last_marginals(engine: Engine, surrogate: Surrogate, part: Part) -> Array:
    """Return the filtered marginals of every sequence's last position, (n_sequences, K); zeros for empty ones."""
    return filtered_ends(engine, surrogate, part)[0]


def filtered_ends(engine: Engine, surrogate: Surrogate, part: Part) -> tuple[Array, Array]:
    """Return the filtered marginals of every sequence's last position, (S, K), and the log likelihoods, (S,)."""
    out = np.zeros((part.data.n_sequences, surrogate.n_states))
    sequences = np.flatnonzero(part.data.lengths)
    ends = part.data.offsets[sequences + 1] - 1

    def keep(block: FilteredBlock) -> None:
        at = np.searchsorted(ends, block.positions)
        found = np.flatnonzero(ends[at] == block.positions)
        out[sequences[at[found]]] = block.table[:, found].T

    return out, engine.filter(surrogate, part, keep).checked()
