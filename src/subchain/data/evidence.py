"""What is known about the hidden states beside the observations, as one mechanism: log weights per state and position.

Legal states, known states and soft evidence all end as a number that is added to the log likelihood of a state at a
position: 0 says nothing, minus infinity forbids the state. They are spelt out only for the positions of a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.knowledge import (
    Index,
    KnownStates,
    LegalStatesOfSymbols,
    Source,
    Weights,
    blocks,
    known_states,
    legal_states,
    position_weights,
)
from subchain.data.legal_states import LegalStates
from subchain.data.sequences import Sequences
from subchain.errors import InputError

#: Lists are made where they hold at most this share of all states, by a sample of positions, and so many bytes. With
#: more states, a pass over all of them, in vectors, is as fast.
SHORT, SAMPLE, MOST_BYTES = 0.3, 4096, 1 << 31


class Evidence:
    """Log weights of the states at every position, from all that is known about them.

    Made by :meth:`build`; asked for one block of positions at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import Evidence, Sequences
    >>> data = Sequences(np.array([0, 1, 1]))
    >>> evidence = Evidence.build(data, n_states=2, states=[1, -1, 0])
    >>> evidence.log_weights(np.array([0, 1]), data.values[:2])
    array([[-inf,   0.],
           [  0.,   0.]])
    """

    def __init__(self, n_states: int, sources: Iterable[Source], order: NDArray[np.int64] | None = None) -> None:
        self.n_states = n_states
        self._sources = tuple(sources)
        self._order = order
        self._listed: tuple[Sequences, LegalStates | None] | None = None

    @classmethod
    def build(
        cls,
        sequences: Sequences,
        n_states: int,
        allowed: object = None,
        states: object = None,
        evidence: object = None,
        n_symbols: int | None = None,
    ) -> Evidence | None:
        """Check and gather what is known; None if nothing is. What several say adds up.

        Parameters
        ----------
        sequences : Sequences
        n_states : int
            Number of states, K.
        allowed : optional
            Legal states. Per symbol: a boolean array (W, K), or a mapping from symbols or codes to legal states
            (symbols that are not in it may have any). Per position: a boolean array (N, K), or a list with an array
            (n_i, K), or None, for each sequence. At missing observations every symbol's states are legal.
        states : optional
            Known states, -1 where unknown: integers (N,), Sequences of them, or a list with an array (n_i,), or None,
            for each sequence.
        evidence : optional
            Log weights, minus infinity for impossible states: (N, K), or a list with an array (n_i, K), or None, for
            each sequence.
        n_symbols : int, optional
            Number of symbols, W, where it is known and the sequences have no vocabulary. It tells a table per symbol
            from one per position.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, as_sequences
        >>> data = as_sequences([["the", "run"], ["run"]])
        >>> evidence = Evidence.build(data, n_states=3, allowed={"the": [0], "run": [1, 2]})
        >>> evidence.log_weights(np.array([1]), data.values[1:2]).T
        array([[-inf,   0.,   0.]])
        """
        sources: list[Source] = []
        if allowed is not None:
            sources.append(legal_states(sequences, n_states, allowed, n_symbols))
        if states is not None:
            sources.append(known_states(sequences, n_states, states))
        if evidence is not None:
            sources.append(position_weights(sequences, n_states, evidence))
        if not sources:
            return None
        found = cls(n_states, sources)
        if len(sources) > 1 or not isinstance(sources[0], (LegalStatesOfSymbols, KnownStates)):
            found._check(sequences)
        return found

    def log_weights(self, index: Index, values: NDArray[Any]) -> Weights:
        """Spell the log weights out for some positions.

        Parameters
        ----------
        index : array of int64, shape (n,)
            Flat positions.
        values : array, shape (n,) or (n, D)
            The observations there.

        Returns
        -------
        array of float64, shape (K, n)
            C-contiguous; minus infinity for states that are forbidden.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> data = Sequences(np.array([0.3, 0.4]))
        >>> found = Evidence.build(data, n_states=2, evidence=np.array([[0.0, -1.0], [2.0, 0.0]]))
        >>> found.log_weights(np.array([1]), data.values[1:])
        array([[2.],
               [0.]])
        """
        weights = np.zeros((self.n_states, len(index)))
        for source in self._sources:
            source.add(index, values, weights)
        return weights if self._order is None else np.ascontiguousarray(weights[self._order])

    def lists(self, sequences: Sequences) -> LegalStates | None:
        """The states that are left at each position, as lists; made once for the same data.

        None where most states are legal, or where there are so many positions that the lists would not fit.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> data = Sequences(np.array([0, 1, 1]))
        >>> Evidence.build(data, n_states=9, states=[4, 1, 0]).lists(data).states
        array([4, 1, 0], dtype=int32)
        >>> Evidence.build(data, n_states=9, states=[4, -1, -1]).lists(data) is None
        True
        """
        if self._listed is None or self._listed[0] is not sequences:
            self._listed = (sequences, LegalStates.of(self, sequences) if self._is_short(sequences) else None)
        return self._listed[1]

    def listed(self, sequences: Sequences) -> LegalStates:
        """The same however long the lists are, for those who visit nothing else.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> data = Sequences(np.array([0, 1]))
        >>> Evidence.build(data, n_states=2, states=[1, -1]).listed(data).states
        array([1, 0, 1], dtype=int32)
        """
        found = self.lists(sequences)
        return LegalStates.of(self, sequences) if found is None else found

    def _is_short(self, sequences: Sequences) -> bool:
        """Whether lists are worth their memory, by a sample of positions that are spread over the data."""
        n = sequences.n_observations
        if n == 0:
            return False
        index = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64)
        weights = self.log_weights(index, np.take(sequences.values, index, axis=0))
        legal = weights > -np.inf
        share = float(legal.mean())
        bytes_of_entry = 12 if weights[legal].any() else 4
        return share <= SHORT and n * (8.0 + share * self.n_states * bytes_of_entry) <= MOST_BYTES

    def take(self, order: NDArray[np.int64]) -> Evidence:
        """Number the states anew: state k of the result is state ``order[k]`` of this one.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> found = Evidence.build(Sequences(np.zeros(1)), n_states=2, states=[0])
        >>> found.take(np.array([1, 0])).log_weights(np.array([0]), np.zeros(1))
        array([[-inf],
               [  0.]])
        """
        old = np.arange(self.n_states) if self._order is None else self._order
        return Evidence(self.n_states, self._sources, old[order])

    def _check(self, sequences: Sequences) -> None:
        """Refuse weights that are no weights, and positions left without a state, block by block."""
        n = sequences.n_observations
        for index in blocks(n, self.n_states):
            weights = self.log_weights(index, sequences.values[index[0] : index[-1] + 1])
            wrong = np.flatnonzero(~(weights.max(axis=0) < np.inf))
            if wrong.size:
                bad = weights[:, wrong[0]][~(weights[:, wrong[0]] < np.inf)][0]
                raise InputError(
                    f"the evidence at {sequences.describe(int(index[wrong[0]]))} holds {bad}; log weights are numbers "
                    "below infinity, 0 where nothing is known."
                )
            blocked = np.flatnonzero(weights.max(axis=0) == -np.inf)
            if blocked.size:
                raise InputError(
                    f"no state is left at {sequences.describe(int(index[blocked[0]]))}: allowed, states and evidence "
                    "together forbid all of them."
                )
