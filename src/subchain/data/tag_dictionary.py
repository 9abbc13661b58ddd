"""A tag dictionary: the tags that each word may have, as seen in a tagged corpus or written down by hand.

Words that are not in it may have any tag. Given as ``allowed=`` to a model whose states are the tags, it turns learning
without labels into learning with a lexicon; leaving out the words that are rare in the training text makes the task
harder by degrees (Smith and Eisner 2005). Every (word, tag) pair keeps how often it was seen, so that doubtful pairs of
one corpus can be held back when it is merged with another.
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
    """The legal tags of words.

    Use :meth:`build` to make one from a tagged corpus; use the constructor when the tags of each word are at hand. It
    is accepted wherever ``allowed=`` is, by models with as many states as it has tags, for data with a vocabulary:
    state *k* is then tag *k*, and ``model.state_names_ = dictionary.tags`` names the states.

    Parameters
    ----------
    entries : mapping
        For each word its tag, its tags, or a mapping from its tags to how often they were seen.
    tags : iterable of str, optional
        All tags in the order of the states; by default in the order in which the entries have them.

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
        """Collect the tags that each word has in a tagged corpus.

        Parameters
        ----------
        words, tags : Sequences with vocabularies, or lists of strings, one list per sentence
            The corpus, as from :func:`read_tagged` or :func:`read_conllu`. The order of the states is that of the
            vocabulary of ``tags``, whose codes can therefore serve as known states. Unknown tags are passed over.
        min_count : int
            Words seen less often may have any tag: see :meth:`without_rare`.
        counts_from : as ``words``, optional
            The text in which they must be seen, that is the training text, if it is not all of ``words``.

        Returns
        -------
        TagDictionary
            The symbol that stands for unknown words is left out: such a word may have any tag.

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
        """Leave out the words that a text has less than so many times; they may then have any tag.

        Parameters
        ----------
        words : Sequences with a vocabulary, or lists of strings
            The training text.
        min_count : int
            At 1 the words that the text has at all stay.

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
        """Keep these tags, in this order; words that have none of them are left out.

        Use it to bring the dictionary of another corpus to the tags of this one.

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
        """Add the pairs of another dictionary, those that were seen there often enough.

        Rare words should be left out after merging, not before: a word that one of the two lacks has the tags of the
        other.

        Parameters
        ----------
        other : TagDictionary
            Its tags must all be tags of this one; :meth:`with_tags` drops the others.
        min_count : int
            Pairs that ``other`` has seen less often are not added. Pairs from plain lists were seen once.

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
        """Tell how often a word was seen with each of its tags; empty if it is not in the dictionary.

        Examples
        --------
        >>> from subchain.data import TagDictionary
        >>> TagDictionary.build(["a", "b", "a"], ["X", "Y", "X"]).counts("a")
        {'X': 2}
        """
        return dict(self._counts.get(word, {}))

    def legal(self, vocabulary: Vocabulary) -> NDArray[np.bool_]:
        """Spell out which tags the symbols of a vocabulary may have.

        Returns
        -------
        array of bool, shape (len(vocabulary), n_tags)
            A row of True for symbols that the dictionary does not have, and for the symbol of unknown words.

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
        """Measure how much is left open about the tags of a corpus.

        Parameters
        ----------
        words : Sequences with a vocabulary, or lists of strings
        tags : in the same form, optional
            Gold tags. Without them every gold tag is taken to be legal; with them, words whose tag is unknown are left
            out.

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
        """Write the dictionary as text: all tags on the first line, then a word, a tag and a count on each.

        The file appears under its name only when it is complete.

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
        """Read what :meth:`save` wrote; paths that end in .gz, .xz or .bz2 are unpacked on the way.

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
        """Tell dictionaries apart that allow different states, for a run that is resumed."""
        hashed = hashlib.blake2b(repr(self.tags).encode(), digest_size=8)
        for word in sorted(self._counts):
            hashed.update(repr((word, tuple(self._counts[word]))).encode())
        return hashed.hexdigest()


def _counted(word: object, entry: Entry) -> dict[str, int]:
    """The tags of one word, with counts."""
    if not isinstance(word, str):
        raise InputError(f"a tag dictionary holds words, but {word!r} is of type {type(word).__name__}.")
    if isinstance(entry, Mapping):
        return dict(entry)
    if not isinstance(entry, Iterable):
        raise InputError(f"the word {word!r} has {entry!r} for its tags; give the name of a tag, or a list of names.")
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
            raise InputError(f"the word {word!r} was seen {count!r} times with the tag {tag!r}; counts begin at 1.")


def _coded(given: Any, what: str) -> tuple[Sequences, Vocabulary]:
    """Words or tags as codes, and what these stand for."""
    found = as_sequences(given)
    names = found.vocabulary
    if names is None or found.values.ndim != 1 or found.values.dtype.kind not in "iu":
        raise InputError(
            f"{what} must be strings, or Sequences of codes with a vocabulary that says what they stand for, but is "
            f"{found!r}."
        )
    outside = np.flatnonzero((found.values < MISSING) | (found.values >= len(names)))
    if outside.size:
        raise InputError(
            f"{what}, {found.describe(int(outside[0]))} holds the code {found.values[outside[0]]}; the vocabulary has "
            f"the codes 0 to {len(names) - 1}, and -1 means unknown."
        )
    return found, names


def _check_same_positions(words: Sequences, tags: Sequences) -> None:
    if words.n_sequences != tags.n_sequences:
        raise InputError(f"there are {words.n_sequences} sentences of words, but {tags.n_sequences} of tags.")
    differ = np.flatnonzero(words.lengths != tags.lengths)
    if differ.size:
        i = int(differ[0])
        raise InputError(f"{words.label(i)} has {words.lengths[i]} words, but {tags.lengths[i]} tags.")
