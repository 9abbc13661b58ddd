"""Classes of words by their neighbours: found in a text, or read from a file that another program has written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.class_files import read_class_names
from subchain.data.convert import as_sequences
from subchain.data.lines import TextSource
from subchain.data.sequences import Sequences
from subchain.data.vocabulary import Vocabulary
from subchain.errors import InputError, unknown_name
from subchain.numerics.brown import merge_all
from subchain.numerics.exchange import Neighbours, exchange, logarithms

Index = NDArray[np.int64]

METHODS = ("exchange", "brown")


def word_classes(x: Any, n_classes: int, method: str = "exchange", max_iter: int = 30) -> Index:
    """Return a class of each symbol, such that neighbouring classes tell most about each other.

    Classes are those of a bigram class model: they maximise the mutual information of the classes of neighbouring
    symbols, from which syntactic and semantic groups of words emerge. Nothing is random.

    Parameters
    ----------
    x : sequences of symbols, as in :func:`as_sequences`; bigrams with a missing symbol are left out
    n_classes : number of classes
    method : "exchange" (Kneser and Ney 1993): symbols are put into the best class, one after the other, until none
        moves. The start is the class `rank modulo n_classes` by frequency. "brown" (Brown et al. 1992): symbols come
        by frequency, and of one class too many the two are merged that lose least; it tends to end with less mutual
        information, and takes longer for many classes.
    max_iter : passes over all symbols of "exchange", at most

    Returns
    -------
    ndarray of int64, shape (W,)
        The class of each code. Symbols without neighbours stay in the class that they start in.

    Examples
    --------
    >>> from subchain import Vocabulary, as_sequences
    >>> from subchain.data import word_classes
    >>> text = "a cat sat . the dog sat . a dog ran . the cat ran . a cow sat . the cow ran .".split() * 5
    >>> vocabulary = Vocabulary.build(text, unknown=None)
    >>> classes = word_classes(as_sequences([text], vocabulary=vocabulary), 4)
    >>> sorted([word for word, of in zip(vocabulary, classes) if of == number] for number in range(4))
    [['.'], ['a', 'the'], ['cat', 'dog', 'cow'], ['sat', 'ran']]
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    for name, value in (("n_classes", n_classes), ("max_iter", max_iter)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, not {value!r}.")
    data = as_sequences(x)
    if data.values.ndim != 1 or not np.issubdtype(data.values.dtype, np.integer):
        raise InputError("word_classes needs sequences of symbols: texts, or whole numbers, one at each position.")
    n_symbols = _n_symbols(data)
    first, second, counts = _bigrams(data, n_symbols)
    is_alone = first == second
    alone = np.zeros(n_symbols, dtype=np.int64)
    alone[first[is_alone]] = counts[is_alone]
    first, second, counts = (array[~is_alone] for array in (first, second, counts))
    values = np.asarray(data.values)
    frequencies = np.bincount(values[values >= 0], minlength=n_symbols)
    order = np.argsort(-frequencies, kind="stable")
    behind, before = _neighbours(first, second, counts, n_symbols), _neighbours(second, first, counts, n_symbols)
    if method == "brown":
        merged: Index = merge_all(behind, before, alone, order, int(n_classes), logarithms())
        return merged
    classes = np.empty(n_symbols, dtype=np.int64)
    classes[order] = np.arange(n_symbols) % n_classes
    exchange(behind, before, alone, order, classes, int(n_classes), int(max_iter), logarithms())
    return classes


def _n_symbols(data: Sequences) -> int:
    if isinstance(data.vocabulary, Vocabulary):
        return len(data.vocabulary)
    return int(data.values.max(initial=-1)) + 1


def _bigrams(data: Sequences, n_symbols: int) -> tuple[Index, Index, Index]:
    """Return distinct bigrams and their counts, by their first and then their second symbol."""
    values = np.asarray(data.values).astype(np.int64)
    is_inside = np.ones(max(len(values) - 1, 0), dtype=bool)
    ends = np.asarray(data.offsets[1:-1]) - 1
    is_inside[ends[(ends >= 0) & (ends < len(is_inside))]] = False
    is_inside &= (values[:-1] >= 0) & (values[1:] >= 0)
    pairs = values[:-1][is_inside] * n_symbols + values[1:][is_inside]
    distinct, counts = np.unique(pairs, return_counts=True)
    return distinct // max(n_symbols, 1), distinct % max(n_symbols, 1), counts.astype(np.int64)


def _neighbours(of: Index, others: Index, counts: Index, n_symbols: int) -> Neighbours:
    order = np.argsort(of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=n_symbols))])
    return Neighbours(starts, others[order], counts[order])


def read_word_classes(source: TextSource, vocabulary: Vocabulary) -> Index:
    """Read the classes of a vocabulary's words from a file.

    Lines are `word<TAB>class`, as `mkcls` writes them, or `class<TAB>word<TAB>count`, as programs for Brown's classes
    write them; a class may be any text. Words that the vocabulary does not have are passed over.

    Parameters
    ----------
    source : path or open file
        UTF-8 text; files that end in .gz, .xz or .bz2 are decompressed.
    vocabulary : Vocabulary
        The words, whose codes the classes are in the order of.

    Returns
    -------
    ndarray of int64, shape (W,)
        Classes, numbered in the order of the file. Words that are not in the file share one more.

    Examples
    --------
    >>> import io
    >>> from subchain import Vocabulary
    >>> from subchain.data import read_word_classes
    >>> read_word_classes(io.StringIO("the\\t4\\na\\t4\\ncat\\t7\\n"), Vocabulary(["cat", "the", "runs"])).tolist()
    [1, 0, 2]
    """
    names = read_class_names(source)
    if not names:
        raise InputError("the file holds no word classes; give one with lines of `word<TAB>class`.")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names.values()))}
    return np.array([numbers[names[word]] if word in names else len(numbers) for word in vocabulary], dtype=np.int64)
