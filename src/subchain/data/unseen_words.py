"""Classes of words that a grammar has not seen, by what they look like: capitals, digits, dashes, suffixes.

The classes are those of the Berkeley parser in a coarse form (Petrov et al. 2006): whether the first letter, or another
one, is a capital, whether there is a digit, a dash, and which of ten suffixes a word has.
"""

from __future__ import annotations

SUFFIXES = ("ing", "ion", "ity", "est", "ed", "er", "ly", "al", "y", "s")


def word_class(word: str, *, is_first: bool = False) -> str:
    """Return the class of a word.

    Parameters
    ----------
    word : str
    is_first : bool
        Whether it begins the sentence, where a capital says little.

    Examples
    --------
    >>> from subchain.data.unseen_words import word_class
    >>> word_class("Walking"), word_class("Walking", is_first=True), word_class("1990s")
    ('<Capital-ing>', '<First-ing>', '<digit-s>')
    """
    marks = []
    if word[:1].isupper():
        marks.append("First" if is_first else "Capital")
    if any(letter.isupper() for letter in word[1:]):
        marks.append("capitals")
    if any(letter.isdigit() for letter in word):
        marks.append("digit")
    if "-" in word:
        marks.append("dash")
    low = word.lower()
    suffix = next((ending for ending in SUFFIXES if low.endswith(ending) and len(low) > len(ending) + 1), None)
    return f"<{'-'.join([*marks, *([suffix] if suffix else [])]) or 'word'}>"
