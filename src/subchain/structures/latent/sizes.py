"""Limits of charts: what the longest sentence takes, and how many threads may work at once."""

from __future__ import annotations

from collections.abc import Sequence

from subchain.errors import InputError

#: Words of the longest sentence that is parsed: time grows with the third power of the length.
MOST_WORDS = 500
#: Bytes of the charts of all threads together, from which on fewer threads work at once.
MOST_BYTES = 4 << 30
#: Bytes of an entry of a chart: five tables of weights, one of flags and one of numbers of items.
ENTRY_BYTES = 5 * 8 + 1 + 4
_GIB = 1 << 30


def chart_bytes(n_symbols: int, n_words: int) -> int:
    """Return the bytes of the charts of one sentence, without the vectors of annotations."""
    return ENTRY_BYTES * n_symbols * (n_words + 1) ** 2


def parsing_threads(lengths: Sequence[int], n_symbols: int, n_threads: int) -> int:
    """Return how many threads may parse; raise an `InputError` that says what a too long sentence would take."""
    longest = max(lengths, default=0)
    needed = chart_bytes(n_symbols, longest)
    if longest > MOST_WORDS:
        number = list(lengths).index(longest)
        raise InputError(
            f"sentence {number} has {longest} words; its charts would take {needed / _GIB:.1f} GiB on every thread, "
            f"and time grows with the third power of the length. At most {MOST_WORDS} words are parsed: split the "
            "sentence, or leave it out."
        )
    return max(min(n_threads, MOST_BYTES // max(needed, 1)), 1)
