"""A part of the data as engines take it, and what its observations say of the hidden states."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence import Evidence
from subchain.data.sequences import Sequences
from subchain.emissions.scaling import exponentiate_in_place
from subchain.engines.surrogate import Surrogate

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclasses.dataclass
class Part:
    """Sequences that are visited together.

    Attributes
    ----------
    data : S sequences, N positions in all
    evidence : what is known of their states, or None
    weights : (S,) how often each sequence counts in statistics, or None for once
    hidden : (N,) of bool, positions whose observation is to be ignored, or None
    """

    data: Sequences
    evidence: Evidence | None = None
    weights: Array | None = None
    hidden: NDArray[np.bool_] | None = None

    @property
    def unobserved(self) -> Part:
        """The part for questions that leave observations out: nothing is taken to follow from these."""
        known = None if self.evidence is None else self.evidence.of_states
        return dataclasses.replace(self, evidence=known)

    @property
    def total_weight(self) -> float:
        """Number of positions, each counted with the weight of its sequence."""
        return float(self.data.n_observations if self.weights is None else self.data.lengths @ self.weights)


class Observed:
    """Likelihoods of a part's observations, evidence included, under a surrogate."""

    def __init__(self, surrogate: Surrogate, part: Part) -> None:
        self.surrogate = surrogate
        self.part = part
        self.data = part.data
        self.evidence = part.evidence

    def likelihood(self, positions: Index, out: Array) -> tuple[NDArray[Any], Array]:
        """Write scaled likelihoods of the given positions (n,) into `out` (K, n).

        Returns
        -------
        values : (n,) or (n, D), the observations
        shift : (n,) logarithms of what each column was divided by
        """
        values = self.data.at(positions)
        if self.evidence is None:
            shift = self.surrogate.emission.scaled(values, out)
            if self.part.hidden is not None:
                hidden = np.flatnonzero(self.part.hidden[positions])
                out[:, hidden], shift[hidden] = 1.0, 0.0
        else:
            np.copyto(out, self._logs(positions, values))
            shift = exponentiate_in_place(out)
        return values, shift

    def log_table(self, positions: Index) -> tuple[NDArray[Any], Array]:
        """Return the observations at the given positions (n,) and their log likelihoods (K, n)."""
        values = self.data.at(positions)
        return values, self._logs(positions, values)

    def known(self, positions: Index) -> tuple[NDArray[Any], Array]:
        """Return the observations at the given positions (n,) and the log weights of the evidence there, (K, n)."""
        values = self.data.at(positions)
        if self.evidence is None:
            return values, np.zeros((self.surrogate.n_states, len(positions)))
        return values, self.evidence.log_weights(positions, values)

    def _logs(self, positions: Index, values: NDArray[Any]) -> Array:
        """Return the log likelihoods of observations, without those that are hidden, plus the evidence, (K, n)."""
        logs = self.surrogate.emission.log_likelihood(values)
        if self.part.hidden is not None:
            logs[:, self.part.hidden[positions]] = 0.0
        return logs if self.evidence is None else logs + self.evidence.log_weights(positions, values)

    def log_likelihood(self, positions: Index) -> tuple[NDArray[Any], Array]:
        """Return the observations at the given positions (n,) and their log likelihoods as rows, (n, K)."""
        values, logs = self.log_table(positions)
        return values, np.ascontiguousarray(logs.T)
