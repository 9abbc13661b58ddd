"""Tag dictionaries: the legal tags of each word, from a tagged corpus or a lexicon.

Words outside the dictionary may have any tag. Given as ``allowed=`` to a model whose states are the tags, a dictionary
turns unsupervised tagging into tagging with a lexicon; leaving out the words that are rare in the training text makes
the task gradually harder (Smith and Eisner 2005). Every (word, tag) pair has a count, so that rare pairs of one corpus,
which may be errors, can be left out when it is merged with another.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.data.ambiguity import Ambiguity, measure_ambiguity
from subchain.data.convert import as_sequences
from subchain.data.sequences import Sequences
from subchain.data.tag_files import read_pairs, write_pairs
from subchain.data.vocabulary import MISSING, Vocabulary
from subchain.errors import InputError, unknown_name

Entry = str | Iterable[str] | Mapping[str, int]


class TagDictionary:
    """Legal tags of words.

    Use :meth:`build` for a tagged corpus, and the constructor for a lexicon. Every argument ``allowed=`` takes a tag
    dictionary, if the data have a vocabulary and the model has as many states as there are tags: state *k* is then tag
    *k*, and ``model.state_names_ = dictionary.tags`` names the states.

    Parameters
    ----------
    entries : mapping
        For each word its tag, a list of its tags, or a mapping from its tags to their counts.
    tags : iterable of str, optional
        All tags in the order of the states; by default in the order of the entries.

    Examples
    --------
    >>> from subchain.data import TagDictionary
    >>> dictionary = TagDictionary({"the": "DT", "run": ["NN", "VB"]})
    >>> dictionary.tags, dictionary["run"], dictionary["walk"]
    (('DT', 'NN', 'VB'), ('NN', 'VB'), ('DT', 'NN', 'VB'))
    >>> "walk" in dictionary
    False
    """

    __slots__ = ("_counts", "tags")

    def __init__(self, entries: Mapping[str, Entry], tags: Iterable[str] | None = None) -> None:
        counts = {word: _counted(word, entry) for word, entry in entries.items()}
        found = dict.fromkeys(tag for pairs in counts.values() for tag in pairs)
        self.tags: tuple[str, ...] = _checked_tags(found if tags is None else tags)
        order = {tag: state for state, tag in enumerate(self.tags)}
        for word, pairs in counts.items():
            _check_entry(word, pairs, order)
        self._counts = {word: dict(sorted(counts[word].items(), key=lambda pair: order[pair[0]])) for word in counts}

    @classmethod
    def build(cls, words: Any, tags: Any, min_count: int = 1, counts_from: Any = None) -> TagDictionary:
        """Return the dictionary of all (word, tag) pairs in a tagged corpus.

        Parameters
        ----------
        words, tags : Sequences with vocabularies, or lists of strings, one list per sentence
            The corpus, as from :func:`read_tagged` or :func:`read_conllu`. The states have the order of the vocabulary
            of ``tags``, so that its codes can serve as known states. Missing tags are skipped.
        min_count : int
            Words with smaller counts may have any tag, see :meth:`without_rare`.
        counts_from : as ``words``, optional
            The text in which words are counted, that is the training text, if it is not ``words``.

        Returns
        -------
        TagDictionary
            Without the unknown symbol of the vocabulary: unknown words may have any tag.

        Examples
        --------
        >>> from subchain.data import TagDictionary
        >>> words = [["the", "run"], ["the", "dogs", "run"]]
        >>> tags = [["DT", "NN"], ["DT", "NNS", "VB"]]
        >>> TagDictionary.build(words, tags)["run"]
        ('NN', 'VB')
        >>> len(TagDictionary.build(words, tags, min_count=2))
        2
        """
        text, word_names = _coded(words, "words")
        labels, tag_names = _coded(tags, "tags")
        _check_same_positions(text, labels)
        known = (text.values != MISSING) & (labels.values != MISSING)
        codes = text.values[known].astype(np.int64) * len(tag_names) + labels.values[known]
        entries: dict[str, dict[str, int]] = {}
        for code, count in zip(*map(np.ndarray.tolist, np.unique(codes, return_counts=True)), strict=True):
            word, tag = word_names.symbols[code // len(tag_names)], tag_names.symbols[code % len(tag_names)]
            if word != word_names.unknown:
                entries.setdefault(word, {})[tag] = count
        return cls(entries, tag_names).without_rare(text if counts_from is None else counts_from, min_count)

    def without_rare(self, words: Any, min_count: int) -> TagDictionary:
        """Return the dictionary without the words that occur less than `min_count` times in a text.

        These words may then have any tag.

        Parameters
        ----------
        words : Sequences with a vocabulary, or lists of strings
            The training text.
        min_count : int
            Minimum count; 1 keeps all words of the text.

        Examples
        --------
        >>> from subchain.data import TagDictionary
        >>> dictionary = TagDictionary({"the": "DT", "run": ["NN", "VB"]})
        >>> list(dictionary.without_rare(["the", "run", "the"], min_count=2))
        ['the']
        """
        if isinstance(min_count, bool) or not isinstance(min_count, (int, np.integer)) or min_count < 1:
            raise InputError(f"min_count must be a whole number of at least 1, not {min_count!r}.")
        text, names = _coded(words, "words")
        counts = np.bincount(text.values[text.values != MISSING], minlength=len(names))
        often = {word for word, count in zip(names, counts.tolist(), strict=True) if count >= min_count}
        return TagDictionary({word: pairs for word, pairs in self._counts.items() if word in often}, self.tags)

    def with_tags(self, tags: Iterable[str]) -> TagDictionary:
        """Return the dictionary with only these tags, in this order; words without any of them are left out.

        Use it to convert the dictionary of another corpus to the tags of this one.

        Examples
        --------
        >>> from subchain.data import TagDictionary
        >>> TagDictionary({"run": ["NN", "VB"], "-": "HYPH"}).with_tags(["VB", "DT"])["run"]
        ('VB',)
        """
        kept = _checked_tags(tags)
        entries = {word: {t: n for t, n in pairs.items() if t in kept} for word, pairs in self._counts.items()}
        return TagDictionary({word: pairs for word, pairs in entries.items() if pairs}, kept)

    def merge(self, other: TagDictionary, min_count: int = 1) -> TagDictionary:
        """Return the dictionary with the pairs of another one added.

        Leave out rare words after merging, not before: a word that only one of the two has gets the tags of that one.

        Parameters
        ----------
        other : TagDictionary
            Its tags must all be tags of this one; :meth:`with_tags` drops the others.
        min_count : int
            Pairs with smaller counts in ``other`` are not added. Pairs from plain lists have count 1.

        Examples
        --------
        >>> from subchain.data import TagDictionary
        >>> ours = TagDictionary({"run": {"NN": 3}}, tags=["NN", "VB"])
        >>> ours.merge(TagDictionary({"run": {"VB": 2}, "dogs": {"NN": 1}}), min_count=2).counts("run")
        {'NN': 3, 'VB': 2}
        """
        for tag in other.tags:
            self._check_tag(tag)
        merged = {word: Counter(pairs) for word, pairs in self._counts.items()}
        for word, pairs in other._counts.items():
            added = {tag: count for tag, count in pairs.items() if count >= min_count}
            if added:
                merged.setdefault(word, Counter()).update(added)
        return TagDictionary(merged, self.tags)

    def counts(self, word: str) -> dict[str, int]:
        """Return the count of each tag of a word; empty if the word is not in the dictionary.

        Examples
        --------
        >>> from subchain.data import TagDictionary
        >>> TagDictionary.build(["a", "b", "a"], ["X", "Y", "X"]).counts("a")
        {'X': 2}
        """
        return dict(self._counts.get(word, {}))

    def legal(self, vocabulary: Vocabulary) -> NDArray[np.bool_]:
        """Return the legal tags of the symbols of a vocabulary.

        Returns
        -------
        array of bool, shape (len(vocabulary), n_tags)
            All true for symbols outside the dictionary and for the unknown symbol.

        Examples
        --------
        >>> from subchain.data import TagDictionary, Vocabulary
        >>> TagDictionary({"the": "DT", "run": ["NN", "VB"]}).legal(Vocabulary(["run", "walk"]))
        array([[False,  True,  True],
               [ True,  True,  True]])
        """
        state = {tag: k for k, tag in enumerate(self.tags)}
        table = np.ones((len(vocabulary), len(self.tags)), dtype=np.bool_)
        for code, word in enumerate(vocabulary):
            if word in self._counts and word != vocabulary.unknown:
                table[code] = False
                table[code, [state[tag] for tag in self._counts[word]]] = True
        return table

    def ambiguity(self, words: Any, tags: Any = None) -> Ambiguity:
        """Return the ambiguity of the tags of a corpus under this dictionary.

        Parameters
        ----------
        words : Sequences with a vocabulary, or lists of strings
        tags : in the same form, optional
            Gold tags. Words with missing tags are left out. Without gold tags, all of them count as legal.

        Returns
        -------
        Ambiguity

        Examples
        --------
        >>> from subchain.data import TagDictionary
        >>> found = TagDictionary({"the": "DT", "run": ["NN", "VB"]}).ambiguity(["the", "run"])
        >>> found.tags_per_token, found.ambiguous, found.random_accuracy
        (1.5, 0.5, 0.75)
        """
        text, names = _coded(words, "words")
        legal = self.legal(names)
        if tags is None:
            return measure_ambiguity(legal, text.values)
        labels, tag_names = _coded(tags, "tags")
        _check_same_positions(text, labels)
        for code in np.unique(labels.values[labels.values != MISSING]):
            self._check_tag(tag_names.symbols[code])
        return measure_ambiguity(legal, text.values, labels.recode(Vocabulary(self.tags)).values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the dictionary to a text file: all tags on the first line, then a word, a tag and a count on each line.

        The write is atomic.

        Examples
        --------
        >>> import os, tempfile
        >>> from subchain.data import TagDictionary
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "words.tsv")
        ...     TagDictionary({"run": ["NN", "VB"]}).save(path)
        ...     TagDictionary.load(path)["run"]
        ('NN', 'VB')
        """
        write_pairs(path, self._counts, self.tags)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TagDictionary:
        """Return the dictionary of a file by :meth:`save`; files that end in .gz, .xz or .bz2 are decompressed.

        Examples
        --------
        >>> import os, tempfile
        >>> from subchain.data import TagDictionary
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "words.tsv")
        ...     TagDictionary({"the": "DT"}, tags=["NN", "DT"]).save(path)
        ...     TagDictionary.load(path).tags
        ('NN', 'DT')
        """
        return cls(*read_pairs(path))

    def _check_tag(self, tag: str) -> None:
        if tag not in self.tags:
            raise unknown_name("tag", tag, self.tags)

    def __getitem__(self, word: str) -> tuple[str, ...]:
        return tuple(self._counts[word]) if word in self._counts else self.tags

    def __contains__(self, word: object) -> bool:
        return word in self._counts

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TagDictionary):
            return NotImplemented
        return self.tags == other.tags and self._counts == other._counts

    def __repr__(self) -> str:
        n_pairs = sum(map(len, self._counts.values()))
        return f"TagDictionary({len(self)} words, {len(self.tags)} tags, {n_pairs} pairs, {self._fingerprint()})"

    def _fingerprint(self) -> str:
        """Return a hash of tags and entries, by which a resumed run recognises its dictionary."""
        hashed = hashlib.blake2b(repr(self.tags).encode(), digest_size=8)
        for word in sorted(self._counts):
            hashed.update(repr((word, tuple(self._counts[word]))).encode())
        return hashed.hexdigest()


def _counted(word: object, entry: Entry) -> dict[str, int]:
    """Return the counts of the tags of one word."""
    if not isinstance(word, str):
        raise InputError(f"a tag dictionary holds words, but {word!r} is of type {type(word).__name__}.")
    if isinstance(entry, Mapping):
        return dict(entry)
    if not isinstance(entry, Iterable):
        raise InputError(f"the tags of the word {word!r} are {entry!r}; give the name of a tag, or a list of names.")
    return dict.fromkeys([entry] if isinstance(entry, str) else entry, 1)


def _checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise InputError(f"tags is the string {tags!r}; give a list of tags.")
    return Vocabulary(tags).symbols


def _check_entry(word: str, pairs: Mapping[str, int], known: Mapping[str, int]) -> None:
    if not pairs:
        raise InputError(f"the word {word!r} has no legal tag; give it at least one, or leave it out to allow all.")
    for tag, count in pairs.items():
        if tag not in known:
            raise unknown_name(f"tag of {word!r}:", tag, known)
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise InputError(f"the word {word!r} has the tag {tag!r} with count {count!r}; counts begin at 1.")


def _coded(given: Any, what: str) -> tuple[Sequences, Vocabulary]:
    """Return words or tags as coded sequences, with their vocabulary."""
    found = as_sequences(given)
    names = found.vocabulary
    if names is None or found.values.ndim != 1 or found.values.dtype.kind not in "iu":
        raise InputError(f"{what} must be strings, or Sequences of codes with a vocabulary, not {found!r}.")
    outside = np.flatnonzero((found.values < MISSING) | (found.values >= len(names)))
    if outside.size:
        raise InputError(
            f"{what}, {found.describe(int(outside[0]))} holds the code {found.values[outside[0]]}; the vocabulary has "
            f"the codes 0 to {len(names) - 1}, and -1 means missing."
        )
    return found, names


def _check_same_positions(words: Sequences, tags: Sequences) -> None:
    if words.n_sequences != tags.n_sequences:
        raise InputError(f"there are {words.n_sequences} sentences of words, but {tags.n_sequences} of tags.")
    differ = np.flatnonzero(words.lengths != tags.lengths)
    if differ.size:
        i = int(differ[0])
        raise InputError(f"{words.label(i)} has {words.lengths[i]} words, but {tags.lengths[i]} tags.")
