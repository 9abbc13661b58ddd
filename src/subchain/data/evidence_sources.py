"""Sources of evidence about hidden states, each checked and stored in a compact form.

Legal states of symbols are a small boolean table; known states are one integer per position; legal states and log
weights of positions stay the given arrays. :class:`Evidence` adds up the sources, one block of positions at a time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from subchain.data.evidence_arrays import EvidenceArrays
from subchain.data.mapped import MappedFile, files_of
from subchain.data.missing import BLOCK_VALUES
from subchain.data.sequences import Sequences
from subchain.data.tag_dictionary import TagDictionary
from subchain.errors import InputError, unknown_name

Index = NDArray[np.int64]
Weights = NDArray[np.float64]


class Source(Protocol):
    """Protocol of a source of evidence.

    Attributes
    ----------
    files : the mapped files that it is read from
    """

    files: Sequence[MappedFile] = ()

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        """Add the log weights at flat positions `index`, (n,), with observations `values`, to `weights`, (K, n)."""

    def into(self, arrays: EvidenceArrays, values: NDArray[Any]) -> EvidenceArrays | None:
        """Return arrays that say what this source says, too, of the observations (N,) or (N, 1); None if none can."""
        return None

    def between(self, start: int, stop: int) -> Source:
        """Return the source for positions `start` … `stop` − 1, numbered from 0; itself if it does not ask where."""
        return self


class ChosenPositions(Source):
    """A source of evidence for some positions of the data, (n,), numbered anew."""

    def __init__(self, source: Source, positions: Index) -> None:
        self._source, self._positions, self.files = source, positions, source.files

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        self._source.add(self._positions[index], values, weights)

    def between(self, start: int, stop: int) -> Source:
        return ChosenPositions(self._source, self._positions[start:stop])


class LegalStatesOfSymbols(Source):
    """Legal states of each symbol, (W, K); for symbols outside the table and missing ones all states are legal."""

    def __init__(self, legal: NDArray[np.bool_]) -> None:
        n_symbols, n_states = legal.shape
        self._unrestricted = n_symbols  # the last column of the table
        self._legal = np.ones((n_states, n_symbols + 1), dtype=np.bool_)
        self._legal[:, :n_symbols] = legal.T

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        codes = values.reshape(-1).astype(np.int64, copy=False)
        rows = np.where((codes < 0) | (codes >= self._unrestricted), self._unrestricted, codes)
        weights[~self._legal[:, rows]] = -np.inf

    def into(self, arrays: EvidenceArrays, values: NDArray[Any]) -> EvidenceArrays | None:
        """Return the arrays with the legal states of symbols."""
        return arrays._replace(symbols=values.reshape(-1), legal_of_symbols=self._legal)


class StatesOfGroups(Source):
    """Legal states of each symbol where symbols and states are partitioned jointly: the states of the symbol's group.

    It is a table of legal states kept as one number for each symbol, (W,), and one for each state, (K,).
    """

    def __init__(self, symbols: NDArray[np.int64], states: NDArray[np.int64]) -> None:
        self._symbols, self._states = symbols, states

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        for of_group, chosen in self._places(values):
            weights[np.ix_(self._states != of_group, chosen)] = -np.inf

    def lists(self, values: NDArray[Any]) -> tuple[Index, NDArray[np.int32]]:
        """Return the number of legal states at each position, (n,), and these states one position after the other."""
        n_groups, groups = int(self._states.max()) + 1, self._groups_at(values)
        order = np.argsort(self._states, kind="stable").astype(np.int32)
        sizes = np.append(np.bincount(self._states, minlength=n_groups), len(self._states))
        members = np.concatenate([order, np.arange(len(order), dtype=np.int32)])  # the last "group" is all states
        starts = np.concatenate(([0], np.cumsum(sizes[:-1])))
        counts = sizes[groups]
        first = np.repeat(starts[groups] - (np.cumsum(counts) - counts), counts)
        return counts, members[first + np.arange(len(first))]

    def _groups_at(self, values: NDArray[Any]) -> Index:
        """Return the group of each observation, −1 where it is missing or unknown."""
        codes = values.reshape(-1)
        codes = np.where(np.isnan(codes), -1, codes) if codes.dtype.kind == "f" else codes
        codes = codes.astype(np.int64, copy=False)
        known = (codes >= 0) & (codes < len(self._symbols))
        return np.where(known, self._symbols[np.where(known, codes, 0)], -1)

    def _places(self, values: NDArray[Any]) -> Iterator[tuple[int, Index]]:
        """Yield each group that occurs, and where."""
        groups = self._groups_at(values)
        for group in np.unique(groups[groups >= 0]):
            yield int(group), np.flatnonzero(groups == group)


class LegalStatesOfPositions(Source):
    """Legal states of each position, (N, K)."""

    def __init__(self, legal: NDArray[np.bool_]) -> None:
        self._legal, self.files = legal, files_of([legal])

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        weights[~self._legal[index].T] = -np.inf

    def into(self, arrays: EvidenceArrays, values: NDArray[Any]) -> EvidenceArrays | None:
        """Return the arrays with the legal states of positions."""
        return arrays._replace(legal=self._legal)

    def between(self, start: int, stop: int) -> Source:
        return LegalStatesOfPositions(self._legal[start:stop])


class KnownStates(Source):
    """Known state of each position, (N,), -1 where it is unknown."""

    def __init__(self, states: NDArray[Any]) -> None:
        self._states, self.files = states, files_of([states])

    def known(self) -> tuple[Index, Index]:
        """Return the positions whose states are known, and the states."""
        positions = np.flatnonzero(self._states >= 0)
        return positions, self._states[positions].astype(np.int64)

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        states = self._states[index]
        known = np.flatnonzero(states >= 0)
        here = weights[states[known], known]
        weights[:, known] = -np.inf
        weights[states[known], known] = here

    def into(self, arrays: EvidenceArrays, values: NDArray[Any]) -> EvidenceArrays | None:
        """Return the arrays with the known states."""
        return arrays._replace(states=self._states)

    def between(self, start: int, stop: int) -> Source:
        return KnownStates(self._states[start:stop])


class WeightsOfPositions(Source):
    """Log weights of all states at each position, (N, K)."""

    def __init__(self, log_weights: NDArray[Any]) -> None:
        self._log_weights, self.files = log_weights, files_of([log_weights])

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        weights += self._log_weights[index].T

    def into(self, arrays: EvidenceArrays, values: NDArray[Any]) -> EvidenceArrays | None:
        """Return the arrays with the log weights."""
        return arrays._replace(log_weights=self._log_weights)

    def between(self, start: int, stop: int) -> Source:
        return WeightsOfPositions(self._log_weights[start:stop])


class EndsOfSequences(Source):
    """Log weights (K,) of the states at the last position of each sequence, and of those at all other positions."""

    def __init__(self, sequences: Sequences, final: Weights, onward: Weights) -> None:
        self._ends = sequences.offsets[1:][sequences.lengths > 0] - 1
        self._final, self._onward = final[:, None], onward[:, None]

    def add(self, index: Index, values: NDArray[Any], weights: Weights) -> None:
        next_end = self._ends[np.searchsorted(self._ends, index)]
        weights += np.where(next_end == index, self._final, self._onward)

    def between(self, start: int, stop: int) -> Source:
        found = copy.copy(self)
        found._ends = np.append(self._ends[(self._ends >= start) & (self._ends < stop)], stop) - start
        return found


def legal_states(sequences: Sequences, n_states: int, allowed: Any, n_symbols: int | None) -> Source:
    """Check the legal states, per symbol or per position, and return them as a source."""
    if n_symbols is None and sequences.vocabulary is not None:
        n_symbols = len(sequences.vocabulary)
    if isinstance(allowed, TagDictionary):
        return _from_dictionary(sequences, n_states, allowed)
    if isinstance(allowed, Mapping):
        return _from_mapping(sequences, n_states, allowed, n_symbols)
    if not isinstance(allowed, (list, tuple, Sequences)):
        allowed = np.asarray(allowed)
    if isinstance(allowed, np.ndarray) and _is_per_symbol(sequences, allowed, n_symbols):
        return _from_symbol_table(sequences, n_states, allowed, n_symbols)
    legal = _per_position(sequences, allowed, "allowed", n_states, fill=True)
    return LegalStatesOfPositions(_as_booleans(legal))


def _is_per_symbol(sequences: Sequences, allowed: NDArray[Any], n_symbols: int | None) -> bool:
    """Return whether the rows of `allowed` are symbols, not positions."""
    per_position = allowed.shape[:1] == (sequences.n_observations,)
    if per_position and n_symbols == len(allowed):
        raise InputError(
            f"allowed has {len(allowed)} rows, which may be symbols or positions, because there are as many of both; "
            "give a mapping from symbols to states, or a list with one array per sequence."
        )
    return not per_position and sequences.values.dtype.kind in "iu" and sequences.n_features == 1


def _from_symbol_table(
    sequences: Sequences, n_states: int, allowed: NDArray[Any], n_symbols: int | None
) -> LegalStatesOfSymbols:
    if allowed.ndim != 2 or allowed.shape[1] != n_states or n_symbols not in (None, len(allowed)):
        symbols = "number of symbols" if n_symbols is None else f"{n_symbols} symbols"
        raise InputError(
            f"allowed has the shape {allowed.shape}; it needs ({symbols}, {n_states} states), or one row for each of "
            f"the {sequences.n_observations} positions."
        )
    legal = _as_booleans(allowed)
    _check_symbols_have_states(sequences, legal)
    if n_symbols is None:
        _check_symbols_are_covered(sequences, len(legal))
    return LegalStatesOfSymbols(legal)


def _from_dictionary(sequences: Sequences, n_states: int, allowed: TagDictionary) -> LegalStatesOfSymbols:
    _check_symbols(sequences)
    if sequences.vocabulary is None:
        raise InputError(
            "a tag dictionary needs words, but the data have no vocabulary; give words, or Sequences with a vocabulary."
        )
    if len(allowed.tags) != n_states:
        raise InputError(
            f"the tag dictionary has {len(allowed.tags)} tags, but the model has {n_states} states; the numbers must "
            "be equal: change n_states, or choose tags with TagDictionary.with_tags."
        )
    return LegalStatesOfSymbols(allowed.legal(sequences.vocabulary))


def _check_symbols(sequences: Sequences) -> None:
    if sequences.values.dtype.kind not in "iu" or sequences.n_features != 1:
        raise InputError(
            f"legal states per symbol need one column of integer codes, but the data are {sequences!r}; give allowed "
            "per position instead."
        )


def _from_mapping(
    sequences: Sequences, n_states: int, allowed: Mapping[Any, Any], n_symbols: int | None
) -> LegalStatesOfSymbols:
    _check_symbols(sequences)
    rows = {_code(sequences, symbol, n_symbols): symbol for symbol in allowed}
    legal = np.ones((max(rows, default=-1) + 1, n_states), dtype=np.bool_)
    for code, symbol in rows.items():
        legal[code] = False
        legal[code, _legal_states(symbol, allowed[symbol], n_states)] = True
    _check_symbols_have_states(sequences, legal)
    return LegalStatesOfSymbols(legal)


def _code(sequences: Sequences, symbol: object, n_symbols: int | None) -> int:
    if isinstance(symbol, str):
        if sequences.vocabulary is None:
            raise InputError(f"allowed names the symbol {symbol!r}, but the data have no vocabulary; use its code.")
        if symbol not in sequences.vocabulary:
            raise unknown_name("symbol in allowed", symbol, sequences.vocabulary)
        return int(sequences.vocabulary.encode([symbol])[0])
    if not isinstance(symbol, (int, np.integer)) or symbol < 0 or (n_symbols is not None and symbol >= n_symbols):
        known = "codes from 0 on" if n_symbols is None else f"codes from 0 to {n_symbols - 1}"
        raise InputError(f"allowed names {symbol!r}, which is not a symbol; the symbols are {known}.")
    return int(symbol)


def _legal_states(symbol: object, given: Any, n_states: int) -> list[int]:
    states = [given] if isinstance(given, (int, np.integer)) else list(given)
    for state in states:
        if not isinstance(state, (int, np.integer)) or not 0 <= state < n_states:
            raise InputError(
                f"allowed gives symbol {symbol!r} the state {state!r}; the states are 0 to {n_states - 1}."
            )
    return [int(state) for state in states]


def _check_symbols_have_states(sequences: Sequences, legal: NDArray[np.bool_]) -> None:
    stuck = np.flatnonzero(~legal.any(axis=1))
    if stuck.size:
        names = sequences.vocabulary
        name = f" ({names.symbols[stuck[0]]!r})" if names is not None and stuck[0] < len(names) else ""
        raise InputError(f"allowed leaves symbol {stuck[0]}{name} without a legal state; give it at least one.")


def _check_symbols_are_covered(sequences: Sequences, n_symbols: int) -> None:
    for index in blocks(sequences.n_observations, 1):
        beyond = np.flatnonzero(sequences.values[index[0] : index[-1] + 1].reshape(-1) >= n_symbols)
        if beyond.size:
            position = int(index[beyond[0]])
            code = sequences.values.reshape(-1)[position]
            raise InputError(
                f"allowed has {n_symbols} rows, but {sequences.describe(position)} holds symbol {code}; give one row "
                f"per symbol, or one for each of the {sequences.n_observations} positions."
            )


def known_states(sequences: Sequences, n_states: int, given: object) -> KnownStates:
    """Check the known states of positions and return them as a source."""
    states = _per_position(sequences, given, "states", None, fill=-1)
    if states.dtype.kind == "f":
        states = _whole(sequences, states)
    if states.dtype.kind not in "iu":
        raise InputError(
            f"states must be integers, -1 where unknown, but are of type {states.dtype}. If they are names, give the "
            "place of each in a list of all names, and set model.state_names_ to that list after fit."
        )
    for index in blocks(len(states), 1):
        block = states[index[0] : index[-1] + 1]
        outside = np.flatnonzero((block < -1) | (block >= n_states))
        if outside.size:
            where = sequences.describe(int(index[outside[0]]))
            raise InputError(
                f"the state given at {where} is {block[outside[0]]}; states run from 0 to {n_states - 1}, and -1 means "
                "unknown."
            )
    return KnownStates(states)


def _whole(sequences: Sequences, states: NDArray[Any]) -> NDArray[np.int64]:
    """Return states that are stored as floating numbers, with nan where unknown, as integers."""
    known = np.where(np.isnan(states), -1.0, states)
    broken = np.flatnonzero(known % 1.0 != 0.0)
    if broken.size:
        where = sequences.describe(int(broken[0]))
        raise InputError(f"the state given at {where} is {known[broken[0]]:g}; states are whole numbers.")
    return known.astype(np.int64)


def position_weights(sequences: Sequences, n_states: int, given: object) -> WeightsOfPositions:
    """Check the shape of log weights and return them as a source; `Evidence.build` checks their values."""
    weights = _per_position(sequences, given, "evidence", n_states, fill=0.0)
    if weights.dtype.kind not in "iuf":
        raise InputError(f"evidence must be real numbers, but is of type {weights.dtype}.")
    return WeightsOfPositions(weights)


def _per_position(
    sequences: Sequences, given: Any, what: str, n_states: int | None, fill: bool | int | float
) -> NDArray[Any]:
    """Return an array, Sequences or a list with one item per sequence as one array with a row per position.

    `fill` is the value for sequences, or positions, whose item is None; `what` is the name of the argument in errors.
    """
    tail = () if n_states is None else (n_states,)
    if isinstance(given, (list, tuple)) and not _is_flat(given, tail):
        return _from_list(sequences, given, what, tail, fill)
    if isinstance(given, Sequences):
        return _from_list(sequences, list(given), what, tail, fill)
    if isinstance(given, (list, tuple)):
        given = [fill if item is None else item for item in given]
    flat = np.asarray(given)
    expected = (sequences.n_observations, *tail)
    if flat.shape != expected:
        raise InputError(
            f"{what} has the shape {flat.shape}, but the data need {expected}; or a list with one array per sequence."
        )
    return flat


def _is_flat(given: list[Any] | tuple[Any, ...], tail: tuple[int, ...]) -> bool:
    """Return whether a list holds single values, or None for unknown ones, that is, the entries of a flat array."""
    first = next((item for item in given if item is not None), None)
    return not tail and isinstance(first, (int, float, str, np.generic))


def _from_list(
    sequences: Sequences, given: list[Any] | tuple[Any, ...], what: str, tail: tuple[int, ...], fill: bool | int | float
) -> NDArray[Any]:
    if len(given) != sequences.n_sequences:
        raise InputError(
            f"{what} is a list of {len(given)}, but there are {sequences.n_sequences} sequences; give one array (or "
            "None) per sequence."
        )
    pieces = []
    for i, (item, length) in enumerate(zip(given, sequences.lengths.tolist(), strict=True)):
        expected = (length, *tail)
        unknown = item is None or (length == 0 and np.size(item) == 0)
        piece = np.full(expected, fill) if unknown else np.asarray(item)
        if piece.shape != expected:
            raise InputError(
                f"{what} for {sequences.label(i)} has the shape {piece.shape}, but the sequence needs {expected}."
            )
        pieces.append(piece)
    return np.concatenate(pieces)


def _as_booleans(table: NDArray[Any]) -> NDArray[np.bool_]:
    if table.dtype == np.bool_:
        return table
    if table.dtype.kind not in "iu" or ((table != 0) & (table != 1)).any():
        raise InputError(f"allowed must hold True and False (or 1 and 0); it has type {table.dtype} and other values.")
    return table.astype(np.bool_)


def blocks(n: int, width: int) -> Iterable[Index]:
    """Yield the flat positions 0 … n − 1 in blocks of at most BLOCK_VALUES / width positions."""
    rows = max(1, BLOCK_VALUES // width)
    return (np.arange(start, min(n, start + rows)) for start in range(0, n, rows))
