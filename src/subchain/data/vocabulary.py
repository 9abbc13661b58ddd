"""Vocabularies: mappings between symbols (words, characters, labels) and integer codes."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.errors import InputError

MISSING = -1


class SymbolTable(dict[str | None, int]):
    """Dictionary of codes in which looking up a new symbol adds it with the next code.

    ``None``, a missing symbol, has code -1. `known` symbols, each once, have the first codes.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        super().__init__({None: MISSING})
        self.update((symbol, code) for code, symbol in enumerate(known))

    def __missing__(self, symbol: str) -> int:
        code = self[symbol] = len(self) - 1
        return code

    @property
    def symbols(self) -> list[str]:
        """Symbols in the order of their codes."""
        return [symbol for symbol in self if symbol is not None]


class _Codes(dict[Hashable, int]):
    """Codes of a vocabulary; other symbols get the code of the unknown symbol, or raise an `InputError`."""

    def __init__(self, symbols: Sequence[str], unknown: str | None) -> None:
        super().__init__(zip(symbols, range(len(symbols)), strict=True))
        self.unknown_code = None if unknown is None else self[unknown]
        self[None] = MISSING

    def __missing__(self, symbol: object) -> int:
        if not isinstance(symbol, str):
            raise InputError(f"a vocabulary holds strings, but {symbol!r} is of type {type(symbol).__name__}.")
        if self.unknown_code is None:
            close = difflib.get_close_matches(symbol, [known for known in self if isinstance(known, str)], n=1)
            hint = f" The nearest known symbol is {close[0]!r}." if close else ""
            raise InputError(
                f"symbol {symbol!r} is not among the {len(self) - 1} symbols of the vocabulary, which has no symbol "
                f"for unknown ones.{hint} Build the vocabulary with unknown='<unk>', or from text with this symbol."
            )
        return self.unknown_code


class Vocabulary:
    """Immutable mapping between symbols and the codes 0, 1, 2, ...

    Use it if observations are words, characters or labels; :func:`read_text` and string columns of tables create one.
    A missing symbol is ``None``, and its code is -1.

    Parameters
    ----------
    symbols : iterable of str
        The symbols in the order of their codes, each once.
    unknown : str, optional
        The one of ``symbols`` that replaces every symbol outside the vocabulary.

    Examples
    --------
    >>> from subchain.data import Vocabulary
    >>> vocabulary = Vocabulary.build("the cat saw the dog".split())
    >>> vocabulary.encode(["the", "mouse"])
    array([0, 4], dtype=int32)
    >>> vocabulary.decode([1, -1, 4])
    ['cat', None, '<unk>']
    """

    __slots__ = ("_codes", "_symbols", "_unknown")

    def __init__(self, symbols: Iterable[str], unknown: str | None = None) -> None:
        self._symbols = tuple(symbols)
        self._unknown = unknown
        _check_symbols(self._symbols, unknown)
        self._codes = _Codes(self._symbols, unknown)

    @classmethod
    def build(
        cls,
        tokens: Iterable[str | None],
        min_count: int = 1,
        max_size: int | None = None,
        unknown: str | None = "<unk>",
    ) -> Vocabulary:
        """Return the vocabulary of a text, sorted by decreasing frequency, then by first appearance.

        Parameters
        ----------
        tokens : iterable of str
            The symbols of the text; ``None`` is skipped.
        min_count : int
            Symbols with smaller counts are left out.
        max_size : int, optional
            Maximum number of symbols, including the unknown one.
        unknown : str or None
            Symbol for all symbols that are left out or not in the text. It has the last code, so that the other codes
            are frequency ranks. With ``None`` there is no such symbol, and :meth:`encode` raises an error for unknown
            symbols.

        Examples
        --------
        >>> from subchain.data import Vocabulary
        >>> Vocabulary.build("abracadabra", max_size=3).to_list()
        ['a', 'b', '<unk>']
        """
        table = SymbolTable()
        codes = np.fromiter(map(table.__getitem__, tokens), dtype=np.int64)
        counts = np.bincount(codes[codes != MISSING], minlength=len(table.symbols))
        return cls.from_counts(table.symbols, counts, min_count, max_size, unknown)

    @classmethod
    def from_counts(
        cls,
        symbols: Sequence[str],
        counts: NDArray[np.int64],
        min_count: int = 1,
        max_size: int | None = None,
        unknown: str | None = "<unk>",
    ) -> Vocabulary:
        """Return the vocabulary for distinct symbols, in order of first appearance, and their counts, (n,).

        Examples
        --------
        >>> import numpy as np
        >>> from subchain.data import Vocabulary
        >>> Vocabulary.from_counts(["x", "y"], np.array([2, 5]), unknown=None).to_list()
        ['y', 'x']
        """
        if min_count < 1:
            raise InputError(f"min_count must be at least 1, but is {min_count}.")
        if max_size is not None and max_size < 1:
            raise InputError(f"max_size must be at least 1, but is {max_size}.")
        by_frequency = np.argsort(-np.asarray(counts), kind="stable")
        kept = [symbols[i] for i in by_frequency if counts[i] >= min_count and symbols[i] != unknown]
        reserved = [] if unknown is None else [unknown]
        if max_size is not None:
            kept = kept[: max_size - len(reserved)]
        return cls(kept + reserved, unknown)

    @classmethod
    def from_list(cls, symbols: Iterable[str], unknown: str = "<unk>") -> Vocabulary:
        """Return the vocabulary of a list by :meth:`to_list`; ``unknown`` is its unknown symbol if it is in the list.

        Examples
        --------
        >>> from subchain.data import Vocabulary
        >>> Vocabulary.from_list(["a", "<unk>"]).unknown
        '<unk>'
        """
        symbols = list(symbols)
        return cls(symbols, unknown if unknown in symbols else None)

    def to_list(self) -> list[str]:
        """Return the symbols in the order of their codes, as a list for JSON.

        Examples
        --------
        >>> from subchain.data import Vocabulary
        >>> Vocabulary(["no", "yes"]).to_list()
        ['no', 'yes']
        """
        return list(self._symbols)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols in the order of their codes."""
        return self._symbols

    @property
    def unknown(self) -> str | None:
        """Symbol that replaces unknown ones, or None."""
        return self._unknown

    def encode(self, tokens: Iterable[str | None]) -> NDArray[np.int32]:
        """Return the codes of symbols, (n,); ``None`` becomes -1.

        Examples
        --------
        >>> from subchain.data import Vocabulary
        >>> Vocabulary(["no", "yes"]).encode(["yes", None, "no"])
        array([ 1, -1,  0], dtype=int32)
        """
        try:
            return np.fromiter(map(self._codes.__getitem__, tokens), dtype=np.int32)
        except TypeError as error:
            raise InputError(f"encode needs an iterable of strings, one per position: {error}.") from error

    def decode(self, codes: Iterable[int] | NDArray[Any]) -> list[str | None]:
        """Return the symbols of codes; -1 becomes ``None``.

        Examples
        --------
        >>> from subchain.data import Vocabulary
        >>> Vocabulary(["no", "yes"]).decode([1, 0, -1])
        ['yes', 'no', None]
        """
        array = np.asarray(codes if isinstance(codes, np.ndarray) else list(codes))
        if array.size and (array.ndim != 1 or array.dtype.kind not in "iu"):
            raise InputError(
                f"decode needs integer codes in one dimension, but got {array.dtype} of shape {array.shape}."
            )
        outside = np.flatnonzero((array < MISSING) | (array >= len(self)))
        if outside.size:
            raise InputError(
                f"code {array[outside[0]]} at position {outside[0]} is outside the vocabulary, whose codes run from 0 "
                f"to {len(self) - 1} (and -1 for missing)."
            )
        by_code = (*self._symbols, None)
        return [by_code[code] for code in array.tolist()]

    def __len__(self) -> int:
        return len(self._symbols)

    def __iter__(self) -> Iterator[str]:
        return iter(self._symbols)

    def __contains__(self, symbol: object) -> bool:
        return isinstance(symbol, str) and dict.__contains__(self._codes, symbol)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self._symbols == other._symbols and self._unknown == other._unknown

    def __hash__(self) -> int:
        return hash((self._symbols, self._unknown))

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[tuple[str, ...], str | None]]:
        return Vocabulary, (self._symbols, self._unknown)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._symbols[:4]))
        return f"Vocabulary({len(self)} symbols: {shown}{', ...' if len(self) > 4 else ''})"


def code_symbols(
    symbols: Sequence[str], codes: NDArray[Any], vocabulary: Vocabulary | None
) -> tuple[NDArray[np.int32], Vocabulary]:
    """Return codes, which number `symbols`, recoded to `vocabulary`, with that vocabulary.

    If it is None, a vocabulary sorted by frequency is built. Missing codes are -1.
    """
    if vocabulary is None:
        counts = np.bincount(codes[codes != MISSING], minlength=len(symbols))
        vocabulary = Vocabulary.from_counts(symbols, counts, unknown=None)
    return recode(codes, symbols, vocabulary), vocabulary


def recode(codes: NDArray[Any], symbols: Sequence[str], vocabulary: Vocabulary) -> NDArray[np.int32]:
    """Return codes, which number ``symbols``, recoded to ``vocabulary``.

    Only symbols that occur among the codes must be in the vocabulary. Missing codes (-1) stay missing.
    """
    used = np.unique(codes)
    used = used[used != MISSING]
    outside = used[(used < 0) | (used >= len(symbols))]
    if outside.size:
        raise InputError(f"code {outside[0]} is outside its vocabulary of {len(symbols)} symbols.")
    translation = np.full(len(symbols) + 1, MISSING, dtype=np.int32)  # the last entry is for code -1
    translation[used] = vocabulary.encode([symbols[code] for code in used])
    return np.asarray(translation[codes])


def _check_symbols(symbols: tuple[str, ...], unknown: str | None) -> None:
    strangers = [symbol for symbol in symbols if not isinstance(symbol, str)]
    if strangers:
        raise InputError(
            f"a vocabulary holds strings, but {strangers[0]!r} is of type {type(strangers[0]).__name__}; "
            "convert the symbols with str() first."
        )
    if len(set(symbols)) < len(symbols):
        twice = Counter(symbols).most_common(1)[0][0]
        raise InputError(f"symbol {twice!r} occurs more than once in the vocabulary; each needs one code.")
    if unknown is not None and unknown not in symbols:
        raise InputError(f"the unknown symbol, {unknown!r}, is not among the symbols of the vocabulary; add it.")
