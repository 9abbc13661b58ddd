"""Evidence about the hidden states besides the observations: log weights per state and position.

Legal states, known states and soft evidence all become a number that is added to the log likelihood of a state at a
position: 0 leaves it unchanged, minus infinity forbids the state. The numbers are computed for one block of positions
at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence_arrays import EvidenceArrays
from subchain.data.evidence_sources import (
    ChosenPositions,
    EndsOfSequences,
    Index,
    KnownStates,
    LegalStatesOfSymbols,
    Source,
    StatesOfGroups,
    Weights,
    blocks,
    known_states,
    legal_states,
    position_weights,
)
from subchain.data.legal_states import LegalStates
from subchain.data.mapped import files_of, intact
from subchain.data.sequences import Sequences
from subchain.errors import InputError

#: Lists of legal states are built if they hold at most the fraction MAX_FRACTION of all states, estimated from SAMPLE
#: positions, and take at most MAX_BYTES. With longer lists, a vectorised pass over all states is as fast.
MAX_FRACTION, SAMPLE, MAX_BYTES = 0.3, 4096, 1 << 31


class Evidence(Source):
    """Log weights of the states at every position; create it with :meth:`build`.

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
        self.files = [file for source in self._sources for file in source.files]
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
        """Check all evidence and combine it by adding the log weights; return None if there is none.

        Parameters
        ----------
        sequences : Sequences
        n_states : int
            Number of states, K.
        allowed : optional
            Legal states. Per symbol: a boolean array (W, K), or a mapping from symbols or codes to legal states
            (for other symbols all states are legal). Per position: a boolean array (N, K), or a list with an array
            (n_i, K), or None, for each sequence. At missing observations, legal states per symbol allow all states.
        states : optional
            Known states, -1 where unknown: integers (N,), Sequences of them, or a list with an array (n_i,), or None,
            for each sequence.
        evidence : optional
            Log weights, minus infinity for impossible states: (N, K), or a list with an array (n_i, K), or None, for
            each sequence.
        n_symbols : int, optional
            Number of symbols, W, if the sequences have no vocabulary. It distinguishes a table per symbol from one
            per position.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, as_sequences
        >>> data = as_sequences([["the", "run"], ["run"]])
        >>> evidence = Evidence.build(data, n_states=3, allowed={"the": [0], "run": [1, 2]})
        >>> evidence.log_weights(np.array([1]), data.values[1:2]).T
        array([[-inf,   0.,   0.]])
        """
        with intact(*files_of(array for given in (allowed, states, evidence) for array in _arrays(given))):
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

    @classmethod
    def with_ends(cls, known: Evidence | None, sequences: Sequences, final: Weights, onward: Weights) -> Evidence:
        """Return evidence, None for no other, together with log weights of the states at the ends of sequences.

        Parameters
        ----------
        known : other evidence about the sequences
        final, onward : (K,) log weights at the last position of each sequence, and at all other positions

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> data = Sequences(np.array([0, 1]))
        >>> found = Evidence.with_ends(None, data, final=np.array([-np.inf, 0.0]), onward=np.zeros(2))
        >>> found.log_weights(np.array([0, 1]), data.values)
        array([[  0., -inf],
               [  0.,   0.]])
        """
        before: tuple[Source, ...] = ()
        if known is not None:
            before = (known,) if known._order is not None else known._sources
        return cls(len(final), (*before, EndsOfSequences(sequences, final, onward)))

    @classmethod
    def with_groups(cls, known: Evidence | None, symbols: Index, states: Index) -> Evidence:
        """Return evidence, None for no other, together with the rule that a symbol has the states of its group alone.

        Parameters
        ----------
        known : other evidence about the sequences
        symbols, states : (W,), (K,) group of each symbol, and of each state

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence
        >>> found = Evidence.with_groups(None, np.array([0, 1, 1]), np.array([0, 1]))
        >>> found.log_weights(np.array([0, 1, 2]), np.array([2, 0, -1]))
        array([[-inf,   0.,   0.],
               [  0., -inf,   0.]])
        """
        before: tuple[Source, ...] = ()
        if known is not None:
            before = (known,) if known._order is not None else known._sources
        return cls(len(states), (*before, StatesOfGroups(symbols, states)))

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        """Add the log weights at flat positions `index`, (n,), to `weights`, (K, n): evidence is a source, too."""
        weights += self.log_weights(index, values)

    def log_weights(self, index: Index, values: NDArray[Any]) -> Weights:
        """Return the log weights of all states at some positions.

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

    def arrays(self, values: NDArray[Any]) -> EvidenceArrays | None:
        """Return all evidence as arrays, given all observations; None if there is evidence of another kind.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> data = Sequences(np.zeros(2))
        >>> Evidence.build(data, n_states=2, states=[-1, 0]).arrays(data.values).states
        array([-1,  0])
        """
        order = np.arange(self.n_states) if self._order is None else self._order
        found: EvidenceArrays | None = EvidenceArrays.nothing(order)
        for source in self._sources:
            found = None if found is None else source.into(found, values)
        return found

    def known(self) -> tuple[Index, Index]:
        """Return the flat positions whose states were given as known, (n,), and these states, (n,).

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> Evidence.build(Sequences(np.zeros(3)), n_states=2, states=[-1, 1, 0]).known()
        (array([1, 2]), array([1, 0]))
        """
        for source in self._sources:
            if isinstance(source, (KnownStates, Evidence)):
                positions, states = source.known()
                return positions, states if self._order is None else np.argsort(self._order)[states]
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def lists(self, sequences: Sequences) -> LegalStates | None:
        """Return the legal states of each position as lists if these are short, else None; cached for the same data.

        None means that many states are legal, or that the lists would take too much memory.

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
        """Return the legal states of each position as lists of any length; for callers that need lists.

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

    @property
    def of_states(self) -> Evidence | None:
        """The evidence without what follows from the observations by the groups of symbols; None if nothing is left.

        This is what is known where an observation is left out.
        """
        left = [source for source in self._sources if not isinstance(source, StatesOfGroups)]
        if len(left) == len(self._sources):
            return self
        return Evidence(self.n_states, left, self._order) if left else None

    def lists_of(self, values: NDArray[Any]) -> tuple[Index, NDArray[np.int32]] | None:
        """Return numbers of legal states, (n,), and the states, (nnz,), where groups of symbols are all that is known.

        These need no table of all states. None for other evidence.
        """
        only = self._sources[0] if len(self._sources) == 1 and self._order is None else None
        return only.lists(values) if isinstance(only, StatesOfGroups) else None

    def _is_short(self, sequences: Sequences) -> bool:
        """Return whether lists would be short enough, estimated from a sample of positions."""
        n = sequences.n_observations
        if n == 0:
            return False
        index = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64)
        weights = self.log_weights(index, np.take(sequences.values, index, axis=0))
        legal = weights > -np.inf
        fraction = float(legal.mean())
        bytes_of_entry = 12 if weights[legal].any() else 4
        return fraction <= MAX_FRACTION and n * (8.0 + fraction * self.n_states * bytes_of_entry) <= MAX_BYTES

    def take(self, order: NDArray[np.int64]) -> Evidence:
        """Return the evidence with permuted states: state k of the result is state ``order[k]`` of this one.

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

    def at(self, positions: Index) -> Evidence:
        """Return the evidence for some flat positions, (n,), which are numbered 0 … n − 1 in the result.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> found = Evidence.build(Sequences(np.zeros(3)), n_states=2, states=[-1, -1, 0])
        >>> found.at(np.array([2])).log_weights(np.array([0]), np.zeros(1))
        array([[  0.],
               [-inf]])
        """
        return Evidence(self.n_states, [ChosenPositions(source, positions) for source in self._sources], self._order)

    def between(self, start: int, stop: int) -> Evidence:
        """Return the evidence for the flat positions `start` … `stop` − 1, which are numbered from 0 in the result.

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Evidence, Sequences
        >>> found = Evidence.build(Sequences(np.zeros(3)), n_states=2, states=[-1, -1, 0])
        >>> found.between(2, 3).log_weights(np.array([0]), np.zeros(1))
        array([[  0.],
               [-inf]])
        """
        return Evidence(self.n_states, [source.between(start, stop) for source in self._sources], self._order)

    def _check(self, sequences: Sequences) -> None:
        """Raise an `InputError` for log weights that are nan or +inf, and for positions without a legal state."""
        n = sequences.n_observations
        for index in blocks(n, self.n_states):
            weights = self.log_weights(index, sequences.values[index[0] : index[-1] + 1])
            wrong = np.flatnonzero(~(weights.max(axis=0) < np.inf))
            if wrong.size:
                bad = weights[:, wrong[0]][~(weights[:, wrong[0]] < np.inf)][0]
                raise InputError(
                    f"the evidence at {sequences.describe(int(index[wrong[0]]))} holds {bad}; log weights must be "
                    "numbers below infinity, 0 where nothing is known."
                )
            blocked = np.flatnonzero(weights.max(axis=0) == -np.inf)
            if blocked.size:
                raise InputError(
                    f"no state is left at {sequences.describe(int(index[blocked[0]]))}: allowed, states and evidence "
                    "together forbid all of them."
                )


def _arrays(given: object) -> list[NDArray[Any]]:
    """Return the arrays that evidence was given as."""
    items = [given.values] if isinstance(given, Sequences) else given if isinstance(given, (list, tuple)) else [given]
    return [item for item in items if isinstance(item, np.ndarray)]
